package suite;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.minikeeper.Fault;
import io.github.minikeeper.Keep;
import io.github.minikeeper.MinikeeperException;
import io.github.minikeeper.MinikeeperServer;
import io.github.minikeeper.Universe;
import io.github.minikeeper.Who;
import io.github.minikeeper.junit.Minikeeper;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.Watcher;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;

/** Verbs on sessions and faults, and waits. */
@Minikeeper
class SessionVerbsTest {
  private static final Map<String, Object> NODE_EXISTS =
      Map.of("action", "error", "error", "NODEEXISTS", "op", "create");

  /** Returns a client whose session belongs to this universe, because it has sent a path. */
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
      // Sends nothing while silenced: the server would drop it, and the client would wait for the reply.
      assertEquals(1, universe.unsilence(who));
      assertFalse(universe.sessions().get(0).isSilenced());
      assertTrue(client.exists("/"));
    }
  }

  @Test
  void autoAdvanceMovesTheClockWhenClientsAreIdle(Universe universe) throws Exception {
    try (Client client = inside(universe)) {
      client.curator.create().withMode(CreateMode.EPHEMERAL).forPath("/mine");
      universe.freeze();
      Duration before = universe.now().elapsed();
      // A session that is not silenced would live on, however far the clock moves.
      universe.silence(Who.session(client.session()));
      universe.autoAdvance(Duration.ofMillis(100));
      universe.untilChildren("/", 1, Client.PATIENCE);
      universe.autoAdvance(null);
      // On the frozen clock, the session would never have expired without autoAdvance.
      assertTrue(universe.now().elapsed().compareTo(before.plusSeconds(25)) > 0);
    }
  }

  @Test
  void verbWithoutAMatchIsAnError(Universe universe) {
    List<Who> nobody =
        List.of(Who.session(1), Who.address("127.0.0.1:1"), Who.identity("digest:x"), Who.owner("/x"));
    List<Function<Who, Long>> verbs =
        List.of(universe::expire, universe::disconnect, universe::silence, universe::unsilence);
    for (Who who : nobody) {
      for (Function<Who, Long> verb : verbs) {
        assertEquals(404, assertThrows(MinikeeperException.class, () -> verb.apply(who)).status());
        assertEquals(0, verb.apply(who.allowNone()));
      }
    }
    List<Executable> missing = List.of(
        () -> universe.get("/x"),
        () -> universe.children("/x"),
        () -> universe.restore(999),
        () -> universe.dropSnapshot(999),
        () -> universe.dropUniverse("nobodys"));
    for (Executable verb : missing) assertEquals(404, assertThrows(MinikeeperException.class, verb).status());
    Map<String, Object> never = Map.of("action", "cut", "path", "/x");
    MinikeeperException error = assertThrows(MinikeeperException.class, () -> {
      try (Fault fault = universe.inject(never)) {
        assertEquals(0, fault.hits());
      }
    });
    assertEquals(409, error.status());
    assertTrue(error.getMessage().contains("never acted"), error.getMessage());
    try (Fault fault = universe.inject(Map.of("action", "cut", "path", "/x", "optional", true))) {
      assertEquals(0, fault.hits());
    }
    // Closing a fault that was already removed does nothing.
    try (Fault fault = universe.inject(never)) {
      universe.resetFaults();
      assertThrows(MinikeeperException.class, fault::hits);
    }
  }

  @Test
  void misuseSaysWhatToDo(Universe universe) {
    Map<Executable, String> cases = Map.of(
        () -> universe.inject(Map.of("action", "drop")), "drop-request",
        () -> universe.inject(Map.of("action", "error", "error", "NOSUCH")), "NONODE",
        () -> universe.inject(Map.of("action", "cut", "op", "getdata")), "getData",
        () -> universe.inject(Map.of("action", "cut", "path", "/q/")), "write /q for the znode",
        () -> universe.inject(Map.of("action", "refuse")), "server's own universe",
        () -> universe.untilChildren("/q/", 0, Client.PATIENCE), "slash",
        universe::goDown, "the whole server",
        () -> universe.comeUp(Keep.EVERYTHING), "the whole server",
        () -> universe.restart(Keep.EVERYTHING), "the whole server",
        universe::save, "the whole server");
    cases.forEach((call, words) -> {
      MinikeeperException error = assertThrows(MinikeeperException.class, call);
      assertEquals(400, error.status(), error.getMessage());
      assertTrue(error.getMessage().contains(words), error.getMessage());
    });
  }

  @Test
  void sessionWithoutAUniverseYetIsFound() throws Exception {
    try (MinikeeperServer server = MinikeeperServer.builder().start()) {
      Universe mine = server.createUniverse("mine");
      try (Client client = new Client(mine.connectString()).connected()) {
        mine.untilSessions(1, Client.PATIENCE);
        assertEquals(client.session(), mine.sessions().get(0).id());
        assertEquals(1, mine.expire(client.session()));
        client.awaitNext(ConnectionState.SUSPENDED);
        client.awaitNext(ConnectionState.LOST);
      }
    }
  }

  @Test
  void ensureReadyBringsUpAServerThatWasLeftDown() throws Exception {
    try (MinikeeperServer server = MinikeeperServer.builder().start()) {
      server.goDown();
      server.ensureReady();
      Universe.at("127.0.0.1:" + server.port(), null).goDown();
      server.ensureReady();
      server.freeze();
      server.inject(Map.of("action", "cut", "op", "connect"));
      server.ensureReady();
      assertEquals(List.of(), server.faults());
      assertFalse(server.now().isFrozen());
      new Client(server.connectString()).connected().close();
    }
  }

  @Test
  void faultsAreRemovedOneByOneOrTogether(Universe universe) throws Exception {
    try (Client client = inside(universe)) {
      Fault fault = universe.inject(NODE_EXISTS);
      assertThrows(KeeperException.NodeExistsException.class, () -> client.curator.create().forPath("/a"));
      assertEquals(1L, universe.faults().get(0).hits());
      assertEquals(1, universe.removeFault(fault));
      assertEquals(1, fault.hits());
      client.curator.create().forPath("/a");
      universe.inject(NODE_EXISTS);
      universe.inject(NODE_EXISTS);
      universe.resetFaults();
      assertEquals(List.of(), universe.faults());
      client.curator.create().forPath("/b");
    }
  }

  @Test
  void waitsReturnWhenTheirConditionHolds(Universe universe) throws Exception {
    try (Client client = inside(universe)) {
      client.curator.getChildren().usingWatcher((Watcher) event -> {}).forPath("/");
      universe.untilWatched("/", Client.PATIENCE);
      InterProcessMutex lock = new InterProcessMutex(client.curator, "/lock");
      lock.acquire();
      universe.untilContenders("/lock", 1, Client.PATIENCE);
      universe.untilChildren("/", 2, Client.PATIENCE);
      universe.untilSessions(1, Client.PATIENCE);
      universe.untilIdle(Duration.ofMillis(1), Client.PATIENCE);
      lock.release();
    }
  }
}
