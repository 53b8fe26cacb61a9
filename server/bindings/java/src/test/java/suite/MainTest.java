package suite;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.minikeeper.MinikeeperServer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The command of the jar. */
class MainTest {
  @TempDir
  Path folder;

  private String printed;

  @Test
  void jarRunsControlShellAndSweep() throws Exception {
    try (MinikeeperServer server = MinikeeperServer.builder().start()) {
      server.seed(Map.of("/config", "on"));
      assertEquals(0, run("ctl", "--server", server.connectString(), "children", "/"), printed);
      assertTrue(printed.contains("config"), printed);
      assertEquals(0, run("cli", "-server", server.connectString(), "get", "/config"), printed);
      assertEquals("on\n", printed);
    }
    assertEquals(0, run("sweep", "--help"), printed);
    assertTrue(printed.contains("minikeeper sweep"), printed);
  }

  @Test
  void exitCodeIsThatOfTheProgram() throws Exception {
    assertEquals(2, run("--no-such-option"), printed);
    assertTrue(printed.contains("--no-such-option"), printed);
  }

  /** Runs the jar. Returns its exit code. */
  private int run(String... arguments) throws Exception {
    String jar = Arrays.stream(System.getProperty("java.class.path").split(":"))
        .filter(path -> path.endsWith("/minikeeper-junit.jar"))
        .findFirst()
        .orElseThrow();
    List<String> command = new ArrayList<>(List.of(System.getProperty("java.home") + "/bin/java", "-jar", jar));
    command.addAll(List.of(arguments));
    Path output = folder.resolve("output");
    Process process = new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(output.toFile()).start();
    process.getOutputStream().close();
    assertTrue(process.waitFor(60, TimeUnit.SECONDS), "still running");
    printed = Files.readString(output);
    return process.exitValue();
  }
}
