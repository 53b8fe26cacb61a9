package suite;

import io.github.minikeeper.Universe;
import io.github.minikeeper.junit.Minikeeper;
import java.util.List;
import java.util.Map;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.RetryOneTime;
import org.junit.jupiter.api.Test;

/** What a job has sent to the server. {@code docs/journal.md} explains it. */
@Minikeeper
class JournalTest {
  @Test
  void jobStoresItsResultUnderItsLock(Universe universe) throws Exception {
    try (CuratorFramework client =
        CuratorFrameworkFactory.newClient(universe.connectString(), new RetryOneTime(100))) {
      client.start();

      runJob(client);

      universe.verify(Map.of("path", "/locks/job/*", "op", "create", "result", "OK", "exactly", 1));
      universe.verify(Map.of("path", "/results/*", "op", "setData", "exactly", 0)); // results are never overwritten
      universe.verify(Map.of("in_order", List.of(
          "create /locks/job/* -> OK", "create /results/* -> OK", "delete /locks/job/* -> OK")));
    }
  }

  /** The code under test. */
  private static void runJob(CuratorFramework client) throws Exception {
    InterProcessMutex lock = new InterProcessMutex(client, "/locks/job");
    lock.acquire();
    client.create().creatingParentsIfNeeded().forPath("/results/42", "done".getBytes());
    lock.release();
  }
}
