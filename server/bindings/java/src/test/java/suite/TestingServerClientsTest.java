package suite;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.minikeeper.MinikeeperException;
import io.github.minikeeper.Who;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.recipes.cache.CuratorCache;
import org.apache.curator.framework.recipes.cache.CuratorCacheListener;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.test.InstanceSpec;
import org.apache.curator.test.TestingServer;
import org.apache.curator.test.Timing;
import org.apache.zookeeper.CreateMode;
import org.junit.jupiter.api.Test;

/** What Curator's clients see when a server stops, starts and restarts. */
class TestingServerClientsTest {
  private static TestingServer withShortSessions() throws Exception {
    return new TestingServer(InstanceSpec.builder().withPort(0).withTickTime(200).build(), true);
  }

  @Test
  void clientIsSuspendedWhileTheServerIsDownAndReconnects() throws Exception {
    try (TestingServer server = new TestingServer();
        Client client = new Client(server.getConnectString()).connected()) {
      server.stop();
      client.awaitNext(ConnectionState.SUSPENDED);
      server.restart();
      client.awaitNext(ConnectionState.RECONNECTED);
    }
  }

  @Test
  void sessionSurvivesARestart() throws Exception {
    try (TestingServer server = new TestingServer();
        Client client = new Client(server.getConnectString()).connected();
        Client other = new Client(server.getConnectString()).connected()) {
      long session = client.session();
      client.curator.create().withMode(CreateMode.EPHEMERAL).forPath("/here");
      server.restart();
      client.await(ConnectionState.RECONNECTED);
      assertEquals(session, client.session());
      assertTrue(other.exists("/here"));
    }
  }

  @Test
  void clientIsLostWhenTheServerStaysDown() throws Exception {
    try (TestingServer server = withShortSessions();
        Client client = new Client(server.getConnectString(), 1_000).connected()) {
      server.stop();
      client.awaitNext(ConnectionState.SUSPENDED);
      client.awaitNext(ConnectionState.LOST);
      server.restart();
      client.awaitNext(ConnectionState.RECONNECTED);
    }
  }

  @Test
  void lockIsHeldAcrossARestart() throws Exception {
    Timing timing = new Timing();
    try (TestingServer server = new TestingServer();
        Client holder = new Client(server.getConnectString()).connected();
        Client other = new Client(server.getConnectString()).connected()) {
      InterProcessMutex held = new InterProcessMutex(holder.curator, "/lock");
      InterProcessMutex wanted = new InterProcessMutex(other.curator, "/lock");
      assertTrue(held.acquire(timing.forWaiting().seconds(), TimeUnit.SECONDS));
      server.restart();
      holder.await(ConnectionState.RECONNECTED);
      other.await(ConnectionState.RECONNECTED);
      assertFalse(wanted.acquire(100, TimeUnit.MILLISECONDS), "the lock was lost in the restart");
      held.release();
      assertTrue(wanted.acquire(timing.forWaiting().seconds(), TimeUnit.SECONDS));
    }
  }

  @Test
  void cacheSeesChangesAfterARestart() throws Exception {
    CountDownLatch seen = new CountDownLatch(1);
    try (TestingServer server = new TestingServer();
        Client client = new Client(server.getConnectString()).connected();
        Client other = new Client(server.getConnectString()).connected();
        CuratorCache cache = CuratorCache.build(client.curator, "/cached")) {
      CountDownLatch ready = new CountDownLatch(1);
      cache.listenable().addListener(CuratorCacheListener.builder()
          .forInitialized(ready::countDown)
          .forCreates(node -> seen.countDown())
          .build());
      cache.start();
      assertTrue(new Timing().awaitLatch(ready));
      server.restart();
      other.await(ConnectionState.RECONNECTED);
      other.curator.create().forPath("/cached");
      assertTrue(new Timing().awaitLatch(seen));
    }
  }

  @Test
  void disconnectedClientIsSuspendedAndKeepsItsSession() throws Exception {
    try (TestingServer server = new TestingServer();
        Client client = new Client(server.getConnectString()).connected();
        Client other = new Client(server.getConnectString()).connected()) {
      client.curator.create().withMode(CreateMode.EPHEMERAL).forPath("/mine");
      long session = client.session();
      assertEquals(1, server.minikeeper().disconnect(session));
      client.awaitNext(ConnectionState.SUSPENDED);
      client.awaitNext(ConnectionState.RECONNECTED);
      assertEquals(session, client.session());
      assertTrue(other.exists("/mine"));
    }
  }

  @Test
  void ownerOfAPathIsDisconnected() throws Exception {
    try (TestingServer server = new TestingServer();
        Client client = new Client(server.getConnectString()).connected()) {
      client.curator.create().withMode(CreateMode.EPHEMERAL).forPath("/mine");
      try {
        assertEquals(1, server.minikeeper().disconnect(Who.owner("/mine")));
      } catch (MinikeeperException error) {
        Verbs.skipIfNotYet(error);
      }
      client.awaitNext(ConnectionState.SUSPENDED);
      client.awaitNext(ConnectionState.RECONNECTED);
    }
  }

  @Test
  void newServerOnTheSamePortHasNoSessions() throws Exception {
    int port;
    try (Client client = new Client("127.0.0.1:" + (port = InstanceSpec.getRandomPort()))) {
      long session;
      try (TestingServer server = new TestingServer(port)) {
        client.connected();
        session = client.session();
      }
      client.awaitNext(ConnectionState.SUSPENDED);
      try (TestingServer server = new TestingServer(port)) {
        client.awaitNext(ConnectionState.LOST);
        client.awaitNext(ConnectionState.RECONNECTED);
        assertNotEquals(session, client.session());
      }
    }
  }
}
