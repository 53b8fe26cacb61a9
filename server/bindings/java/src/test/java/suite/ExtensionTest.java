package suite;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.minikeeper.Universe;
import io.github.minikeeper.junit.MinikeeperExtension;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.extension.RegisterExtension;

/** The extension, registered as a field. */
class ExtensionTest {
  private static final Set<String> SEEN = ConcurrentHashMap.newKeySet();

  @RegisterExtension
  final MinikeeperExtension minikeeper = new MinikeeperExtension("--tick-time", "100");

  private Universe before;

  @BeforeEach
  void remember(Universe universe) {
    before = universe;
  }

  @RepeatedTest(value = 2, name = "each test has its own universe, with the options given {currentRepetition}")
  void ownUniverse(Universe universe) throws Exception {
    assertSame(before, universe);
    assertSame(minikeeper.universe(), universe);
    assertTrue(SEEN.add(minikeeper.connectString()));
    try (Client client = new Client(minikeeper.connectString()).connected()) {
      // Fails if another test shares the universe.
      client.curator.create().forPath("/left-behind");
      // 20 ticks at most.
      assertEquals(2_000, client.zooKeeper().getSessionTimeout());
    }
  }
}
