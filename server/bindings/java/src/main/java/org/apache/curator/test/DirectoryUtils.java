package org.apache.curator.test;

import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** Replaces Curator's class of the same name. */
public class DirectoryUtils {
  /** Creates a new, empty directory. */
  public static File createTempDirectory() {
    try {
      return Files.createTempDirectory("minikeeper").toFile();
    } catch (IOException error) {
      throw new UncheckedIOException("cannot create a temp directory", error);
    }
  }

  /** Deletes the content of a directory. */
  public static void deleteDirectoryContents(File directory) throws IOException {
    File[] files = directory.listFiles();
    if (files == null) throw new IOException("cannot list " + directory);
    for (File file : files) deleteRecursively(file);
  }

  /** Deletes a directory and its content. Does not follow links. */
  public static void deleteRecursively(File directory) throws IOException {
    try (Stream<Path> found = Files.walk(directory.toPath())) {
      // The reverse order has the content before its directory.
      List<Path> paths = found.sorted(Comparator.reverseOrder()).collect(Collectors.toList());
      for (Path path : paths) Files.deleteIfExists(path);
    } catch (NoSuchFileException error) {
      // Already deleted.
    }
  }
}
