package suite;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.platform.engine.discovery.DiscoverySelectors.selectClass;

import io.github.minikeeper.SweepFault;
import io.github.minikeeper.Universe;
import io.github.minikeeper.junit.Allow;
import io.github.minikeeper.junit.LeaveOut;
import io.github.minikeeper.junit.Minikeeper;
import io.github.minikeeper.junit.MinikeeperSweep;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.curator.framework.CuratorFramework;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;

/** What a run of a sweep is to JUnit, and the elements of {@code @MinikeeperSweep}. */
class SweepRunsTest {
  /** Runs a class that has one sweep. Returns why it failed, or null. */
  private static String sweep(Class<?> type) {
    List<String> tests = new ArrayList<>();
    List<String> failures = new ArrayList<>();
    TestExecutionListener listener = new TestExecutionListener() {
      @Override
      public void executionFinished(TestIdentifier test, TestExecutionResult result) {
        if (test.isTest()) tests.add(test.getDisplayName());
        result.getThrowable().ifPresent(error -> failures.add(error.toString()));
      }
    };
    LauncherFactory.create().execute(
        LauncherDiscoveryRequestBuilder.request()
            .selectors(selectClass(type))
            .configurationParameter("minikeeper.stories", "off")
            .configurationParameter("junit.jupiter.execution.parallel.enabled", "false")
            .build(),
        listener);
    assertTrue(tests.size() <= 1, tests::toString);
    assertTrue(failures.size() <= 1, failures::toString);
    return failures.isEmpty() ? null : failures.get(0);
  }

  private static void assertClean(Class<?> type) {
    assertNull(sweep(type));
  }

  private static void assertFails(Class<?> type, String... parts) {
    String failure = String.valueOf(sweep(type));
    for (String part : parts) assertTrue(failure.contains(part), () -> part + " is missing in " + failure);
  }

  private static void createIfAbsent(CuratorFramework client, String path) throws Exception {
    try {
      client.create().forPath(path);
    } catch (KeeperException.NodeExistsException exists) {
      // The reply was lost.
    }
  }

  /** Counts how often JUnit calls it, and how many runs are done at a time. */
  static class Counting implements BeforeAllCallback, BeforeEachCallback {
    static final AtomicInteger ALL = new AtomicInteger();
    static final AtomicInteger EACH = new AtomicInteger();

    @Override
    public void beforeAll(ExtensionContext context) {
      ALL.incrementAndGet();
    }

    @Override
    public void beforeEach(ExtensionContext context) {
      EACH.incrementAndGet();
    }
  }

  @Minikeeper
  @ExtendWith(Counting.class)
  static class Overlapping {
    static final AtomicInteger BEFORE_ALL = new AtomicInteger();
    static final AtomicInteger AFTER_ALL = new AtomicInteger();
    static final AtomicInteger BEFORE_EACH = new AtomicInteger();
    static final AtomicInteger AFTER_EACH = new AtomicInteger();
    static final Set<Object> INSTANCES = ConcurrentHashMap.newKeySet();
    static final Set<Optional<SweepFault>> FAULTS = ConcurrentHashMap.newKeySet();
    static final CountDownLatch TWO = new CountDownLatch(2);
    final Universe universe;

    Overlapping(Universe universe) {
      this.universe = universe;
    }

    @BeforeAll
    static void beforeAll() {
      BEFORE_ALL.incrementAndGet();
    }

    @AfterAll
    static void afterAll() {
      AFTER_ALL.incrementAndGet();
    }

    @BeforeEach
    void setUp(Universe same) {
      assertEquals(universe, same);
      BEFORE_EACH.incrementAndGet();
      assertEquals(1, BEFORE_ALL.get());
      assertEquals(0, AFTER_ALL.get());
    }

    @AfterEach
    void tearDown(Universe same) {
      assertEquals(universe, same);
      AFTER_EACH.incrementAndGet();
    }

    @MinikeeperSweep(faults = {SweepFault.REPLY_LOST, SweepFault.REQUEST_LOST}, jobs = 3)
    void sweep(CuratorFramework client, Universe same) throws Exception {
      assertEquals(universe, same);
      INSTANCES.add(this);
      FAULTS.add(universe.fault());
      for (String path : List.of("/a", "/b")) createIfAbsent(client, path);
      if (universe.fault().isEmpty()) return;
      // Two runs are here at the same time.
      TWO.countDown();
      assertTrue(TWO.await(60, TimeUnit.SECONDS), "no other run");
    }
  }

  @Test
  void runsOverlapInOneLaunch() {
    assertClean(Overlapping.class);
    assertEquals(1, Overlapping.BEFORE_ALL.get());
    assertEquals(1, Overlapping.AFTER_ALL.get());
    int runs = Overlapping.INSTANCES.size();
    assertTrue(runs >= 4, runs + " runs");
    assertEquals(runs, Overlapping.BEFORE_EACH.get());
    assertEquals(runs, Overlapping.AFTER_EACH.get());
    // Extensions begin once more for all runs, and are asked for each.
    assertEquals(2, Counting.ALL.get());
    assertEquals(runs + 1, Counting.EACH.get());
    assertEquals(
        Set.of(Optional.empty(), Optional.of(SweepFault.REPLY_LOST), Optional.of(SweepFault.REQUEST_LOST)), Overlapping.FAULTS);
  }

  /** Fails if two runs are done at the same time. */
  private static void alone(AtomicInteger now, Universe universe) {
    assertEquals(1, now.incrementAndGet());
    universe.children("/");
    now.decrementAndGet();
  }

  @Minikeeper
  static class OneAfterTheOther {
    static final AtomicInteger NOW = new AtomicInteger();

    @MinikeeperSweep(faults = {SweepFault.REPLY_LOST, SweepFault.REQUEST_LOST}, jobs = 1)
    void sweep(CuratorFramework client, Universe universe) throws Exception {
      client.checkExists().forPath("/a");
      alone(NOW, universe);
    }
  }

  @Minikeeper
  @Execution(ExecutionMode.SAME_THREAD)
  static class OnOneThread {
    static final AtomicInteger NOW = new AtomicInteger();

    @MinikeeperSweep(faults = {SweepFault.REPLY_LOST, SweepFault.REQUEST_LOST})
    void sweep(CuratorFramework client, Universe universe) throws Exception {
      client.checkExists().forPath("/a");
      alone(NOW, universe);
    }
  }

  @Minikeeper
  @TestInstance(TestInstance.Lifecycle.PER_CLASS)
  static class SharedInstance {
    static final Set<Object> INSTANCES = ConcurrentHashMap.newKeySet();
    final AtomicInteger now = new AtomicInteger();
    boolean isSetUp;

    @BeforeAll
    void beforeAll() {
      assertFalse(isSetUp);
      isSetUp = true;
    }

    @MinikeeperSweep(faults = {SweepFault.REPLY_LOST, SweepFault.REQUEST_LOST})
    void sweep(CuratorFramework client, Universe universe) throws Exception {
      assertTrue(isSetUp);
      INSTANCES.add(this);
      client.checkExists().forPath("/a");
      alone(now, universe);
    }
  }

  @Test
  void runsThatShareSomethingAreDoneOneAfterTheOther() {
    assertClean(OneAfterTheOther.class);
    assertClean(OnOneThread.class);
    assertClean(SharedInstance.class);
    assertEquals(1, SharedInstance.INSTANCES.size());
  }

  @Minikeeper
  static class InANestedClass {
    final CuratorFramework client;

    InANestedClass(CuratorFramework client) {
      this.client = client;
    }

    @Nested
    class Inner {
      @MinikeeperSweep(faults = SweepFault.REPLY_LOST)
      void sweep(CuratorFramework same) throws Exception {
        assertEquals(client, same);
        client.checkExists().forPath("/a");
      }
    }
  }

  @Test
  void sweepOfANestedClassRuns() {
    assertClean(InANestedClass.class);
  }

  @Minikeeper
  static class FailsInItsConstructor {
    FailsInItsConstructor(Universe universe, CuratorFramework client) throws Exception {
      client.checkExists().forPath("/a");
      if (universe.fault().isPresent()) throw new IllegalStateException("of the constructor");
    }

    @MinikeeperSweep(faults = SweepFault.REPLY_LOST)
    void sweep() {}
  }

  static class FailsInAnExtension implements BeforeEachCallback {
    @Override
    public void beforeEach(ExtensionContext context) {
      if (context.getDisplayName().contains("reply-lost")) throw new IllegalStateException("of the extension");
    }
  }

  @Minikeeper
  @ExtendWith(FailsInAnExtension.class)
  static class HasAnExtensionThatFails {
    @MinikeeperSweep(faults = SweepFault.REPLY_LOST)
    void sweep(CuratorFramework client) throws Exception {
      client.checkExists().forPath("/a");
    }
  }

  /** The runs are in no report, so that the sweep must see all that JUnit does. */
  @Test
  void failureOutsideOfTheTestIsOneOfTheRun() {
    assertFails(FailsInItsConstructor.class, "The test fails: java.lang.IllegalStateException: of the constructor");
    assertFails(HasAnExtensionThatFails.class, "The test fails: java.lang.IllegalStateException: of the extension");
  }

  @Minikeeper
  static class IsTimedOut {
    @MinikeeperSweep(faults = SweepFault.REPLY_LOST)
    @Timeout(5)
    void sweep(Universe universe, CuratorFramework client) throws Exception {
      client.checkExists().forPath("/a");
      if (universe.fault().isPresent()) new CountDownLatch(1).await();
    }
  }

  @Test
  void timeoutOfJUnitIsThatOfARun() {
    assertFails(IsTimedOut.class, "1 of 1 points tried: 0 passed, 1 failed, 0 hung", "timed out after 5 seconds");
  }

  /** Does a job in two steps, and goes on where it has died. */
  @Minikeeper
  static class Resumes {
    static final AtomicInteger STARTS = new AtomicInteger();
    static final AtomicInteger TORN_DOWN = new AtomicInteger();
    static final Set<Long> SESSIONS = ConcurrentHashMap.newKeySet();
    private final List<String> own = new ArrayList<>();

    @AfterEach
    void tearDown() {
      TORN_DOWN.incrementAndGet();
    }

    @MinikeeperSweep(faults = SweepFault.CLIENT_CRASH)
    void sweep(Universe universe, CuratorFramework client) throws Exception {
      STARTS.incrementAndGet();
      SESSIONS.add(client.getZookeeperClient().getZooKeeper().getSessionId());
      assertEquals(List.of(), own);
      for (String path : List.of("/job", "/done")) {
        own.add(path);
        if (client.checkExists().forPath(path) == null) client.create().forPath(path);
      }
      assertTrue(universe.children("/").containsAll(List.of("job", "done")));
    }
  }

  @Minikeeper
  static class DoesNotResume {
    @MinikeeperSweep(faults = SweepFault.CLIENT_CRASH)
    void sweep(CuratorFramework client) throws Exception {
      client.create().forPath("/job");
    }
  }

  /** Goes on when it is interrupted, as retries do. */
  @Minikeeper
  static class IgnoresItsDeath {
    @MinikeeperSweep(faults = SweepFault.CLIENT_CRASH)
    void sweep(CuratorFramework client) throws Exception {
      while (client.checkExists().forPath("/job") == null) {
        try {
          client.create().forPath("/job");
        } catch (InterruptedException | KeeperException.ConnectionLossException ignored) {
          // Again.
        }
      }
    }
  }

  @Test
  void testWhoseClientsDieBeginsAgainInItsUniverse() {
    assertClean(Resumes.class);
    // A process that dies does not clean up.
    assertTrue(Resumes.STARTS.get() >= Resumes.TORN_DOWN.get() + 2, Resumes.STARTS + " starts");
    assertEquals(Resumes.STARTS.get(), Resumes.SESSIONS.size());
    assertFails(
        DoesNotResume.class,
        "The test fails: org.apache.zookeeper.KeeperException$NodeExistsException",
        "only='client-crash:1:create");
    assertClean(IgnoresItsDeath.class);
  }

  /** Its counter is wrong if a reply is lost. */
  private static void count(Universe universe, CuratorFramework client) throws Exception {
    universe.seed(Map.of("/visits", "0"));
    client.setData().forPath("/visits", "1".getBytes());
    client.create().withMode(CreateMode.PERSISTENT_SEQUENTIAL).forPath("/visit-");
    if (universe.children("/").size() > 3) throw new IllegalStateException("counted twice");
  }

  @Minikeeper
  static class AllowsAFailure {
    @MinikeeperSweep(
        faults = {SweepFault.REPLY_LOST, SweepFault.REQUEST_LOST},
        allow = @Allow(fault = SweepFault.REPLY_LOST, raises = IllegalStateException.class, op = "create2", path = "/visit-",
            reason = "it is counted twice"))
    void sweep(Universe universe, CuratorFramework client) throws Exception {
      count(universe, client);
    }
  }

  @Minikeeper
  static class AllowsAnotherFailure {
    @MinikeeperSweep(
        faults = SweepFault.REPLY_LOST,
        allow = @Allow(fault = SweepFault.REPLY_LOST, message = "lost", reason = "it may be lost"))
    void sweep(Universe universe, CuratorFramework client) throws Exception {
      count(universe, client);
    }
  }

  @Minikeeper
  static class LeavesOutAPoint {
    @MinikeeperSweep(
        faults = {SweepFault.REPLY_LOST, SweepFault.REQUEST_LOST},
        leaveOut = @LeaveOut(fault = SweepFault.REPLY_LOST, op = "create2", client = 1, reason = "it is counted twice"))
    void sweep(Universe universe, CuratorFramework client) throws Exception {
      count(universe, client);
    }
  }

  @Test
  void expectedFailuresAndPointsLeftOutDoNotBreakASweep() {
    assertClean(AllowsAFailure.class);
    assertFails(AllowsAnotherFailure.class, "counted twice");
    assertClean(LeavesOutAPoint.class);
  }

  @Minikeeper
  static class ReachesItsGoal {
    @MinikeeperSweep(faults = SweepFault.REPLY_LOST)
    void sweep(Universe universe, CuratorFramework client) throws Exception {
      client.checkExists().forPath("/a");
      universe.sometimes("a reply is lost", universe.fault().isPresent());
    }
  }

  @Minikeeper
  static class MissesItsGoal {
    @MinikeeperSweep(faults = SweepFault.REPLY_LOST)
    void sweep(Universe universe, CuratorFramework client) throws Exception {
      client.checkExists().forPath("/a");
      universe.sometimes("it is dark", false);
    }
  }

  @Test
  void goalThatNoRunReachesMakesASweepIncomplete() {
    assertClean(ReachesItsGoal.class);
    assertFails(MissesItsGoal.class, "minikeeper sweep: incomplete (", "it is dark");
  }

  @Minikeeper
  static class EndsWithTheFirstFailure {
    static final Set<String> FAILED = new HashSet<>();

    @MinikeeperSweep(first = true, jobs = 1, faults = SweepFault.REQUEST_LOST)
    void sweep(Universe universe, CuratorFramework client) throws Exception {
      for (String path : List.of("/a", "/b", "/c", "/d")) createIfAbsent(client, path);
      if (universe.fault().isEmpty()) return;
      FAILED.add(universe.sweepFaults().points());
      throw new IllegalStateException("of any fault");
    }
  }

  @Test
  void sweepEndsWithTheFirstFailure() {
    assertFails(EndsWithTheFirstFailure.class, "of any fault");
    assertEquals(1, EndsWithTheFirstFailure.FAILED.size());
  }

  @Minikeeper
  static class LeavesAnOrphan {
    @MinikeeperSweep(faults = SweepFault.REPLY_LOST, compare = true)
    void sweep(Universe universe, CuratorFramework client) throws Exception {
      client.create().withMode(CreateMode.PERSISTENT_SEQUENTIAL).forPath("/n-");
    }
  }

  @Test
  void whatARunLeavesIsCompared() {
    assertFails(LeavesAnOrphan.class, "minikeeper sweep: failed", "only='reply-lost:1:create2:1:/n-'");
  }

  @Minikeeper
  static class SitsOutages {
    @MinikeeperSweep(faults = {SweepFault.OUTAGE, SweepFault.CLIENT_OUTAGE}, outageMillis = 20)
    void sweep(Universe universe, CuratorFramework client) throws Exception {
      universe.seed(Map.of("/a", "1"));
      assertEquals("1", new String(client.getData().forPath("/a")));
    }
  }

  @Minikeeper
  static class LosesTwoChanges {
    static final Set<Integer> SEEN = ConcurrentHashMap.newKeySet();

    @MinikeeperSweep(faults = SweepFault.ROLLBACK, rollback = 2)
    void sweep(Universe universe, CuratorFramework client) throws Exception {
      for (String path : List.of("/a", "/b", "/c")) client.create().forPath(path);
      client.sync().forPath("/");
      SEEN.add(universe.children("/").size());
    }
  }

  @Test
  void outagesAndRollbacksAreAsLongAsTheyAreSaidToBe() {
    assertClean(SitsOutages.class);
    assertClean(LosesTwoChanges.class);
    // All three and "zookeeper"; the last two are gone.
    assertTrue(LosesTwoChanges.SEEN.containsAll(Set.of(4, 2)), LosesTwoChanges.SEEN::toString);
  }
}
