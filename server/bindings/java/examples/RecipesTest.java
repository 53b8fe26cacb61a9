package examples;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.minikeeper.Fault;
import io.github.minikeeper.FaultOp;
import io.github.minikeeper.MinikeeperServer;
import io.github.minikeeper.Universe;
import io.github.minikeeper.Who;
import io.github.minikeeper.junit.Minikeeper;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.retry.RetryNTimes;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.ZooKeeper;
import org.junit.jupiter.api.Test;

/** Seven short tests. {@code docs/java.md} explains them. */
@Minikeeper
class RecipesTest {
  private static final int WITHIN_S = 30; // a limit for failures; nothing here takes that long

  // --8<-- [start:expire]
  @Test
  void lockPassesOnWhenItsHolderExpires(Universe universe, CuratorFramework holder, CuratorFramework other)
      throws Exception {
    new InterProcessMutex(holder, "/lock").acquire();

    // Returns when the znode of the lock is gone.
    universe.expire(holder.getZookeeperClient().getZooKeeper().getSessionId());

    assertTrue(new InterProcessMutex(other, "/lock").acquire(WITHIN_S, TimeUnit.SECONDS));
  }

  // --8<-- [end:expire]

  // --8<-- [start:lost-reply]
  @Test
  void createHasHappenedThoughItsReplyIsLost(Universe universe, CuratorFramework client) throws Exception {
    ZooKeeper zooKeeper = client.getZookeeperClient().getZooKeeper(); // Curator's own methods would retry
    try (Fault lost = universe.inject(Fault.loseReply().on(FaultOp.CREATE).at("/job").once())) {
      assertThrows(
          KeeperException.ConnectionLossException.class,
          () -> zooKeeper.create("/job", "mine".getBytes(), ZooDefs.Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT));
      assertEquals(1, lost.hits());
    }

    // The server has created it, though the client does not know.
    assertEquals("mine", universe.get("/job").text());
  }

  // --8<-- [end:lost-reply]

  // --8<-- [start:outage]
  @Test
  void clientSurvivesAnOutage() throws Exception {
    BlockingQueue<ConnectionState> states = new LinkedBlockingQueue<>();
    try (MinikeeperServer server = MinikeeperServer.builder().start();
        CuratorFramework client =
            CuratorFrameworkFactory.newClient(server.connectString(), new RetryNTimes(100, 100))) {
      client.getConnectionStateListenable().addListener((any, state) -> states.add(state));
      client.start();
      assertEquals(ConnectionState.CONNECTED, states.poll(WITHIN_S, TimeUnit.SECONDS));
      long session = client.getZookeeperClient().getZooKeeper().getSessionId();

      server.goDown();
      assertEquals(ConnectionState.SUSPENDED, states.poll(WITHIN_S, TimeUnit.SECONDS));
      server.comeUp();

      assertEquals(ConnectionState.RECONNECTED, states.poll(WITHIN_S, TimeUnit.SECONDS));
      assertEquals(session, client.getZookeeperClient().getZooKeeper().getSessionId());
    }
  }

  // --8<-- [end:outage]

  // --8<-- [start:verify]
  @Test
  void jobWritesOnlyUnderItsLock(Universe universe, CuratorFramework client) throws Exception {
    InterProcessMutex lock = new InterProcessMutex(client, "/locks/job");
    lock.acquire();
    client.create().forPath("/results", "done".getBytes());
    lock.release();

    universe.verify(Map.of("in_order", List.of(
        "create /locks/job/* -> OK", "create /results -> OK", "delete /locks/job/* -> OK")));
    universe.verify(Map.of("path", "/results", "op", "setData", "exactly", 0));
  }

  // --8<-- [end:verify]

  // --8<-- [start:slow]
  @Test
  void slowReadIsServedInTheEnd(Universe universe, CuratorFramework client) throws Exception {
    client.create().forPath("/config", "1".getBytes());
    CompletableFuture<String> read = new CompletableFuture<>();
    try (Fault slow = universe.inject(Fault.delay(Duration.ofMinutes(1)).on(FaultOp.GET_DATA).at("/config").once())) {
      client.getData().inBackground((any, event) -> read.complete(new String(event.getData()))).forPath("/config");
      slow.untilHit(1, Duration.ofSeconds(WITHIN_S));
      assertFalse(read.isDone());

      universe.advance(Duration.ofMinutes(1)); // serves the request at once

      assertEquals("1", read.get(WITHIN_S, TimeUnit.SECONDS));
    }
  }

  // --8<-- [end:slow]

  // --8<-- [start:ttl]
  @Test
  void resultIsGoneAfterAnHour(Universe universe, CuratorFramework client) throws Exception {
    universe.freeze(); // from here on, time passes only when the test says so
    client.create().withTtl(Duration.ofHours(1).toMillis()).withMode(CreateMode.PERSISTENT_WITH_TTL).forPath("/result");

    universe.advance(Duration.ofMinutes(59));
    assertTrue(universe.children("/").contains("result"));
    universe.advance(Duration.ofMinutes(2)); // the server looks for expired znodes once a minute

    assertFalse(universe.children("/").contains("result"));
  }

  @Test
  void silentWorkerLosesItsEphemeral(Universe universe, CuratorFramework worker) throws Exception {
    universe.freeze();
    worker.create().withMode(CreateMode.EPHEMERAL).forPath("/worker");
    universe.advance(Duration.ofHours(1)); // a connected session survives
    assertTrue(universe.children("/").contains("worker"));

    universe.silence(Who.owner("/worker")); // as if it hung: the connection stays, but the server ignores it
    universe.advance(Duration.ofHours(1));

    assertFalse(universe.children("/").contains("worker"));
  }
  // --8<-- [end:ttl]
}
