package suite;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * A sweep finds a bug behind a random name, whatever the name looks like, and reaches every point of a correct program. It used
 * to guess what is random, and the points behind other names were not reached.
 *
 * <p>Takes every 18th naming scheme, once. {@code MINIKEEPER_SWEEP_NAMES=5 tests/interop/bindings/run java} takes all of them.
 */
class SweepNamesTest {
  @TempDir
  Path folder;

  @Test
  void sweepReachesEveryPointBehindARandomName() throws Exception {
    String schemes = System.getProperty("naming.schemes");
    assumeTrue(schemes != null, "the property naming.schemes names no file");
    Path output = folder.resolve("output");
    Process process = new ProcessBuilder(System.getProperty("java.home") + "/bin/java", "-XX:+UseSerialGC", "-cp",
            System.getProperty("java.class.path"), SweepNames.class.getName(), schemes, "18", "1")
        .redirectErrorStream(true)
        .redirectOutput(output.toFile())
        .start();
    try {
      assertTrue(process.waitFor(280, TimeUnit.SECONDS), "still running");
    } finally {
      process.destroyForcibly();
    }
    String printed = Files.readString(output);
    assertEquals(0, process.exitValue(), printed);
    assertTrue(printed.contains("bug found 1 of 1, all points reached 1 of 1"), printed);
  }
}
