package examples;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.minikeeper.Universe;
import io.github.minikeeper.junit.Minikeeper;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.leader.LeaderSelector;
import org.apache.curator.framework.recipes.leader.LeaderSelectorListenerAdapter;
import org.junit.jupiter.api.Test;

/** My leader steps down on expiry. {@code docs/testing/leader-expiry.md} explains it. */
@Minikeeper
class LeaderExpiryTest {
  private static final int WITHIN_S = 30; // a limit for failures; nothing here takes that long

  /** The code under test: works while it leads. */
  private static final class Biller extends LeaderSelectorListenerAdapter implements AutoCloseable {
    final CountDownLatch leads = new CountDownLatch(1);
    final CountDownLatch hasStopped = new CountDownLatch(1);
    private final LeaderSelector selector;

    Biller(CuratorFramework client) {
      selector = new LeaderSelector(client, "/leaders/billing", this);
      selector.start();
    }

    /** Curator interrupts this when the connection is suspended or the session lost: another may lead then. */
    @Override
    public void takeLeadership(CuratorFramework client) throws Exception {
      leads.countDown();
      try {
        new CountDownLatch(1).await(); // a real one would send bills here
      } finally {
        hasStopped.countDown();
      }
    }

    @Override
    public void close() {
      selector.close();
    }
  }

  @Test
  void leaderStepsDownWhenItsSessionExpires(Universe universe, CuratorFramework one, CuratorFramework two)
      throws Exception {
    try (Biller first = new Biller(one)) {
      assertTrue(first.leads.await(WITHIN_S, TimeUnit.SECONDS));
      try (Biller second = new Biller(two)) {
        universe.untilContenders("/leaders/billing", 2);
        assertEquals(1, second.leads.getCount());

        // The server ends the session, as after a long silence. The znode has been deleted when this returns.
        assertEquals(1, universe.expire(one.getZookeeperClient().getZooKeeper().getSessionId()));

        assertTrue(first.hasStopped.await(WITHIN_S, TimeUnit.SECONDS));
        assertTrue(second.leads.await(WITHIN_S, TimeUnit.SECONDS));
        assertFalse(second.hasStopped.await(0, TimeUnit.SECONDS));
      }
    }
  }

  @Test
  void secondLeadsWhenTheFirstLeaves(Universe universe, CuratorFramework one, CuratorFramework two) throws Exception {
    Biller first = new Biller(one);
    assertTrue(first.leads.await(WITHIN_S, TimeUnit.SECONDS));
    try (Biller second = new Biller(two)) {
      universe.untilContenders("/leaders/billing", 2);

      first.close();

      assertTrue(second.leads.await(WITHIN_S, TimeUnit.SECONDS));
    }
  }
}
