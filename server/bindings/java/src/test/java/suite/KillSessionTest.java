package suite;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.minikeeper.Who;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.nodes.PersistentNode;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.test.KillSession;
import org.apache.curator.test.TestingServer;
import org.apache.curator.test.Timing;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.ZooKeeper;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** What Curator's clients see when a session ends on the server. */
class KillSessionTest {
  private final Timing timing = new Timing();
  private TestingServer server;
  private Client victim;
  private Client witness;

  @BeforeEach
  void connect() throws Exception {
    server = new TestingServer();
    victim = new Client(server.getConnectString()).connected();
    witness = new Client(server.getConnectString()).connected();
  }

  @AfterEach
  void close() throws Exception {
    victim.close();
    witness.close();
    server.close();
  }

  @Test
  void ephemeralIsDeletedWhenKillReturns() throws Exception {
    victim.curator.create().withMode(CreateMode.EPHEMERAL).forPath("/gone");
    KillSession.kill(victim.zooKeeper());
    assertFalse(witness.exists("/gone"));
  }

  @Test
  void killByConnectStringDoesTheSame() throws Exception {
    victim.curator.create().withMode(CreateMode.EPHEMERAL).forPath("/gone");
    ZooKeeper zooKeeper = victim.zooKeeper();
    KillSession.kill(zooKeeper, server.getConnectString(), 1_000);
    assertFalse(witness.exists("/gone"));
    assertFalse(zooKeeper.getState().isAlive());
  }

  /** Curator's never fails: a session that has ended, or a server that is not there, used to be an error here. */
  @Test
  void killIsSilentWhateverHasEnded() throws Exception {
    ZooKeeper killed = victim.zooKeeper();
    KillSession.kill(killed);
    killAgain(killed, server.getConnectString());

    ZooKeeper closed = new ZooKeeper(server.getConnectString(), 10_000, event -> {});
    closed.close();
    killAgain(closed, server.getConnectString());

    ZooKeeper expired = witness.zooKeeper();
    server.minikeeper().expire(Who.session(expired.getSessionId()));
    killAgain(expired, server.getConnectString());

    victim.await(ConnectionState.RECONNECTED);
    server.stop();
    ZooKeeper stopped = victim.zooKeeper();
    killAgain(stopped, server.getConnectString());
    assertFalse(stopped.getState().isAlive());
    server.start();
    victim.await(ConnectionState.RECONNECTED);
  }

  private static void killAgain(ZooKeeper client, String connectString) throws Exception {
    KillSession.kill(client);
    KillSession.kill(client, connectString);
    KillSession.kill(client, connectString, 1_000);
  }

  /** Tests of Curator go on with the client at once; it used to learn of the end only when it had reconnected. */
  @Test
  void clientKnowsWhenKillReturns() throws Exception {
    ZooKeeper zooKeeper = victim.zooKeeper();
    KillSession.kill(zooKeeper);
    assertFalse(zooKeeper.getState().isAlive());
  }

  /** In Curator, the client is never SUSPENDED. */
  @Test
  void killedClientIsLostAndReconnectsWithAnotherSession() throws Exception {
    long session = victim.session();
    KillSession.kill(victim.zooKeeper());
    victim.awaitNext(ConnectionState.LOST);
    victim.awaitNext(ConnectionState.RECONNECTED);
    assertNotEquals(session, victim.session());
  }

  @Test
  void otherClientsKeepTheirSessions() throws Exception {
    long session = witness.session();
    witness.curator.create().withMode(CreateMode.EPHEMERAL).forPath("/stays");
    KillSession.kill(victim.zooKeeper());
    victim.await(ConnectionState.LOST);
    assertTrue(witness.exists("/stays"));
    assertEquals(session, witness.session());
  }

  @Test
  void watcherIsNotified() throws Exception {
    victim.curator.create().withMode(CreateMode.EPHEMERAL).forPath("/watched");
    CountDownLatch notified = new CountDownLatch(1);
    witness.curator
        .getData()
        .usingWatcher((org.apache.zookeeper.Watcher) event -> notified.countDown())
        .forPath("/watched");
    KillSession.kill(victim.zooKeeper());
    assertTrue(timing.awaitLatch(notified));
  }

  @Test
  void lockOfAKilledHolderPassesOn() throws Exception {
    InterProcessMutex held = new InterProcessMutex(victim.curator, "/lock");
    InterProcessMutex wanted = new InterProcessMutex(witness.curator, "/lock");
    assertTrue(held.acquire(timing.forWaiting().seconds(), TimeUnit.SECONDS));
    assertFalse(wanted.acquire(0, TimeUnit.SECONDS));
    KillSession.kill(victim.zooKeeper());
    assertTrue(wanted.acquire(timing.forWaiting().seconds(), TimeUnit.SECONDS));
  }

  @Test
  void leaderLatchFailsOver() throws Exception {
    try (LeaderLatch first = new LeaderLatch(victim.curator, "/leader");
        LeaderLatch second = new LeaderLatch(witness.curator, "/leader")) {
      first.start();
      assertTrue(first.await(timing.forWaiting().seconds(), TimeUnit.SECONDS));
      second.start();
      Await.until("two participants", () -> second.getParticipants().size() == 2);
      assertFalse(second.hasLeadership());
      KillSession.kill(victim.zooKeeper());
      assertTrue(second.await(timing.forWaiting().seconds(), TimeUnit.SECONDS));
      Await.until("the first has given up", () -> !first.hasLeadership());
    }
  }

  @Test
  void persistentNodeComesBack() throws Exception {
    try (PersistentNode node =
        new PersistentNode(victim.curator, CreateMode.EPHEMERAL, false, "/always", "x".getBytes())) {
      node.start();
      assertTrue(node.waitForInitialCreate(timing.forWaiting().seconds(), TimeUnit.SECONDS));
      KillSession.kill(victim.zooKeeper());
      victim.await(ConnectionState.RECONNECTED);
      Await.until("the znode", () -> witness.exists("/always"));
      assertArrayEquals("x".getBytes(), witness.curator.getData().forPath("/always"));
    }
  }
}
