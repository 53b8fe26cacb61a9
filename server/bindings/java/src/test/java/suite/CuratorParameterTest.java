package suite;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.platform.engine.discovery.DiscoverySelectors.selectClass;

import io.github.minikeeper.Universe;
import io.github.minikeeper.junit.Minikeeper;
import java.io.File;
import java.util.Arrays;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.imps.CuratorFrameworkState;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.Test;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;
import org.junit.platform.launcher.listeners.SummaryGeneratingListener;

/** Clients of Curator as parameters of tests. */
@Minikeeper
class CuratorParameterTest {
  private static final Set<CuratorFramework> SEEN = ConcurrentHashMap.newKeySet();

  private CuratorFramework before;

  @BeforeEach
  void remember(CuratorFramework client) {
    before = client;
  }

  @AfterEach
  void clientIsStillOpen(CuratorFramework client) {
    assertSame(before, client);
    assertEquals(CuratorFrameworkState.STARTED, client.getState());
  }

  @AfterAll
  static void clientsOfEarlierTestsAreClosed() {
    SEEN.forEach(client -> assertEquals(CuratorFrameworkState.STOPPED, client.getState()));
  }

  @RepeatedTest(value = 2, name = "clients are connected to the universe of their test {currentRepetition}")
  void clientsAreConnected(CuratorFramework first, Universe universe, CuratorFramework second) throws Exception {
    assertSame(before, first);
    assertNotSame(first, second);
    first.create().forPath("/once", "x".getBytes());
    assertEquals("x", universe.get("/once").text());
    assertEquals("x", new String(second.getData().forPath("/once")));
    assertNotEquals(session(first), session(second));
    assertEquals(2, universe.sessions().size());
    assertTrue(SEEN.add(first));
    assertTrue(SEEN.add(second));
  }

  private static long session(CuratorFramework client) throws Exception {
    return client.getZookeeperClient().getZooKeeper().getSessionId();
  }

  /** A test without Curator, in a process without its jars. */
  @Minikeeper
  static class Without {
    public static void main(String[] args) {
      SummaryGeneratingListener listener = new SummaryGeneratingListener();
      LauncherFactory.create().execute(
          LauncherDiscoveryRequestBuilder.request().selectors(selectClass(Without.class)).build(), listener);
      listener.getSummary().getFailures().forEach(failure -> failure.getException().printStackTrace());
      System.exit(listener.getSummary().getTestsSucceededCount() == 1 ? 0 : 1);
    }

    @Test
    void works(Universe universe) {
      assertTrue(universe.children("/").contains("zookeeper"));
    }
  }

  @Test
  void extensionWorksWithoutCuratorAndJUnit4() throws Exception {
    String classPath = Arrays.stream(System.getProperty("java.class.path").split(File.pathSeparator))
        .filter(path -> !new File(path).getName().matches("(curator|zookeeper|junit4|hamcrest|slf4j).*"))
        .collect(Collectors.joining(File.pathSeparator));
    Process process = new ProcessBuilder(
            System.getProperty("java.home") + "/bin/java", "-cp", classPath, Without.class.getName())
        .inheritIO()
        .start();
    assertTrue(process.waitFor(60, TimeUnit.SECONDS), "still running");
    assertEquals(0, process.exitValue());
  }
}
