package suite;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.github.minikeeper.Universe;
import io.github.minikeeper.junit.Minikeeper;
import io.github.minikeeper.junit.MinikeeperSweep;
import java.util.Map;
import org.apache.curator.framework.CuratorFramework;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.data.Stat;

/** A test that a sweep breaks. {@link SweepTest} runs it, and {@code docs/java.md} explains it. */
@Minikeeper
class NaiveCounter {
  // --8<-- [start:naive]
  @MinikeeperSweep
  void visitIsCountedOnce(Universe universe, CuratorFramework client) throws Exception {
    universe.seed(Map.of("/visits", "0"));

    while (true) {
      Stat stat = new Stat();
      int visits = Integer.parseInt(new String(client.getData().storingStatIn(stat).forPath("/visits")));
      try {
        client.setData().withVersion(stat.getVersion()).forPath("/visits", Integer.toString(visits + 1).getBytes());
        break;
      } catch (KeeperException.BadVersionException another) {
        // Another client was faster: again.
      }
    }

    assertEquals("1", universe.get("/visits").text());
  }
  // --8<-- [end:naive]
}
