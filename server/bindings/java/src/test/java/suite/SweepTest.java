package suite;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.minikeeper.MinikeeperException;
import io.github.minikeeper.SweepFault;
import io.github.minikeeper.Universe;
import io.github.minikeeper.junit.Minikeeper;
import io.github.minikeeper.junit.MinikeeperExtension;
import io.github.minikeeper.junit.MinikeeperSweep;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.api.io.TempDir;

/** Sweeps of tests, in other processes: most of them fail on purpose. */
@Minikeeper
class SweepTest {
  private static final String ORPHAN = "reply-lost:1:create2:1:/queue/n-";

  @TempDir
  Path folder;

  private String printed;

  @Test
  void sweepFindsAPlantedBug() throws Exception {
    assertEquals(1, run("suite.SweepOnPurpose#leavesAnOrphan"), () -> printed);
    Path page = folder.resolve("stories/suite.SweepOnPurpose.leavesAnOrphan.sweep.html");
    assertPrinted(
        "FAILED leavesAnOrphan minikeeper sweep: failed: ",
        " points tried: ",
        "The test fails: org.opentest4j.AssertionFailedError: expected: <1> but was: <2>",
        "\n     -Dminikeeper.sweep.only='" + ORPHAN + "'\n",
        "\n     story: " + folder.resolve("stories") + "/suite.SweepOnPurpose.leavesAnOrphan-run-",
        "\nsaved in " + page + "\n");
    assertEquals(1, printed.split("sweep.only='", -1).length - 1, printed);
    // One test in the report of JUnit.
    assertEquals(1, Pattern.compile("^(SUCCESSFUL|FAILED|ABORTED) ", Pattern.MULTILINE).matcher(printed).results().count(), printed);
    // The stories of runs are saved, not printed.
    assertFalse(printed.contains("minikeeper: story of"), printed);
    String html = Files.readString(page);
    assertTrue(html.startsWith("<!doctype html>") && html.contains(ORPHAN), html);
    int story = printed.indexOf("story: ") + 7;
    assertTrue(Files.exists(Path.of(printed.substring(story, printed.indexOf('\n', story)))), printed);
  }

  @Test
  void propertyRepeatsOneRun() throws Exception {
    assertEquals(1, run("suite.SweepOnPurpose#leavesAnOrphan", "-Dminikeeper.sweep.only=" + ORPHAN), () -> printed);
    assertPrinted("1 of 1 points tried: 0 passed, 1 failed");
    // Another point does not break the test, and one that is not reached has not been tried.
    assertEquals(0, run("suite.SweepOnPurpose#leavesAnOrphan", "-Dminikeeper.sweep.only=request-lost:1:create2:1:/queue/n-"));
    assertPrinted("\nSUCCESSFUL leavesAnOrphan", "1 of 1 points tried: 1 passed");
    assertEquals(1, run("suite.SweepOnPurpose#leavesAnOrphan", "-Dminikeeper.sweep.only=reply-lost:1:create:9:/never"));
    assertPrinted("FAILED leavesAnOrphan minikeeper sweep: incomplete (the point that was named was not reached): ");
  }

  @Test
  void soundTestPasses() throws Exception {
    assertEquals(0, run("suite.SweepOnPurpose#isSound"), () -> printed);
    assertPrinted("\nSUCCESSFUL isSound", "minikeeper: sweep of suite.SweepOnPurpose.isSound: clean: ", " 0 failed, 0 hung, ");
    assertFalse(Files.exists(folder.resolve("stories")));
  }

  /** Green means tried: each of these used to pass. */
  @Test
  void incompleteSweepFails() throws Exception {
    assertEquals(1, run("suite.SweepOnPurpose#endsEarly"), () -> printed);
    assertPrinted("FAILED endsEarly minikeeper sweep: incomplete (");
    assertEquals(1, run("suite.SweepOnPurpose#sendsNothing"), () -> printed);
    assertPrinted("FAILED sendsNothing minikeeper sweep: incomplete (nothing was tried");
  }

  @Test
  void incompleteSweepIsAllowedByANumber() throws Exception {
    assertEquals(0, run("suite.SweepOnPurpose#mayEndEarly"), () -> printed);
    assertPrinted("minikeeper: sweep of suite.SweepOnPurpose.mayEndEarly: clean: ", "\nSUCCESSFUL mayEndEarly");
  }

  @Test
  void sweepOfATestThatSkipsItselfIsSkipped() throws Exception {
    assertEquals(0, run("suite.SweepOnPurpose#skipsItself"), () -> printed);
    assertPrinted("ABORTED skipsItself Assumption failed: not here");
  }

  @Test
  void interruptedSweepIsNotGreen() throws Exception {
    Process process = start("suite.SweepOnPurpose#hangs");
    try {
      // In the midst of its runs.
      while (process.isAlive() && !Files.readString(folder.resolve("output")).contains("the test has begun")) {
        process.waitFor(5, TimeUnit.MILLISECONDS);
      }
    } finally {
      process.destroy();
    }
    assertTrue(process.waitFor(200, TimeUnit.SECONDS), "still running");
    assertEquals(143, process.exitValue());
    assertFalse(Files.readString(folder.resolve("output")).contains("SUCCESSFUL"));
  }

  @Test
  void hangIsInterruptedAndFound() throws Exception {
    assertEquals(1, run("suite.SweepOnPurpose#hangs"), () -> printed);
    assertPrinted(
        "The test hangs: org.opentest4j.AssertionFailedError: still running after 20 s in suite.SweepOnPurpose.hangs(",
        "\n     -Dminikeeper.sweep.only='" + ORPHAN + "'\n");
  }

  @Test
  void runThatSwallowsInterruptsIsLeftBehind() throws Exception {
    assertEquals(1, run("suite.SweepOnPurpose#swallowsInterrupts"), () -> printed);
    assertPrinted(
        "minikeeper: suite.SweepOnPurpose.swallowsInterrupts, run 1: no fault: still running",
        ", 5 s after it was interrupted; its thread is left behind, and its methods @AfterEach are not called\n",
        "FAILED swallowsInterrupts minikeeper sweep: failed ");
  }

  @Test
  void testThatFailsWithoutFaultsIsReported() throws Exception {
    assertEquals(1, run("suite.SweepOnPurpose#failsWithoutFaults"), () -> printed);
    assertPrinted("The test fails without any fault: org.opentest4j.AssertionFailedError: expected: <1> but was: <0>");
  }

  /** The example of the guide. */
  @Test
  void sweepBreaksANaiveCounter() throws Exception {
    assertEquals(1, run("NaiveCounter#visitIsCountedOnce"), () -> printed);
    // Which of them fails first, and so is shown, is chance.
    assertPrinted("expected: <1> but was: <2>", "reply-lost:1:setData:1:/visits", "reply-late:1:setData:1:/visits");
    System.out.println("ran NaiveCounter.java"); // as Suite does for the code of the other pages
  }

  @Test
  void sweepOfOrdersFindsARaceAndRepeatsIt() throws Exception {
    assertEquals(1, run("suite.SweepOnPurpose#createsTwice"), () -> printed);
    assertPrinted(
        "FAILED createsTwice minikeeper sweep: failed: ",
        " orders of 2 clients tried, ",
        " 0 hung, 0 not followed;",
        "KeeperErrorCode = NodeExists for /a");
    Matcher only = Pattern.compile("-Dminikeeper.sweep.only='(order:[0-9x.]+)'").matcher(printed);
    assertTrue(only.find(), () -> printed);
    assertEquals(1, run("suite.SweepOnPurpose#createsTwice", "-Dminikeeper.sweep.only=" + only.group(1)), () -> printed);
    assertPrinted(": 0 passed, 1 failed, 0 hung, 0 not followed;");
  }

  @Test
  void sweepOfOrdersFindsNothingInARepairedRace() throws Exception {
    assertEquals(0, run("suite.SweepOnPurpose#createsOnce"), () -> printed);
    assertPrinted("\nSUCCESSFUL createsOnce", " orders of 2 clients tried, ", " 0 failed, 0 hung, 0 not followed;");
  }

  @Test
  void serverKnowsEveryFaultOfASweep(Universe universe) {
    List<String> typed = Arrays.stream(SweepFault.values()).map(SweepFault::toString).collect(Collectors.toList());
    universe.sweepStart(Map.of("faults", String.join(",", typed)));
    String unknown = assertThrows(MinikeeperException.class, () -> universe.sweepStart(Map.of("faults", "x"))).getMessage();
    // The message lists the names at its end.
    assertEquals(List.of(unknown.substring(unknown.lastIndexOf("one of ") + 7).split(", ")), typed);
  }

  /** With the extension as a field, which must be static: JUnit asks for the runs before there is an instance. */
  static class WithExtensionAsField {
    @RegisterExtension
    static final MinikeeperExtension MINIKEEPER = new MinikeeperExtension("--tick-time", "1000");

    @MinikeeperSweep(faults = SweepFault.REQUEST_LOST, runs = 10, allowUntried = 10)
    void sweepRunsWithTheExtensionAsAField(Universe universe) throws Exception {
      assertSame(MINIKEEPER.universe(), universe);
      try (Client client = new Client(MINIKEEPER.connectString()).connected()) {
        assertFalse(client.exists("/left-behind"));
        universe.create("/left-behind");
        assertEquals(20_000, client.zooKeeper().getSessionTimeout());
      }
    }
  }

  private void assertPrinted(String... parts) {
    for (String part : parts) assertTrue(printed.contains(part), () -> part + " is missing in " + printed);
  }

  /** Runs a sweep in another process. Returns the number of failures. */
  private int run(String test, String... options) throws IOException, InterruptedException {
    Process process = start(test, options);
    try {
      assertTrue(process.waitFor(200, TimeUnit.SECONDS), "still running");
    } finally {
      process.destroyForcibly();
    }
    printed = Files.readString(folder.resolve("output"));
    return process.exitValue();
  }

  private Process start(String test, String... options) throws IOException {
    List<String> command = new ArrayList<>(List.of(System.getProperty("java.home") + "/bin/java", "-XX:+UseSerialGC"));
    command.addAll(Arrays.asList(options));
    command.addAll(List.of("-cp", System.getProperty("java.class.path"), "suite.SweepOnPurpose"));
    command.addAll(List.of(test, folder.resolve("stories").toString()));
    return new ProcessBuilder(command)
        .redirectErrorStream(true)
        .redirectOutput(folder.resolve("output").toFile())
        .start();
  }
}
