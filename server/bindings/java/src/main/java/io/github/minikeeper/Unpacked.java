package io.github.minikeeper;

import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.channels.WritableByteChannel;
import java.nio.file.DirectoryStream;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.FileAttribute;
import java.nio.file.attribute.FileTime;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.time.Instant;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.Set;
import java.util.zip.CRC32;

/**
 * Unpacks the program of the jar. All JVMs of a user share one file for each build of it, in the folder {@code minikeeper-USER}
 * of the folder for temporary files, so that a JVM that is killed leaves nothing behind. Only the user can write there, and
 * the file is compared with the jar byte by byte before it is run.
 *
 * <p>Without such a folder, because another user has made it, the file is this JVM's own.
 */
final class Unpacked {
  private static final int PART_BYTES = 256 * 1024;
  /** The time after which a file that no JVM has used is deleted, when another one is unpacked. */
  private static final Duration UNUSED_MAX = Duration.ofDays(30);
  private static final Set<PosixFilePermission> OWNER_ONLY = EnumSet.of(
      PosixFilePermission.OWNER_READ, PosixFilePermission.OWNER_WRITE, PosixFilePermission.OWNER_EXECUTE);
  /** Fails if the file exists, so that another user cannot have prepared it. */
  private static final Set<StandardOpenOption> NEW_FILE =
      EnumSet.of(StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE);

  private Unpacked() {}

  /** Returns the path of a file with this content, and with this extension, that can be run. */
  static Path program(byte[] content, String extension) throws IOException {
    Path temporary = Path.of(System.getProperty("java.io.tmpdir"));
    // Files.createTempFile would spend 15 ms on the first secure random number.
    String own = "minikeeper-" + Long.toHexString(System.nanoTime()) + extension;
    Path folder = temporary.resolve("minikeeper-" + user());
    Path file = temporary.resolve(own);
    boolean isShared = isPrivate(folder, folder.resolve(own));
    if (isShared) {
      CRC32 sum = new CRC32();
      sum.update(content);
      file = folder.resolve("minikeeper-" + Long.toHexString(sum.getValue()) + "-" + content.length + extension);
      if (hasContent(file, content)) {
        Files.setLastModifiedTime(file, FileTime.from(Instant.now()));
        return file;
      }
      deleteUnused(folder);
      // Under another name first: a JVM that starts meanwhile must not run a part of it.
      Path part = folder.resolve(own);
      try {
        write(part, content);
        Files.move(part, file, StandardCopyOption.REPLACE_EXISTING, StandardCopyOption.ATOMIC_MOVE);
      } finally {
        Files.deleteIfExists(part);
      }
      return file;
    }
    file.toFile().deleteOnExit();
    write(file, content);
    return file;
  }

  private static String user() {
    // In a container it may be "?".
    return System.getProperty("user.name", "").replaceAll("[^A-Za-z0-9_-]", "_");
  }

  /**
   * Creates the folder if it is missing. Returns whether it is a folder of this user in which no other user can write. What can
   * be created in it, a file of this name, tells who this user is.
   */
  private static boolean isPrivate(Path folder, Path probe) {
    try {
      try {
        Files.createDirectory(folder, ownerOnly());
      } catch (FileAlreadyExistsException error) {
        // Of another JVM, or of another user.
      }
      if (!Files.isDirectory(folder, LinkOption.NOFOLLOW_LINKS)) return false;
      if (File.separatorChar == '\\') return true;
      Set<PosixFilePermission> granted = EnumSet.copyOf(Files.getPosixFilePermissions(folder, LinkOption.NOFOLLOW_LINKS));
      granted.removeAll(OWNER_ONLY);
      if (!granted.isEmpty()) return false;
      write(probe, new byte[0]);
      try {
        return Files.getOwner(folder, LinkOption.NOFOLLOW_LINKS).equals(Files.getOwner(probe));
      } finally {
        Files.deleteIfExists(probe);
      }
    } catch (IOException | UnsupportedOperationException error) {
      return false;
    }
  }

  private static boolean hasContent(Path file, byte[] content) throws IOException {
    if (!Files.isRegularFile(file, LinkOption.NOFOLLOW_LINKS) || !Files.isExecutable(file)) return false;
    if (Files.size(file) != content.length) return false;
    byte[] part = new byte[PART_BYTES];
    int at = 0;
    try (InputStream in = Files.newInputStream(file)) {
      for (int length = in.read(part); length >= 0; length = in.read(part)) {
        if (length > content.length - at || !Arrays.equals(part, 0, length, content, at, at + length)) return false;
        at += length;
      }
    }
    return at == content.length;
  }

  private static void write(Path file, byte[] content) throws IOException {
    try (WritableByteChannel out = Files.newByteChannel(file, NEW_FILE, ownerOnly())) {
      ByteBuffer rest = ByteBuffer.wrap(content);
      while (rest.hasRemaining()) {
        // In parts, because the JVM copies each into memory of its own.
        rest.limit(Math.min(rest.position() + PART_BYTES, content.length));
        out.write(rest);
        rest.limit(content.length);
      }
    }
  }

  /** Deletes the programs of builds that are not used any more, and what a killed JVM has left half written. */
  private static void deleteUnused(Path folder) throws IOException {
    FileTime since = FileTime.from(Instant.now().minus(UNUSED_MAX));
    try (DirectoryStream<Path> files = Files.newDirectoryStream(folder, "minikeeper-*")) {
      for (Path file : files) {
        try {
          if (Files.getLastModifiedTime(file, LinkOption.NOFOLLOW_LINKS).compareTo(since) < 0) Files.deleteIfExists(file);
        } catch (NoSuchFileException error) {
          // What another JVM has moved into its place, or deleted.
        }
      }
    }
  }

  /** The permissions of what only the owner can use. Windows has others: there, the folder is the user's. */
  private static FileAttribute<?>[] ownerOnly() {
    if (File.separatorChar == '\\') return new FileAttribute<?>[0];
    return new FileAttribute<?>[] {PosixFilePermissions.asFileAttribute(OWNER_ONLY)};
  }
}
