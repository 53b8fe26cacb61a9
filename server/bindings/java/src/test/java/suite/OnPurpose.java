package suite;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assumptions.assumeTrue;
import static org.junit.platform.engine.discovery.DiscoverySelectors.selectMethod;

import io.github.minikeeper.Universe;
import io.github.minikeeper.junit.Minikeeper;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.zookeeper.KeeperException;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;
import org.junit.platform.launcher.listeners.SummaryGeneratingListener;

/** Tests that fail on purpose, which {@link StoryTest} runs in another process. */
@Minikeeper
class OnPurpose {
  private Client first;
  private Client second;

  /**
   * Runs one of them, or one of another class, CLASS#METHOD; the exit code is the number of failures. The second argument is the
   * folder for stories, the third whether JUnit finds extensions.
   */
  public static void main(String[] args) {
    LauncherDiscoveryRequestBuilder request = LauncherDiscoveryRequestBuilder.request()
        .selectors(args[0].contains("#") ? selectMethod(args[0]) : selectMethod(OnPurpose.class, args[0], Universe.class.getName()))
        .configurationParameter("minikeeper.stories", args[1])
        .configurationParameter("junit.jupiter.extensions.autodetection.enabled", args[2]);
    SummaryGeneratingListener listener = new SummaryGeneratingListener();
    LauncherFactory.create().execute(request.build(), listener);
    System.exit((int) listener.getSummary().getTotalFailureCount());
  }

  @AfterEach
  void closeClients() {
    if (first != null) first.close();
    if (second != null) second.close();
  }

  /** Two clients queue for a lock, a read is refused, and an assertion fails. */
  @Test
  void printer(Universe universe) throws Exception {
    universe.seed(Map.of("/printer/paper", "A4"));
    first = new Client(universe.connectString()).connected();
    second = new Client(universe.connectString()).connected();
    new InterProcessMutex(first.curator, "/locks/printer").acquire();
    InterProcessMutex wanted = new InterProcessMutex(second.curator, "/locks/printer");
    Thread waiting = new Thread(() -> {
      try {
        wanted.acquire(60, TimeUnit.SECONDS);
      } catch (Exception expected) {
        // Its client closes.
      }
    });
    waiting.setDaemon(true);
    waiting.start();
    universe.untilContenders("/locks/printer", 2, Client.PATIENCE);
    universe.inject(Map.of("action", "error", "error", "NOAUTH", "op", "getData", "path", "/printer/*"));
    assertThrows(KeeperException.NoAuthException.class, () -> first.curator.getData().forPath("/printer/paper"));
    String paper = null;
    assertEquals("A4", paper);
  }

  @Test
  void passes(Universe universe) {
    universe.advance(Duration.ofSeconds(1));
  }

  @Test
  void isSkipped(Universe universe) {
    assumeTrue(false);
  }

  @Test
  void leavesAFault(Universe universe) {
    universe.inject(Map.of("action", "cut", "path", "/never"));
  }

  @Test
  void dropsItsUniverse(Universe universe) {
    universe.dropUniverse("junit-1");
    assertEquals(1, 2);
  }
}
