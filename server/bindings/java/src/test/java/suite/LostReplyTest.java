package suite;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.github.minikeeper.Fault;
import io.github.minikeeper.FaultOp;
import io.github.minikeeper.FaultSpec;
import io.github.minikeeper.MinikeeperServer;
import java.util.List;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.retry.RetryOneTime;
import org.apache.curator.test.TestingServer;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.ZooKeeper;
import org.junit.jupiter.api.Test;

/** A create whose reply is lost: the server has executed it, and the client does not know. */
class LostReplyTest {
  private static final FaultSpec LOSE_ONE = Fault.loseReply().on(FaultOp.CREATE).at("/queue/*").once();

  /** Curator finds the znode by the id in its name and uses it. */
  @Test
  void protectedCreateRecovers() throws Exception {
    try (TestingServer server = new TestingServer()) {
      MinikeeperServer minikeeper = server.minikeeper();
      Verbs.need(server.getConnectString(), "inject", "until_hit", "remove_fault");
      try (Client client = new Client(server.getConnectString()).connected()) {
        client.curator.create().forPath("/queue");
        try (Fault fault = minikeeper.inject(LOSE_ONE)) {
          String path = client.curator.create()
              .withProtection()
              .withMode(CreateMode.PERSISTENT_SEQUENTIAL)
              .forPath("/queue/n-");
          fault.untilHit(1, Client.PATIENCE);
          assertEquals(List.of(path.substring("/queue/".length())), minikeeper.children("/queue"));
        }
      }
    }
  }

  /** Without protection, Curator retries: the first znode is an orphan. */
  @Test
  void unprotectedCreateLeavesAnOrphan() throws Exception {
    try (TestingServer server = new TestingServer()) {
      MinikeeperServer minikeeper = server.minikeeper();
      Verbs.need(server.getConnectString(), "inject", "until_hit", "remove_fault");
      try (Client client = new Client(server.getConnectString()).connected()) {
        client.curator.create().forPath("/queue");
        try (Fault fault = minikeeper.inject(LOSE_ONE)) {
          client.curator.create().withMode(CreateMode.PERSISTENT_SEQUENTIAL).forPath("/queue/n-");
          assertEquals(1, fault.hits());
          assertEquals(2, minikeeper.children("/queue").size());
        }
      }
    }
  }

  /** ZooKeeper's own client reports a lost connection, and cannot know that the znode exists. */
  @Test
  void naiveClientLeavesAnOrphan() throws Exception {
    try (TestingServer server = new TestingServer()) {
      MinikeeperServer minikeeper = server.minikeeper();
      Verbs.need(server.getConnectString(), "inject", "until_hit", "remove_fault");
      try (CuratorFramework curator =
          CuratorFrameworkFactory.newClient(server.getConnectString(), new RetryOneTime(100))) {
        curator.start();
        curator.create().forPath("/queue");
        ZooKeeper zooKeeper = curator.getZookeeperClient().getZooKeeper();
        try (Fault fault = minikeeper.inject(LOSE_ONE)) {
          assertThrows(
              KeeperException.ConnectionLossException.class,
              () -> zooKeeper.create(
                  "/queue/n-", null, ZooDefs.Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT_SEQUENTIAL));
          assertEquals(1, minikeeper.children("/queue").size());
        }
      }
    }
  }
}
