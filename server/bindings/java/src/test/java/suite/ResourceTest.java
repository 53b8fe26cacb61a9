package suite;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.minikeeper.ResourceEntry;
import io.github.minikeeper.Universe;
import io.github.minikeeper.junit.Minikeeper;
import org.junit.jupiter.api.Test;

/** Resources that a lock protects. */
@Minikeeper
class ResourceTest {
  @Test
  void twoAtATimeAreUnsafe(Universe universe) {
    try (ResourceEntry first = universe.enter("printer"); ResourceEntry second = universe.enter("printer")) {
      assertTrue(first.write() && second.write());
    }
    assertEquals("unsafe", universe.resourceVerdict("printer").verdict());
  }

  @Test
  void lowerTokenIsRefused(Universe universe) {
    try (ResourceEntry first = universe.enter("printer", 1); ResourceEntry second = universe.enter("printer", 2)) {
      assertTrue(second.write());
      assertFalse(first.write());
    }
    assertEquals("safe", universe.resourceVerdict("printer").verdict(), () -> universe.resourceVerdict("printer").text());
  }
}
