package suite;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.github.minikeeper.Universe;
import io.github.minikeeper.Who;
import io.github.minikeeper.junit.Minikeeper;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.retry.RetryOneTime;
import org.apache.zookeeper.CreateMode;
import org.junit.jupiter.api.Test;

/** Hours in milliseconds. {@code docs/testing/time-travel.md} explains it. */
@Minikeeper
class TimeTravelTest {
  private static final Duration HOUR = Duration.ofHours(1);
  private static final Duration MINUTE = Duration.ofMinutes(1);

  @Test
  void resultIsKeptForAnHour(Universe universe) {
    universe.seed(Map.of("/results/42", Map.of("data", "done", "ttl_ms", HOUR.toMillis())));

    universe.advance(HOUR.minus(MINUTE));
    assertEquals(List.of("42"), universe.children("/results"));
    universe.advance(MINUTE.multipliedBy(2)); // the server checks once a minute

    assertEquals(List.of(), universe.children("/results"));
  }

  @Test
  void connectedWorkerLivesOn(Universe universe) throws Exception {
    universe.freeze(); // no session expires while a debugger pauses the test
    try (CuratorFramework worker = worker(universe)) {
      long session = worker.getZookeeperClient().getZooKeeper().getSessionId();

      universe.advance(HOUR);

      assertEquals(session, worker.getZookeeperClient().getZooKeeper().getSessionId());
      assertEquals(List.of("anna"), worker.getChildren().forPath("/workers"));
    }
  }

  @Test
  void hangingWorkerExpires(Universe universe) throws Exception {
    universe.freeze();
    try (CuratorFramework worker = worker(universe)) {
      universe.silence(Who.owner("/workers/anna")); // its connection stays open, but the server ignores what it sends

      universe.advance(HOUR);

      assertEquals(List.of(), universe.children("/workers"));
    }
  }

  /** The code under test: registers an ephemeral while it is alive. */
  private static CuratorFramework worker(Universe universe) throws Exception {
    CuratorFramework worker = CuratorFrameworkFactory.newClient(universe.connectString(), new RetryOneTime(100));
    worker.start();
    worker.create().creatingParentsIfNeeded().withMode(CreateMode.EPHEMERAL).forPath("/workers/anna");
    return worker;
  }
}
