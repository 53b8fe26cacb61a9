package suite;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.net.BindException;
import java.util.List;
import java.util.concurrent.Executors;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.curator.test.BaseClassForTests;
import org.apache.curator.test.ExecuteCalledWatchingExecutorService;
import org.apache.curator.test.FailedServerStartException;
import org.apache.curator.test.TestingServer;
import org.apache.curator.test.WatchersDebug;
import org.apache.curator.test.compatibility.CuratorTestBase;
import org.apache.curator.test.compatibility.Timing2;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Isolated;

/** The base classes for tests, used as a project would. Isolated, because they set system properties. */
@Isolated
class CuratorTestBaseTest extends CuratorTestBase {
  private static final String CHECK_WATCHERS = "curator-validate-namespace-watcher-map-empty";

  @Test
  void serverRunsInEachTest() throws Exception {
    assertEquals("true", System.getProperty(CHECK_WATCHERS));
    assertEquals(10, timing.seconds());
    try (Client client = new Client(server.getConnectString()).connected()) {
      client.curator.create().forPath("/kept");
      restartServer();
      assertTrue(client.exists("/kept"));
      client.curator.getData().usingWatcher((org.apache.zookeeper.Watcher) event -> {}).forPath("/kept");
      // Curator watches the configuration too.
      assertTrue(WatchersDebug.getDataWatches(client.zooKeeper()).contains("/kept"));
      assertEquals(List.of(), WatchersDebug.getChildWatches(client.zooKeeper()));
    }
    TestingServer before = server;
    teardown();
    assertNull(server);
    assertNull(System.getProperty(CHECK_WATCHERS));
    assertThrows(IllegalStateException.class, before::restart);
  }

  /** Starts a server only the second time. */
  private static final class Unlucky extends BaseClassForTests {
    private int tries;

    @Override
    protected void createServer() throws Exception {
      tries++;
      if (tries == 1) throw new FailedServerStartException(new BindException("taken"));
      super.createServer();
    }
  }

  @Test
  void secondStartIsTriedOnce() throws Exception {
    Unlucky unlucky = new Unlucky();
    unlucky.setup();
    assertEquals(2, unlucky.tries);
    unlucky.teardown();
  }

  @Test
  void emptyQueueTimesOut() throws Exception {
    Timing2 brief = new Timing2(1, TimeUnit.MILLISECONDS);
    LinkedBlockingQueue<String> queue = new LinkedBlockingQueue<>(List.of("x"));
    assertEquals("x", brief.takeFromQueue(queue));
    assertThrows(TimeoutException.class, () -> brief.takeFromQueue(queue));
  }

  @Test
  void executorRemembersExecute() throws Exception {
    ExecuteCalledWatchingExecutorService executor =
        new ExecuteCalledWatchingExecutorService(Executors.newSingleThreadExecutor());
    assertEquals("done", executor.submit(() -> "done").get());
    assertFalse(executor.isExecuteCalled());
    executor.execute(() -> {});
    assertTrue(executor.isExecuteCalled());
    assertNotNull(executor.shutdownNow());
  }
}
