package io.github.minikeeper;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The program that is unpacked from the jar, in JVMs with a folder for temporary files of their own. */
public class UnpackedTest {
  private static final byte[] PROGRAM = "#!/bin/sh\necho works\n".repeat(30_000).getBytes();

  @TempDir
  Path folder;

  /** In JVMs of its own. Prints the path, and waits to be killed. */
  public static void main(String[] args) throws IOException {
    System.out.println(Unpacked.program(PROGRAM, ""));
    while (System.in.read() >= 0) {}
  }

  /** Each killed JVM used to leave a copy. */
  @Test
  void killedJvmsLeaveOneFile() throws Exception {
    String first = killed();
    for (int i = 0; i < 3; i++) assertEquals(first, killed());
    assertEquals(List.of(Path.of(first)), files());
    assertArrayEquals(PROGRAM, Files.readAllBytes(Path.of(first)));
    assertEquals("rwx------", PosixFilePermissions.toString(Files.getPosixFilePermissions(Path.of(first).getParent())));
  }

  @Test
  void jvmsThatStartTogetherRunAWholeProgram() throws Exception {
    List<Process> started = new ArrayList<>();
    for (int i = 0; i < 8; i++) started.add(start());
    for (Process process : started) assertArrayEquals(PROGRAM, Files.readAllBytes(Path.of(pathOf(process))));
    for (Process process : started) process.destroyForcibly().waitFor();
    assertEquals(1, files().size(), files()::toString);
  }

  @Test
  void fileThatIsNotTheProgramIsReplaced() throws Exception {
    Path file = Path.of(killed());
    byte[] other = PROGRAM.clone();
    other[other.length - 1] ^= 1;
    for (byte[] damaged : List.of(new byte[0], other, new byte[PROGRAM.length + 1])) {
      Files.write(file, damaged);
      assertEquals(file.toString(), killed());
      assertArrayEquals(PROGRAM, Files.readAllBytes(file));
    }
    Path elsewhere = Files.write(folder.resolve("elsewhere"), other);
    Files.delete(file);
    Files.createSymbolicLink(file, elsewhere);
    assertEquals(file.toString(), killed());
    assertFalse(Files.isSymbolicLink(file));
    assertArrayEquals(other, Files.readAllBytes(elsewhere));
  }

  /** Another user may have prepared the folder. */
  @Test
  void folderThatOthersCanWriteIsNotUsed() throws Exception {
    Path shared = Path.of(killed()).getParent();
    Path planted = Files.write(Path.of(killed()), PROGRAM);
    Files.setPosixFilePermissions(shared, PosixFilePermissions.fromString("rwxrwxrwx"));
    assertEquals(folder, Path.of(killed()).getParent());

    Files.delete(planted);
    Files.delete(shared);
    Path real = Files.createDirectory(folder.resolve("real"));
    Files.setPosixFilePermissions(real, PosixFilePermissions.fromString("rwx------"));
    Files.createSymbolicLink(shared, real);
    assertEquals(folder, Path.of(killed()).getParent());

    Files.delete(shared);
    Files.writeString(shared, "");
    assertEquals(folder, Path.of(killed()).getParent());
  }

  @Test
  void programsOfOldBuildsAreDeleted() throws Exception {
    Path file = Path.of(killed());
    Path old = Files.writeString(file.resolveSibling("minikeeper-1-1"), "");
    Files.setLastModifiedTime(old, FileTime.from(Instant.now().minus(Duration.ofDays(31))));
    Path recent = Files.writeString(file.resolveSibling("minikeeper-2-2"), "");
    Files.delete(file);
    killed();
    assertFalse(Files.exists(old));
    assertTrue(Files.exists(recent));
  }

  private List<Path> files() throws IOException {
    try (Stream<Path> all = Files.walk(folder)) {
      return all.filter(Files::isRegularFile).collect(Collectors.toList());
    }
  }

  /** Starts a JVM, kills it, and returns the path that it has printed. */
  private String killed() throws Exception {
    Process process = start();
    try {
      return pathOf(process);
    } finally {
      process.destroyForcibly().waitFor();
    }
  }

  private Process start() throws IOException {
    List<String> command = List.of(System.getProperty("java.home") + "/bin/java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
        "-Djava.io.tmpdir=" + folder, "-cp", System.getProperty("java.class.path"), UnpackedTest.class.getName());
    return new ProcessBuilder(command).redirectErrorStream(true).start();
  }

  private static String pathOf(Process process) throws IOException {
    return new BufferedReader(new InputStreamReader(process.getInputStream())).readLine();
  }
}
