package suite;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.minikeeper.SweepFault;
import io.github.minikeeper.Universe;
import io.github.minikeeper.junit.Allow;
import io.github.minikeeper.junit.Minikeeper;
import io.github.minikeeper.junit.MinikeeperSweep;
import io.github.minikeeper.junit.PrintsTestsLeft;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.apache.curator.framework.CuratorFramework;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.RepetitionInfo;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.io.TempDir;

/** Tests that {@code minikeeper sweep --suite} runs: each sweeps itself on the server of the suite. */
class SweepSuiteTest {
  @TempDir
  Path folder;

  private String printed;

  private static void createIfAbsent(CuratorFramework client, String path) throws Exception {
    try {
      client.create().forPath(path);
    } catch (KeeperException.NodeExistsException exists) {
      // The reply was lost.
    }
  }

  @Minikeeper
  static class HasABug {
    @Test
    void job(Universe universe, CuratorFramework client) throws Exception {
      universe.seed(Map.of("/jobs", ""));
      client.create().withMode(CreateMode.PERSISTENT_SEQUENTIAL).forPath("/jobs/n-");
      assertEquals(1, universe.children("/jobs").size(), "an orphan");
    }

    @Test
    void first(CuratorFramework client) throws Exception {
      createIfAbsent(client, "/first");
    }

    @MinikeeperSweep
    void second(CuratorFramework client) throws Exception {
      createIfAbsent(client, "/second");
    }
  }

  /** Each prints how often it was called. */
  @Minikeeper
  static class IsClean {
    private boolean isSetUp;

    @BeforeAll
    static void beforeAll() {
      System.out.println("called beforeAll");
    }

    @AfterAll
    static void afterAll() {
      System.out.println("called afterAll");
    }

    @BeforeEach
    void setUp(Universe universe) {
      universe.seed(Map.of("/given", ""));
      isSetUp = true;
    }

    @AfterEach
    void tearDown() {
      assertTrue(isSetUp);
      System.out.println("called afterEach");
    }

    @Test
    void isSetUp(CuratorFramework client) throws Exception {
      assertTrue(isSetUp);
      client.checkExists().forPath("/given");
    }

    @RepeatedTest(2)
    void isRepeated(CuratorFramework client, RepetitionInfo info) throws Exception {
      createIfAbsent(client, "/repeated" + info.getCurrentRepetition());
    }

    @Nested
    class Inner {
      @Test
      void isNested(CuratorFramework client) throws Exception {
        createIfAbsent(client, "/nested");
      }
    }

    @MinikeeperSweep(
        allow = @Allow(fault = SweepFault.REPLY_LOST, raises = KeeperException.NodeExistsException.class, reason = "it says so"))
    void mayFail(CuratorFramework client) throws Exception {
      client.create().forPath("/may-fail");
    }
  }

  @Minikeeper
  @TestInstance(TestInstance.Lifecycle.PER_CLASS)
  static class SharesAnInstance {
    private int calls;

    @BeforeAll
    void beforeAll() {
      calls += 1;
    }

    @Test
    void test(CuratorFramework client) throws Exception {
      createIfAbsent(client, "/shared");
      assertEquals(1, calls);
    }
  }

  /** It runs as it is. */
  @Minikeeper(options = {"--tick-time", "200"})
  static class HasAServerOfItsOwn {
    @Test
    void test(Universe universe, CuratorFramework client) throws Exception {
      client.create().forPath("/once");
      System.out.println("called with options");
    }
  }

  @Minikeeper
  static class DiesAndResumes {
    @Test
    void test(Universe universe, CuratorFramework client) throws Exception {
      if (client.checkExists().forPath("/job") == null) client.create().forPath("/job");
      assertTrue(universe.children("/").contains("job"));
    }
  }

  @Test
  void bugInOneOfThreeTestsIsFound() throws Exception {
    assertEquals(1, sweep(HasABug.class), printed);
    assertTrue(printed.contains("3 tests swept, 2 of them clean"), printed);
    assertTrue(printed.contains("an orphan"), printed);
    assertTrue(printed.contains("-Dtest='suite.SweepSuiteTest$HasABug#job' -Dminikeeper.sweep.unmarked=true -Dminikeeper.sweep.only='reply-lost:1:create"), printed);
    assertTrue(printed.contains("failed tests: 1\n"), printed);
  }

  @Test
  void eachTestOfASuiteIsSwept() throws Exception {
    assertEquals(0, sweep(IsClean.class), printed);
    assertTrue(printed.contains("5 tests swept, 5 of them clean"), printed);
    assertTrue(printed.contains("failed tests: 0\n"), printed);
    for (String once : List.of("called beforeAll", "called afterAll")) {
      assertEquals(printed.indexOf(once), printed.lastIndexOf(once), printed);
    }
    // Two runs without faults, and one with, at the least.
    assertTrue(printed.split("called afterEach").length > 3 * 5, printed);
    assertEquals(0, sweep(SharesAnInstance.class), printed);
    assertTrue(printed.contains("1 tests swept, 1 of them clean"), printed);
    assertEquals(0, sweep(DiesAndResumes.class, "--fault", "client-crash"), printed);
  }

  /** A sweep took all the time of the suite. */
  @Test
  void testsThatAreLeftAreCounted() throws Exception {
    assertEquals(0, sweep(PrintsTestsLeft.class, "--fault", "reply-lost", "--time", "10m"), printed);
    List<Integer> left = printed.lines()
        .filter(line -> line.startsWith("left "))
        .map(line -> Integer.valueOf(line.substring("left ".length())))
        .collect(Collectors.toList());
    assertEquals(List.of(4, 2, 2), left, printed);
    assertTrue(printed.contains("1 tests swept, 1 of them clean"), printed);
  }

  @Test
  void testWithAServerOfItsOwnRunsAsItIs() throws Exception {
    assertEquals(3, sweep(HasAServerOfItsOwn.class), printed);
    assertEquals(printed.indexOf("called with options"), printed.lastIndexOf("called with options"), printed);
    assertTrue(printed.contains("failed tests: 0\n"), printed);
  }

  /** The command of a suite. The argument is the class; the exit code is 1 if a test has failed. */
  public static void main(String[] args) throws Exception {
    int failed = SweptRunTest.failures(Class.forName(args[0]));
    System.out.println("failed tests: " + failed);
    System.exit(failed == 0 ? 0 : 1);
  }

  /** Sweeps a class. Returns the exit code. */
  private int sweep(Class<?> type, String... options) throws Exception {
    String java = System.getProperty("java.home") + "/bin/java";
    String classes = System.getProperty("java.class.path");
    List<String> command = new ArrayList<>(List.of(java, "-cp", classes, "io.github.minikeeper.Main", "sweep", "--suite"));
    command.addAll(options.length == 0 ? List.of("--fault", "reply-lost") : Arrays.asList(options));
    command.addAll(List.of("--", java, "-XX:+UseSerialGC", "-cp", classes, SweepSuiteTest.class.getName(), type.getName()));
    Path output = folder.resolve("output");
    Process process = new ProcessBuilder(command)
        .directory(folder.toFile())
        .redirectErrorStream(true)
        .redirectOutput(output.toFile())
        .start();
    try {
      process.getOutputStream().close();
      assertTrue(process.waitFor(200, TimeUnit.SECONDS), "still running");
    } finally {
      process.destroyForcibly();
    }
    printed = Files.readString(output);
    assertFalse(printed.contains("Exception in thread"), printed);
    return process.exitValue();
  }
}
