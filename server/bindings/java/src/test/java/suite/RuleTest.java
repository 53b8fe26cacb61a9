package suite;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.minikeeper.junit.MinikeeperRule;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.Assume;
import org.junit.ClassRule;
import org.junit.Rule;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.runner.Description;
import org.junit.runner.JUnitCore;
import org.junit.runner.Request;
import org.junit.runner.Result;
import org.junit.runner.manipulation.Filter;

/** The rule for JUnit 4, with tests that JUnit 4 runs in another process. */
class RuleTest {
  @TempDir
  Path folder;

  /** Tests for JUnit 4, some of which fail on purpose. */
  public static final class OnFour {
    @ClassRule
    public static final MinikeeperRule SHARED = new MinikeeperRule("--tick-time", "100");

    @Rule
    public final MinikeeperRule minikeeper = new MinikeeperRule("--tick-time", "100");

    /** Runs the tests with this prefix; the exit code is the number of failures. */
    public static void main(String[] args) {
      Filter named = new Filter() {
        @Override
        public boolean shouldRun(Description test) {
          return test.isSuite() || test.getMethodName().startsWith(args[0]);
        }

        @Override
        public String describe() {
          return args[0];
        }
      };
      Result result = new JUnitCore().run(Request.aClass(OnFour.class).filterWith(named));
      result.getFailures().forEach(failure -> System.err.println(failure.getTrace()));
      System.err.println("ran " + result.getRunCount());
      System.exit(result.getFailureCount());
    }

    @org.junit.Test
    public void passesOnce() throws Exception {
      ownUniverse();
    }

    @org.junit.Test
    public void passesTwice() throws Exception {
      ownUniverse();
    }

    private void ownUniverse() throws Exception {
      assertNotEquals(SHARED.connectString(), minikeeper.connectString());
      assertEquals(SHARED.universe().port(), minikeeper.universe().port());
      try (Client client = new Client(minikeeper.connectString()).connected()) {
        // Fails if another test shares the universe.
        client.curator.create().forPath("/left-behind");
        assertEquals(2_000, client.zooKeeper().getSessionTimeout());
      }
    }

    @org.junit.Test
    public void isSkipped() {
      Assume.assumeTrue(false);
    }

    @org.junit.Test
    public void printer() {
      minikeeper.universe().seed(Map.of("/printer/paper", "A4"));
      minikeeper.universe().advance(Duration.ofSeconds(1));
      assertEquals("A4", "A5");
    }

    @org.junit.Test
    public void leavesAFault() {
      minikeeper.universe().inject(Map.of("action", "cut", "path", "/never"));
    }
  }

  @Test
  void eachTestOfJUnit4HasItsOwnUniverse() throws Exception {
    String printed = run("passes", 0);
    assertTrue(printed.contains("ran 2\n"), printed);
    assertFalse(printed.contains("story"), printed);
  }

  @Test
  void skippedTestOfJUnit4TellsNoStory() throws Exception {
    assertFalse(run("isSkipped", 0).contains("story"));
  }

  @Test
  void failedTestOfJUnit4TellsItsStory() throws Exception {
    String printed = run("printer", 1);
    for (String part : List.of(
        "\nminikeeper: story of suite.RuleTest$OnFour.printer\nserver 127.0.0.1:", "expected: <A4> but was: <A5>", "\nsaved in ")) {
      assertTrue(printed.contains(part), () -> part + " is missing in " + printed);
    }
    assertEquals(2, printed.split("minikeeper: story", -1).length, printed);
  }

  @Test
  void faultThatNeverActedFailsATestOfJUnit4() throws Exception {
    String printed = run("leavesAFault", 1);
    assertTrue(printed.contains(": ended and never acted; messages that matched it: 0; check its op, "), printed);
    assertTrue(printed.contains("minikeeper: story of suite.RuleTest$OnFour.leavesAFault\n"), printed);
  }

  @Test
  void ruleOutsideOfATestSaysSo() {
    assertThrows(IllegalStateException.class, new MinikeeperRule()::universe);
  }

  private String run(String tests, int failures) throws IOException, InterruptedException {
    Path output = folder.resolve("output");
    List<String> command = new ArrayList<>(List.of(
        System.getProperty("java.home") + "/bin/java", "-cp", System.getProperty("java.class.path"),
        "-Dminikeeper.stories=" + folder.resolve("stories"), OnFour.class.getName(), tests));
    Process process = new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(output.toFile()).start();
    assertTrue(process.waitFor(60, TimeUnit.SECONDS), "still running");
    String printed = Files.readString(output);
    assertEquals(failures, process.exitValue(), printed);
    return printed;
  }
}
