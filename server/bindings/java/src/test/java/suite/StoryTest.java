package suite;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.minikeeper.JsonTest;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The stories of tests that fail on purpose, in another process. */
class StoryTest {
  @TempDir
  Path folder;

  private String printed;

  @Test
  void failedTestPrintsItsStoryAndSavesABundle() throws Exception {
    assertEquals(1, run("printer", folder.resolve("new").toString()));
    Path page = folder.resolve("new/suite.OnPurpose.printer.html");
    for (String part : List.of(
        "\nminikeeper: story of suite.OnPurpose.printer\nserver 127.0.0.1:",
        "\nmutex /locks/printer (curator)\n  held by   session 0x",
        "\n  waits 1   session 0x",
        "\nsessions:\n  0x",
        " fault 1 (error, op getData, path \"/printer/*\"): acted 1 time, matched 1\n",
        " fault 1: error getData /printer/paper\n",
        "\nsaved in " + page + "\n")) {
      assertTrue(printed.contains(part), () -> part + " is missing in " + printed);
    }
    assertEquals(2, printed.split("minikeeper: story", -1).length, printed);
    assertTrue(Files.readString(page).startsWith("<!doctype html>"));
    String json = Files.readString(folder.resolve("new/suite.OnPurpose.printer.json"));
    JsonTest.assertParses(json);
    assertTrue(json.contains("expected: <A4> but was: <null>"), json);
  }

  @Test
  void storiesAreOffUnlessATestFails() throws Exception {
    for (String test : List.of("passes", "isSkipped")) {
      assertEquals(0, run(test, folder.toString()));
      assertFalse(printed.contains("minikeeper: "), printed);
    }
    try (var files = Files.list(folder)) {
      assertEquals(0, files.count());
    }
  }

  @Test
  void storyIsPrintedAndNotSavedIfOff() throws Exception {
    assertEquals(1, run("leavesAFault", "off"));
    assertTrue(printed.contains("minikeeper: story of suite.OnPurpose.leavesAFault\n"), printed);
    assertTrue(printed.contains(" fault 1 (cut, path \"/never\"): acted 0 times, matched 0\n"), printed);
    assertFalse(printed.contains("saved"), printed);
  }

  @Test
  void universeThatIsGoneDoesNotHideTheFailure() throws Exception {
    assertEquals(1, run("dropsItsUniverse", "off"));
    assertTrue(printed.contains("\nno story of Universe 127.0.0.1:"), printed);
  }

  @Test
  void folderThatCannotBeWrittenIsNamed() throws Exception {
    Path file = Files.writeString(folder.resolve("file"), "");
    assertEquals(1, run("leavesAFault", file.toString()));
    assertTrue(printed.contains("\nnot saved: "), printed);
  }

  @Test
  void testWithTestingServerPrintsItsStoryIfTheExtensionIsThere() throws Exception {
    String type = "suite.OnPurposeWithTestingServer";
    assertEquals(1, run(type + "#fails", "off", true));
    assertTold(type + ".fails\n");
    assertEquals(1, run(type + "$InTry#fails", "off", true));
    assertTold(type + "$InTry.fails 127.0.0.1:");
    // The base class has the extension.
    assertEquals(1, run(type + "$OfTheBaseClass#fails", "off", false));
    assertTold(type + "$OfTheBaseClass.fails\n");
    assertEquals(1, run(type + "$OfTheBaseClass#fails", "off", true));
    assertTold(type + "$OfTheBaseClass.fails\n");
    assertEquals(1, run(type + "#fails", "off", false));
    assertFalse(printed.contains("minikeeper: story"), printed);
    assertEquals(0, run(type + "#passes", "off", true));
    assertFalse(printed.contains("minikeeper: story"), printed);
  }

  /** Asserts that one story was printed, of the server with the znode. */
  private void assertTold(String title) {
    assertTrue(printed.contains("\nminikeeper: story of " + title), printed);
    assertEquals(2, printed.split("minikeeper: story", -1).length, printed);
    assertTrue(printed.contains(" verb create path=\"/paper\""), printed);
  }

  private int run(String test, String stories) throws IOException, InterruptedException {
    return run(test, stories, false);
  }

  /** Runs a test in another process. Returns the number of failures. */
  private int run(String test, String stories, boolean findsExtensions) throws IOException, InterruptedException {
    List<String> command = new ArrayList<>(List.of(
        System.getProperty("java.home") + "/bin/java", "-cp", System.getProperty("java.class.path"), "suite.OnPurpose"));
    command.addAll(List.of(test, stories, Boolean.toString(findsExtensions)));
    Path output = folder.resolveSibling(folder.getFileName() + "-" + test.replace('#', '.'));
    Process process = new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(output.toFile()).start();
    assertTrue(process.waitFor(60, TimeUnit.SECONDS), "still running");
    printed = Files.readString(output);
    Files.delete(output);
    return process.exitValue();
  }
}
