package examples;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.minikeeper.Fault;
import io.github.minikeeper.FaultOp;
import io.github.minikeeper.FaultSpec;
import io.github.minikeeper.Universe;
import io.github.minikeeper.junit.Minikeeper;
import java.time.Duration;
import java.util.List;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.zookeeper.CreateMode;
import org.junit.jupiter.api.Test;

/** My lock survives a lost reply. {@code docs/testing/lost-reply.md} explains it. */
@Minikeeper
class LostReplyTest {
  private static final int WITHIN_S = 30; // a limit for failures; nothing here takes that long

  /** Makes the server execute the next such request below a path, but close the connection instead of replying. */
  private static FaultSpec loseReply(FaultOp op, String path) {
    return Fault.loseReply().on(op).at(path + "/*").once();
  }

  @Test
  void lockSurvivesALostCreate(Universe universe, CuratorFramework client, CuratorFramework other) throws Exception {
    InterProcessMutex lock = new InterProcessMutex(client, "/locks/printer");
    try (Fault lost = universe.inject(loseReply(FaultOp.CREATE, "/locks/printer"))) {
      assertTrue(lock.acquire(WITHIN_S, TimeUnit.SECONDS));
      assertEquals(1, lost.hits()); // otherwise this test would test nothing
    }

    // The lock has found its znode again, instead of queueing a second one behind it.
    assertEquals(1, universe.children("/locks/printer").size());
    lock.release();
    assertTrue(new InterProcessMutex(other, "/locks/printer").acquire(WITHIN_S, TimeUnit.SECONDS));
  }

  @Test
  void lockSurvivesALostDelete(Universe universe, CuratorFramework client, CuratorFramework other) throws Exception {
    InterProcessMutex lock = new InterProcessMutex(client, "/locks/printer");
    assertTrue(lock.acquire(WITHIN_S, TimeUnit.SECONDS));
    try (Fault lost = universe.inject(loseReply(FaultOp.DELETE, "/locks/printer"))) {
      lock.release();
      lost.untilHit(1, Duration.ofSeconds(WITHIN_S));
    }

    assertEquals(List.of(), universe.children("/locks/printer"));
    assertTrue(new InterProcessMutex(other, "/locks/printer").acquire(WITHIN_S, TimeUnit.SECONDS));
  }

  /** A create without protection, which Curator retries, leaves an orphaned znode. */
  @Test
  void queueByHandDoesNot(Universe universe, CuratorFramework client) throws Exception {
    client.create().forPath("/queue");
    try (Fault lost = universe.inject(loseReply(FaultOp.CREATE, "/queue"))) {
      client.create().withMode(CreateMode.EPHEMERAL_SEQUENTIAL).forPath("/queue/n-");
      assertEquals(1, lost.hits());
    }

    // The client does not know the first one. Every contender waits for it until the session ends.
    assertEquals(
        List.of("n-0000000000", "n-0000000001"), List.copyOf(new TreeSet<>(universe.children("/queue"))));
  }
}
