package suite;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.platform.engine.discovery.DiscoverySelectors.selectClass;

import io.github.minikeeper.ErrorCode;
import io.github.minikeeper.Fault;
import io.github.minikeeper.FaultOp;
import io.github.minikeeper.InjectedFault;
import io.github.minikeeper.MinikeeperException;
import io.github.minikeeper.MinikeeperServer;
import io.github.minikeeper.Universe;
import io.github.minikeeper.junit.Minikeeper;
import io.github.minikeeper.junit.MinikeeperRule;
import io.github.minikeeper.junit.MinikeeperSweep;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.test.TestingServer;
import org.junit.Rule;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;
import org.junit.platform.launcher.listeners.SummaryGeneratingListener;
import org.junit.runner.JUnitCore;
import org.junit.runner.Result;

/**
 * Tests that are the command of {@code minikeeper sweep}: they use its server. They used to start their own, where no fault ever
 * acted.
 */
class SweptRunTest {
  @TempDir
  Path folder;

  /** In a process with the environment of a run. The first argument is the class; the exit code is the number of failures. */
  public static void main(String[] args) throws Exception {
    if (args[0].equals(OfJUnit4.class.getName())) {
      Result result = JUnitCore.runClasses(OfJUnit4.class);
      result.getFailures().forEach(failure -> System.out.println(failure.getTrace()));
      System.exit(result.getFailureCount());
    }
    System.exit(failures(Class.forName(args[0])));
  }

  /** Runs a class and prints its failures. Returns their number. */
  static int failures(Class<?> type) {
    SummaryGeneratingListener listener = new SummaryGeneratingListener();
    LauncherFactory.create().execute(
        LauncherDiscoveryRequestBuilder.request()
            .selectors(selectClass(type))
            .configurationParameter("minikeeper.stories", "off")
            .build(),
        listener);
    listener.getSummary().getFailures().forEach(failure -> System.out.println(failure.getException()));
    return (int) listener.getSummary().getTotalFailureCount();
  }

  @Minikeeper
  static class TakesPart {
    @RepeatedTest(2)
    void testUsesTheServerOfTheSweep(Universe universe, CuratorFramework client) throws Exception {
      assertEquals(System.getenv("MINIKEEPER_CONNECT"), universe.connectString());
      client.create().forPath("/left-behind");
      universe.inject(Fault.error(ErrorCode.NOAUTH).on(FaultOp.DELETE).optional());
      universe.freeze();
    }
  }

  public static class OfJUnit4 {
    @Rule
    public final MinikeeperRule minikeeper = new MinikeeperRule();

    @org.junit.Test
    public void first() {
      minikeeper.universe().create("/left-behind");
    }

    @org.junit.Test
    public void second() {
      minikeeper.universe().create("/left-behind");
    }
  }

  @Minikeeper
  static class LeavesAFault {
    @Test
    void test(Universe universe) {
      universe.inject(Fault.cut().at("/never"));
    }
  }

  @Minikeeper(options = {"--tick-time", "200"})
  static class HasOptions {
    @Test
    void test(Universe universe) {}
  }

  @Minikeeper
  static class SweepsItself {
    @MinikeeperSweep
    void test(Universe universe) {}
  }

  static class HasAServer {
    @Test
    void test() throws Exception {
      String message = assertThrows(MinikeeperException.class, () -> MinikeeperServer.builder().start()).getMessage();
      assertTrue(message.startsWith("the test has a server of its own, and minikeeper sweep acts on its own server only: "));
      assertEquals(message, assertThrows(MinikeeperException.class, TestingServer::new).getMessage());
    }
  }

  @Test
  void testsTakePartInASweep() throws Exception {
    try (MinikeeperServer server = MinikeeperServer.builder().start()) {
      server.create("/given");
      server.inject(Fault.cut().at("/of-the-sweep").optional());
      List<InjectedFault> faults = server.faults();
      for (Class<?> type : List.of(TakesPart.class, OfJUnit4.class)) {
        assertEquals("", run(server, type, 0));
        assertEquals(faults, server.faults());
        assertFalse(server.now().isFrozen());
        assertTrue(server.children("/").contains("given"));
        assertFalse(server.children("/").contains("left-behind"));
      }
    }
  }

  @Test
  void testThatCannotTakePartSaysWhatToDo() throws Exception {
    try (MinikeeperServer server = MinikeeperServer.builder().start()) {
      String rest = ", and minikeeper sweep acts on its own server only: mark the test with @MinikeeperSweep and run it without"
          + " minikeeper sweep";
      String printed = run(server, HasOptions.class, 1);
      assertTrue(printed.contains("the test has a server with the options --tick-time 200" + rest), printed);
      printed = run(server, SweepsItself.class, 1);
      assertTrue(printed.contains("the test is a sweep itself" + rest), printed);
      assertEquals("", run(server, HasAServer.class, 0));
      printed = run(server, LeavesAFault.class, 1);
      assertTrue(printed.contains(": ended and never acted; messages that matched it: 0; check its op, "), printed);
      assertEquals(List.of(), server.faults());
    }
  }

  private String run(MinikeeperServer server, Class<?> type, int failures) throws Exception {
    Path output = folder.resolve("output");
    ProcessBuilder process = new ProcessBuilder(System.getProperty("java.home") + "/bin/java", "-XX:+UseSerialGC", "-cp",
        System.getProperty("java.class.path"), SweptRunTest.class.getName(), type.getName());
    process.environment().put("MINIKEEPER_CONNECT", server.connectString());
    process.environment().put("MINIKEEPER_SWEEP_RUN", "3");
    Process started = process.redirectOutput(output.toFile()).start();
    try {
      assertTrue(started.waitFor(200, TimeUnit.SECONDS), "still running");
    } finally {
      started.destroyForcibly();
    }
    String printed = Files.readString(output);
    assertEquals(failures, started.exitValue(), printed);
    return printed;
  }
}
