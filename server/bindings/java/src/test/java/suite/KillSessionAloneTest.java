package suite;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.apache.curator.test.KillSession;
import org.apache.curator.test.TestingServer;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.ZooKeeper;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Isolated;

/** Which server of this process KillSession selects. Isolated, so that no other test runs a server meanwhile. */
@Isolated
class KillSessionAloneTest {
  @Test
  void killFindsTheServerOfTheClient() throws Exception {
    try (TestingServer one = new TestingServer();
        TestingServer two = new TestingServer();
        Client first = new Client(one.getConnectString()).connected();
        Client second = new Client(two.getConnectString()).connected()) {
      first.curator.create().withMode(CreateMode.EPHEMERAL).forPath("/mine");
      second.curator.create().withMode(CreateMode.EPHEMERAL).forPath("/mine");
      KillSession.kill(second.zooKeeper());
      assertTrue(first.exists("/mine"));
      assertFalse(two.minikeeper().children("/").contains("mine"));
    }
  }

  /** As in Curator, only the client takes part then. */
  @Test
  void killWithoutARunningServerEndsTheClient() throws Exception {
    try (TestingServer server = new TestingServer();
        Client client = new Client(server.getConnectString()).connected()) {
      ZooKeeper zooKeeper = client.zooKeeper();
      server.stop();
      KillSession.kill(zooKeeper);
      assertFalse(zooKeeper.getState().isAlive());
    }
  }
}
