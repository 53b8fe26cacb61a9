package suite;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.minikeeper.Keep;
import io.github.minikeeper.MinikeeperException;
import io.github.minikeeper.MinikeeperServer;
import io.github.minikeeper.Universe;
import io.github.minikeeper.junit.Minikeeper;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Snapshots, data directories, restarts and universes. */
@Minikeeper
class StateVerbsTest {
  @Test
  void snapshotIsRestoredUntilItIsDropped(Universe universe) {
    universe.seed(Map.of("/a", "1"));
    long mark = universe.snapshot();
    universe.seed(Map.of("/a", "2", "/b", ""));
    universe.restore(mark);
    assertEquals("1", universe.get("/a").text());
    assertFalse(universe.children("/").contains("b"));
    universe.dropSnapshot(mark);
    MinikeeperException gone = assertThrows(MinikeeperException.class, () -> universe.restore(mark));
    assertEquals(404, gone.status());
  }

  @Test
  void exportedDataIsImportedAgain(Universe universe, @TempDir Path dir) {
    universe.seed(Map.of("/kept", "x"));
    Path exported = dir.resolve("exported");
    universe.exportData(exported);
    universe.seed(Map.of("/later", ""));
    universe.importData(exported);
    assertEquals("x", universe.get("/kept").text());
    assertFalse(universe.children("/").contains("later"));
  }

  @Test
  void savedStateSurvivesAKill(@TempDir Path dir) {
    try (MinikeeperServer server = MinikeeperServer.builder().dataDir(dir).start()) {
      server.seed(Map.of("/saved", ""));
      server.save();
      server.seed(Map.of("/lost", ""));
      server.kill();
      server.start();
      assertEquals(Set.of("saved", "zookeeper"), Set.copyOf(server.children("/")));
    }
  }

  @Test
  void restartKeepsWhatTheArgumentSays() throws Exception {
    try (MinikeeperServer server = MinikeeperServer.builder().start()) {
      try (Client client = new Client(server.connectString()).connected()) {
        client.curator.create().forPath("/data");
        server.restart(Keep.EVERYTHING);
        assertEquals(1, server.sessions().size());
      }
      server.restart(Keep.DATA);
      assertEquals(List.of(), server.sessions());
      assertTrue(server.children("/").contains("data"));
      server.restart(Keep.NOTHING);
      assertEquals(List.of("zookeeper"), server.children("/"));
    }
  }

  @Test
  void universesShareNothing() {
    try (MinikeeperServer server = MinikeeperServer.builder().start()) {
      Universe one = server.createUniverse("one");
      one.seed(Map.of("/a", "1"));
      Universe copy = one.fork("copy");
      copy.seed(Map.of("/a", "2"));
      assertEquals("1", one.get("/a").text());
      assertFalse(server.children("/").contains("a"));
      assertEquals(2, server.universes().size());
      server.dropUniverse("one");
      assertEquals(List.of("copy"), server.universes());
    }
  }
}
