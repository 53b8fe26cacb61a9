package suite;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.minikeeper.Keep;
import io.github.minikeeper.LastOperation;
import io.github.minikeeper.MinikeeperException;
import io.github.minikeeper.MinikeeperServer;
import io.github.minikeeper.Session;
import io.github.minikeeper.Universe;
import io.github.minikeeper.Who;
import io.github.minikeeper.junit.Minikeeper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.ConnectException;
import java.net.Socket;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Consumer;
import org.apache.zookeeper.CreateMode;
import org.junit.jupiter.api.Test;

/** The verbs, called directly. */
@Minikeeper
class UniverseTest {
  @Test
  void treeIsReadWithoutAClient(Universe universe) throws Exception {
    try (Client client = new Client(universe.connectString()).connected()) {
      client.curator.create().forPath("/a", new byte[] {(byte) 0xff});
      client.curator.create().forPath("/a/b", "ä".getBytes("UTF-8"));
    }
    assertArrayEquals(new byte[] {(byte) 0xff}, universe.get("/a").data());
    assertEquals("ä", universe.get("/a/b").text());
    assertEquals(1L, universe.get("/a").stat().numChildren());
    assertEquals(List.of("b"), universe.children("/a"));
    assertTrue(universe.dump().contains("/a/b"));
  }

  @Test
  void refusalHasTheMessageOfTheServer(Universe universe) {
    MinikeeperException error = assertThrows(MinikeeperException.class, () -> universe.get("/none"));
    assertEquals(404, error.status());
    assertEquals("no znode \"/none\"", error.getMessage());
  }

  /** It was green. */
  @Test
  void closeOfAServerFailsForAFaultThatNeverActed() {
    Map<String, Object> never = Map.of("action", "cut", "path", "/orders");
    String sentence = "fault 1 (cut, path \"/orders\"): ended and never acted; messages that matched it: 0; check its op, path";
    List<Consumer<MinikeeperServer>> uses = List.of(
        server -> server.inject(never),
        server -> server.createUniverse("mine").inject(never),
        server -> {
          server.goDown();
          server.inject(never);
        });
    for (Consumer<MinikeeperServer> use : uses) {
      MinikeeperServer server = MinikeeperServer.builder().start();
      use.accept(server);
      MinikeeperException error = assertThrows(MinikeeperException.class, server::close);
      assertEquals(409, error.status());
      assertTrue(error.getMessage().startsWith(sentence) && error.getMessage().lines().count() == 1, error.getMessage());
      assertFalse(server.isRunning());
    }
    IllegalStateException error = assertThrows(IllegalStateException.class, () -> {
      try (MinikeeperServer server = MinikeeperServer.builder().start()) {
        server.inject(never);
        throw new IllegalStateException("mine");
      }
    });
    assertTrue(error.getSuppressed()[0].getMessage().startsWith(sentence));
    List<Consumer<MinikeeperServer>> passing = List.of(
        server -> server.inject(Map.of("action", "cut", "path", "/orders", "optional", true)),
        server -> server.inject(Map.of("action", "refuse")),
        server -> {
          server.inject(never);
          server.stop();
        });
    for (Consumer<MinikeeperServer> use : passing) {
      try (MinikeeperServer server = MinikeeperServer.builder().start()) {
        use.accept(server);
      }
    }
  }

  @Test
  void serverThatIsDownComesUpAgain() throws Exception {
    try (MinikeeperServer server = MinikeeperServer.builder().start()) {
      Verbs.need(server.connectString(), "go_down", "come_up");
      server.seed(Map.of("/a", "x"));
      String down = server.goDown();
      assertThrows(ConnectException.class, () -> new Socket("127.0.0.1", server.port()).close());
      assertEquals("x", server.get("/a").text());
      server.comeUp(Keep.EVERYTHING);
      new Socket("127.0.0.1", server.port()).close();
      assertEquals("x", server.get("/a").text());
      assertThrows(MinikeeperException.class, () -> Universe.at(down, null).now());
      // Another caller brings it up.
      Universe.at(server.goDown(), null).comeUp(Keep.NOTHING);
      assertEquals(List.of("zookeeper"), server.children("/"));
    }
  }

  @Test
  void sessionsAreListedAndExpired(Universe universe) throws Exception {
    try (Client client = new Client(universe.connectString()).connected()) {
      // The first path binds the session to the universe.
      client.exists("/");
      List<Session> sessions = universe.sessions();
      assertEquals(1, sessions.size());
      Session session = sessions.get(0);
      assertEquals(client.session(), session.id());
      assertEquals(Duration.ofSeconds(30), session.timeout());
      assertTrue(session.isConnected());
      assertFalse(session.isUnbound());
      // Curator reads the configuration in the background, before or after.
      LastOperation last = session.lastOperation();
      assertTrue(Set.of("exists", "getData").contains(last.name()) && !last.at().isNegative(), last.toString());
      assertTrue(session.timeoutLeft().compareTo(session.timeout()) <= 0, session.toString());
      assertEquals(1, universe.expire(session.id()));
      MinikeeperException none = assertThrows(MinikeeperException.class, () -> universe.expire(session.id()));
      assertEquals(404, none.status());
      assertEquals(0, universe.expire(Who.session(session.id()).allowNone()));
    }
  }

  @Test
  void clockRuns(Universe universe) {
    assertFalse(universe.now().isFrozen());
    Duration first = universe.now().elapsed();
    assertTrue(universe.now().elapsed().compareTo(first) >= 0);
  }

  @Test
  void frozenClockIsAdvanced(Universe universe) throws Exception {
    Verbs.need(universe.connectString(), "freeze", "unfreeze");
    universe.freeze();
    Duration before = universe.now().elapsed();
    universe.advance(Duration.ofHours(1));
    assertEquals(before.plusHours(1), universe.now().elapsed());
    universe.unfreeze();
  }

  @Test
  void connectedClientSurvivesAnAdvanceUnlessItIsStrict(Universe universe) throws Exception {
    try (Client client = new Client(universe.connectString()).connected()) {
      client.curator.create().withMode(CreateMode.EPHEMERAL).forPath("/mine");
      universe.freeze();
      universe.advance(Duration.ofHours(1));
      assertTrue(client.exists("/mine"));
      universe.advanceStrictly(Duration.ofHours(1));
      assertFalse(universe.children("/").contains("mine"));
      universe.unfreeze();
    }
  }

  @Test
  void bytesAreSeededAndEqualTreesHaveEqualDumps(Universe universe) {
    byte[] bytes = {(byte) 0xff, 0};
    universe.seed(Map.of("/raw", bytes, "/box", Map.of("data", bytes, "container", true), "/text", "x"));
    assertArrayEquals(bytes, universe.get("/raw").data());
    assertArrayEquals(bytes, universe.get("/box").data());
    String before = universe.dump();
    assertTrue(before.contains("znode /raw bytes \"\\xff\\x00\"\n"), before);
    universe.seed(Map.of("/text", "y"));
    universe.seed(Map.of("/text", "x"));
    assertEquals(before, universe.dump());
  }

  @Test
  void treeIsSeeded(Universe universe) throws Exception {
    Verbs.need(universe.connectString(), "seed", "export_tree");
    universe.seed(Map.of("/app/config", "on"));
    universe.seed(universe.exportTree());
    universe.seed(universe.exportTreeAsYaml());
    assertEquals("on", universe.get("/app/config").text());
  }

  @Test
  void waitThatTimesOutIsATimeout(Universe universe) throws Exception {
    Verbs.need(universe.connectString(), "until_children");
    MinikeeperException error = assertThrows(
        MinikeeperException.class, () -> universe.untilChildren("/", 100, Duration.ofMillis(1)));
    assertTrue(error.isTimeout(), error.toString());
  }

  @Test
  void wrongOptionIsReported() {
    MinikeeperException error = assertThrows(
        MinikeeperException.class, () -> MinikeeperServer.builder().options("--bogus").start());
    assertTrue(error.getMessage().contains("exited with code 2 at startup: error: unexpected argument '--bogus'"),
        error.getMessage());
  }

  @Test
  void errorWithoutAServerSaysWhatToDo() {
    MinikeeperException error =
        assertThrows(MinikeeperException.class, () -> Universe.at("127.0.0.1:1", null).dump());
    assertTrue(error.getMessage().endsWith("is a server running there?"), error.getMessage());
  }

  @Test
  void serverExitsWhenItsParentIsKilled() throws Exception {
    Process parent = new ProcessBuilder(
            System.getProperty("java.home") + "/bin/java", "-cp", System.getProperty("java.class.path"), "suite.Parent")
        .start();
    int port;
    try (BufferedReader lines = new BufferedReader(new InputStreamReader(parent.getInputStream()))) {
      port = Integer.parseInt(lines.readLine());
      new Socket("127.0.0.1", port).close();
      parent.destroyForcibly().waitFor();
    }
    long end = System.nanoTime() + Client.PATIENCE.toNanos();
    while (true) {
      try {
        new Socket("127.0.0.1", port).close();
      } catch (ConnectException error) {
        return;
      }
      assertTrue(System.nanoTime() < end, "the server outlives its parent");
      Thread.sleep(10);
    }
  }
}
