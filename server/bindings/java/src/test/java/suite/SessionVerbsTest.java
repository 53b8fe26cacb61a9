package suite;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.minikeeper.Fault;
import io.github.minikeeper.Universe;
import io.github.minikeeper.Who;
import io.github.minikeeper.junit.Minikeeper;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.Watcher;
import org.junit.jupiter.api.Test;

/** What a test does to a client, and what it waits for. */
@Minikeeper
class SessionVerbsTest {
  private static final Map<String, Object> NODE_EXISTS =
      Map.of("action", "error", "error", "NODEEXISTS", "op", "create");

  /** A client whose session is known to be this universe's: its first path says so. */
  private static Client inside(Universe universe) throws Exception {
    Client client = new Client(universe.connectString()).connected();
    client.exists("/");
    return client;
  }

  @Test
  void disconnectedClientsKeepTheirSessions(Universe universe) throws Exception {
    try (Client client = inside(universe)) {
      long session = client.session();
      universe.disconnectAll();
      client.awaitNext(ConnectionState.SUSPENDED);
      client.awaitNext(ConnectionState.RECONNECTED);
      assertEquals(session, client.session());
    }
  }

  @Test
  void silencedClientIsServedAgain(Universe universe) throws Exception {
    try (Client client = inside(universe)) {
      Who who = Who.session(client.session());
      assertEquals(1, universe.silence(who));
      assertTrue(universe.sessions().get(0).isSilenced());
      // What was sent meanwhile would be lost, and the client wait for it.
      assertEquals(1, universe.unsilence(who));
      assertFalse(universe.sessions().get(0).isSilenced());
      assertTrue(client.exists("/"));
    }
  }

  @Test
  void frozenTimeMovesByItselfWhenNobodyAsks(Universe universe) throws Exception {
    try (Client client = inside(universe)) {
      client.curator.create().withMode(CreateMode.EPHEMERAL).forPath("/mine");
      universe.freeze();
      Duration before = universe.now().elapsed();
      universe.autoAdvance(Duration.ofMillis(100));
      universe.untilChildren("/", 1, Client.PATIENCE);
      universe.autoAdvance(null);
      // The clock stood still: without being moved the session would be there for ever.
      assertTrue(universe.now().elapsed().compareTo(before.plusSeconds(25)) > 0);
    }
  }

  @Test
  void faultsAreTakenBackOneByOneOrTogether(Universe universe) throws Exception {
    try (Client client = inside(universe)) {
      Fault fault = universe.inject(NODE_EXISTS);
      assertThrows(KeeperException.NodeExistsException.class, () -> client.curator.create().forPath("/a"));
      assertEquals(1L, universe.faults().get(0).get("hits"));
      universe.removeFault(fault);
      client.curator.create().forPath("/a");
      universe.inject(NODE_EXISTS);
      universe.inject(NODE_EXISTS);
      universe.resetFaults();
      assertEquals(List.of(), universe.faults());
      client.curator.create().forPath("/b");
    }
  }

  @Test
  void waitsReturnWhenItIsSo(Universe universe) throws Exception {
    try (Client client = inside(universe)) {
      client.curator.getChildren().usingWatcher((Watcher) event -> {}).forPath("/");
      universe.untilWatched("/", Client.PATIENCE);
      InterProcessMutex lock = new InterProcessMutex(client.curator, "/lock");
      lock.acquire();
      universe.untilContenders("/lock", 1, Client.PATIENCE);
      universe.untilChildren("/", 2, Client.PATIENCE);
      universe.untilIdle(Duration.ofMillis(1), Client.PATIENCE);
      lock.release();
    }
  }
}
