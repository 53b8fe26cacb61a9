package suite;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;
import static org.junit.platform.engine.discovery.DiscoverySelectors.selectMethod;

import io.github.minikeeper.SweepFault;
import io.github.minikeeper.Universe;
import io.github.minikeeper.junit.Minikeeper;
import io.github.minikeeper.junit.MinikeeperSweep;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;

/** Sweeps, most of which fail on purpose, which {@link SweepTest} runs in another process. */
@Minikeeper
class SweepOnPurpose {
  /** Of each instance, so that a run sees what another has left. */
  private int uses;

  private CuratorFramework client;

  /**
   * Runs the method of the first argument, {@code suite.SweepOnPurpose#isSound}, with the folder for stories. Prints a line for
   * each test that JUnit reports; the exit code is the number of failures.
   */
  public static void main(String[] args) {
    int[] failures = {0};
    TestExecutionListener listener = new TestExecutionListener() {
      @Override
      public void executionFinished(TestIdentifier test, TestExecutionResult result) {
        String message = result.getThrowable().map(Throwable::getMessage).orElse("");
        if (test.isTest() || result.getStatus() != TestExecutionResult.Status.SUCCESSFUL) {
          System.out.println(result.getStatus() + " " + test.getDisplayName() + " " + message);
        }
        if (result.getStatus() == TestExecutionResult.Status.FAILED) failures[0]++;
      }
    };
    String parameters = "(" + Universe.class.getName() + "," + CuratorFramework.class.getName() + ")";
    LauncherFactory.create().execute(
        LauncherDiscoveryRequestBuilder.request()
            .selectors(selectMethod(args[0] + parameters))
            .configurationParameter("minikeeper.stories", args[1])
            // The runs have a launch of their own.
            .configurationParameter("junit.jupiter.execution.parallel.enabled", "true")
            .configurationParameter("junit.jupiter.execution.parallel.mode.default", "concurrent")
            .build(),
        listener);
    System.exit(failures[0]);
  }

  @BeforeEach
  void setUp(Universe universe, CuratorFramework client) {
    assertEquals(0, uses++);
    this.client = client;
    universe.create("/queue");
  }

  @AfterEach
  void tearDown(Universe universe) {
    assertEquals(1, uses++);
    universe.get("/queue");
  }

  /** Curator tries a create without protection again when its reply is lost, and leaves the first znode behind. */
  @MinikeeperSweep(faults = {SweepFault.REPLY_LOST, SweepFault.REQUEST_LOST})
  void leavesAnOrphan(Universe universe, CuratorFramework same) throws Exception {
    assertEquals(client, same);
    client.create().withMode(CreateMode.PERSISTENT_SEQUENTIAL).forPath("/queue/n-");
    assertEquals(1, universe.children("/queue").size());
  }

  @MinikeeperSweep(faults = SweepFault.REPLY_LOST)
  void isSound(Universe universe, CuratorFramework same) throws Exception {
    InterProcessMutex lock = new InterProcessMutex(same, "/lock");
    assertTrue(lock.acquire(30, TimeUnit.SECONDS));
    lock.release();
  }

  /** Two clients look whether a znode is there, and then each creates it. */
  @MinikeeperSweep(orders = true)
  void createsTwice(Universe universe, CuratorFramework same) throws Exception {
    race(universe, false);
  }

  @MinikeeperSweep(orders = true)
  void createsOnce(Universe universe, CuratorFramework same) throws Exception {
    race(universe, true);
  }

  private void race(Universe universe, boolean isSound) throws Exception {
    ExecutorService threads = Executors.newFixedThreadPool(2);
    try (Client other = new Client(universe.connectString()).connected()) {
      Future<?> one = threads.submit(() -> {
        boolean isThere = client.checkExists().forPath("/a") != null;
        return isThere ? null : create(isSound, () -> client.create().forPath("/a"));
      });
      Future<?> two = threads.submit(() -> other.exists("/a") ? null : create(isSound, () -> other.curator.create().forPath("/a")));
      // A request of the test itself does not wait.
      assertEquals(0, universe.children("/queue").size());
      one.get();
      two.get();
    } finally {
      threads.shutdownNow();
    }
  }

  private static String create(boolean isSound, Callable<String> create) throws Exception {
    try {
      return create.call();
    } catch (KeeperException.NodeExistsException exists) {
      if (isSound) return null;
      throw exists;
    }
  }

  /** Waits for a znode that another client never creates if a fault has made it too many. */
  @MinikeeperSweep(faults = SweepFault.REPLY_LOST, runSeconds = 20)
  void hangs(Universe universe, CuratorFramework same) throws Exception {
    client.create().withMode(CreateMode.PERSISTENT_SEQUENTIAL).forPath("/queue/n-");
    System.out.println("the test has begun");
    CountDownLatch onlyOne = new CountDownLatch(universe.children("/queue").size() - 1);
    onlyOne.await();
  }

  /** Goes on when it is interrupted: that used to keep the sweep from ending. */
  @MinikeeperSweep(runSeconds = 5)
  void swallowsInterrupts(Universe universe, CuratorFramework same) throws Exception {
    while (true) {
      try {
        Thread.sleep(60_000);
      } catch (InterruptedException swallowed) {
        // On purpose.
      }
    }
  }

  @MinikeeperSweep(faults = SweepFault.REQUEST_LOST, runs = 3)
  void endsEarly(Universe universe, CuratorFramework same) throws Exception {
    isSound(universe, same);
  }

  @MinikeeperSweep(faults = SweepFault.REQUEST_LOST, runs = 3, allowUntried = 100)
  void mayEndEarly(Universe universe, CuratorFramework same) throws Exception {
    isSound(universe, same);
  }

  /** Its requests, apart from those of the client itself, are verbs. */
  @MinikeeperSweep(faults = SweepFault.EVENT_LATE)
  void sendsNothing(Universe universe, CuratorFramework same) throws Exception {
    universe.create("/by-the-test");
  }

  @MinikeeperSweep
  void skipsItself(Universe universe, CuratorFramework same) throws Exception {
    assumeTrue(universe.children("/queue").size() == 1, "not here");
  }

  @MinikeeperSweep
  void failsWithoutFaults(Universe universe, CuratorFramework same) throws Exception {
    assertEquals(1, universe.children("/queue").size());
  }
}
