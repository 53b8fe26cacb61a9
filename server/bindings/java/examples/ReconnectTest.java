package examples;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;

import io.github.minikeeper.Keep;
import io.github.minikeeper.MinikeeperServer;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.nodes.PersistentNode;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.retry.RetryNTimes;
import org.apache.zookeeper.CreateMode;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** My client reconnects. {@code docs/testing/reconnect.md} explains it. */
class ReconnectTest {
  private static final int WITHIN_S = 30; // a limit for failures; nothing here takes that long

  // A separate server instead of a universe on a shared one: goDown applies to a whole server.
  private final MinikeeperServer server = MinikeeperServer.builder().start();
  private final CuratorFramework client =
      CuratorFrameworkFactory.newClient(server.connectString(), new RetryNTimes(300, 100));
  private final BlockingQueue<ConnectionState> states = new LinkedBlockingQueue<>();
  private PersistentNode announcement;
  private long session;

  @BeforeEach
  void announce() throws Exception {
    client.getConnectionStateListenable().addListener((any, state) -> states.add(state));
    client.start();
    announcement = announcement(client);
    announcement.waitForInitialCreate(WITHIN_S, TimeUnit.SECONDS);
    assertNext(ConnectionState.CONNECTED);
    session = client.getZookeeperClient().getZooKeeper().getSessionId();
  }

  @AfterEach
  void close() throws Exception {
    announcement.close();
    client.close();
    server.close();
  }

  /** The code under test: an ephemeral that says "I am here", created again in every session. */
  private static PersistentNode announcement(CuratorFramework client) {
    PersistentNode node =
        new PersistentNode(client, CreateMode.EPHEMERAL, false, "/services/web", "10.0.0.7:80".getBytes());
    node.start();
    return node;
  }

  private void assertNext(ConnectionState wanted) throws Exception {
    assertEquals(wanted, states.poll(WITHIN_S, TimeUnit.SECONDS));
  }

  @Test
  void announcementSurvivesAClosedConnection() throws Exception {
    assertEquals(1, server.disconnect(session));

    assertNext(ConnectionState.SUSPENDED);
    assertNext(ConnectionState.RECONNECTED);
    assertEquals(session, client.getZookeeperClient().getZooKeeper().getSessionId());
    assertEquals(List.of("web"), server.children("/services"));
  }

  @Test
  void announcementSurvivesAServerOutage() throws Exception {
    server.goDown();
    assertNext(ConnectionState.SUSPENDED);
    server.comeUp();

    assertNext(ConnectionState.RECONNECTED);
    assertEquals(session, client.getZookeeperClient().getZooKeeper().getSessionId());
    assertEquals(List.of("web"), server.children("/services"));
  }

  @Test
  void announcementIsCreatedAgainInANewSession() throws Exception {
    server.restart(Keep.DATA);

    assertNext(ConnectionState.SUSPENDED);
    assertNext(ConnectionState.LOST);
    assertNext(ConnectionState.RECONNECTED);
    server.untilChildren("/services", 1);
    assertNotEquals(session, client.getZookeeperClient().getZooKeeper().getSessionId());
  }
}
