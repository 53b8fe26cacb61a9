package examples;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.minikeeper.SweepFault;
import io.github.minikeeper.Universe;
import io.github.minikeeper.junit.Minikeeper;
import io.github.minikeeper.junit.MinikeeperSweep;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;

/** A sweep. {@code docs/java.md} explains it. */
@Minikeeper
class SweepTest {
  private static final int WITHIN_S = 30; // a limit for failures; nothing here takes that long

  // --8<-- [start:sweep]
  @MinikeeperSweep(faults = {SweepFault.REPLY_LOST, SweepFault.SESSION_EXPIRED})
  void lockPassesOnWhateverHappens(Universe universe, CuratorFramework client, CuratorFramework other) throws Exception {
    for (CuratorFramework each : List.of(client, other)) {
      InterProcessMutex lock = new InterProcessMutex(each, "/locks/printer");
      assertTrue(lock.acquire(WITHIN_S, TimeUnit.SECONDS));
      lock.release();
    }

    assertEquals(List.of(), universe.children("/locks/printer"));
  }
  // --8<-- [end:sweep]
}
