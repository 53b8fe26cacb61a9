import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.platform.engine.discovery.DiscoverySelectors.selectClass;

import io.github.minikeeper.junit.Minikeeper;
import io.github.minikeeper.junit.MinikeeperSweep;
import java.io.PrintWriter;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;
import org.junit.platform.launcher.listeners.SummaryGeneratingListener;

/** Sweeps Curator's mutex several times in one JVM, which is slow at first. */
@Minikeeper
class Rates {
  private static final int WITHIN_S = 30; // a limit for failures; nothing here takes that long

  @MinikeeperSweep
  void mutex(CuratorFramework client) throws Exception {
    InterProcessMutex mutex = new InterProcessMutex(client, "/locks/printer");
    assertTrue(mutex.acquire(WITHIN_S, TimeUnit.SECONDS));
    mutex.release();
  }

  public static void main(String[] arguments) {
    for (int sweep = 0; sweep < Integer.parseInt(arguments[0]); sweep += 1) {
      SummaryGeneratingListener summary = new SummaryGeneratingListener();
      LauncherFactory.create().execute(
          LauncherDiscoveryRequestBuilder.request().selectors(selectClass(Rates.class)).build(), summary);
      if (summary.getSummary().getTestsSucceededCount() != 1) {
        summary.getSummary().printFailuresTo(new PrintWriter(System.out, true));
        System.exit(1);
      }
    }
  }
}
