package suite;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.minikeeper.MinikeeperServer;
import io.github.minikeeper.Mode;
import java.net.ServerSocket;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.test.FailedServerStartException;
import org.apache.curator.test.InstanceSpec;
import org.apache.curator.test.KillSession;
import org.apache.curator.test.TestingCluster;
import org.apache.curator.test.TestingZooKeeperServer;
import org.apache.zookeeper.CreateMode;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** The replacement of Curator's TestingCluster, with a client of Curator that fails over. */
class TestingClusterTest {
  private TestingCluster cluster;
  private Client client;

  @BeforeEach
  void start() throws Exception {
    cluster = new TestingCluster(3);
    cluster.start();
    client = new Client(cluster.getConnectString()).connected();
  }

  @AfterEach
  void close() throws Exception {
    client.close();
    cluster.close();
  }

  @Test
  void killedServerHandsItsSessionsOver() throws Exception {
    client.curator.create().withMode(CreateMode.EPHEMERAL).forPath("/mine");
    InterProcessMutex lock = new InterProcessMutex(client.curator, "/lock");
    assertTrue(lock.acquire(30, TimeUnit.SECONDS));
    long session = client.session();
    InstanceSpec first = cluster.findConnectionInstance(client.zooKeeper());
    assertTrue(cluster.getInstances().contains(first));

    assertTrue(cluster.killServer(first));

    client.awaitNext(ConnectionState.SUSPENDED);
    client.awaitNext(ConnectionState.RECONNECTED);
    assertEquals(session, client.session());
    assertTrue(client.exists("/mine"));
    assertTrue(lock.isAcquiredInThisProcess());
    assertNotEquals(first, cluster.findConnectionInstance(client.zooKeeper()));

    assertTrue(cluster.restartServer(first));
    assertEquals(List.of(Mode.UP, Mode.UP, Mode.UP), modes());
  }

  @Test
  void ensembleWithoutAQuorumServesNobody() throws Exception {
    List<TestingZooKeeperServer> servers = cluster.getServers();
    long session = client.session();
    servers.get(0).kill();
    servers.get(1).kill();
    client.await(ConnectionState.SUSPENDED);
    assertNull(cluster.findConnectionInstance(client.zooKeeper()));

    servers.get(0).restart();

    client.await(ConnectionState.RECONNECTED);
    assertEquals(session, client.session());
    assertEquals(List.of(Mode.UP, Mode.DOWN, Mode.UP), modes());
  }

  @Test
  void stoppedEnsembleKeepsDataAndSessions() throws Exception {
    client.curator.create().withMode(CreateMode.EPHEMERAL).forPath("/mine");
    cluster.stop();
    client.awaitNext(ConnectionState.SUSPENDED);
    cluster.start();
    client.awaitNext(ConnectionState.RECONNECTED);
    assertTrue(client.exists("/mine"));
  }

  @Test
  void killedSessionIsFound() throws Exception {
    client.curator.create().withMode(CreateMode.EPHEMERAL).forPath("/mine");
    KillSession.kill(client.zooKeeper());
    assertFalse(cluster.minikeeper().children("/").contains("mine"));
  }

  @Test
  void unknownServerIsNotFound() throws Exception {
    assertFalse(cluster.killServer(InstanceSpec.newInstanceSpec()));
    assertFalse(cluster.restartServer(InstanceSpec.newInstanceSpec()));
  }

  @Test
  void portsMustBeConsecutive() {
    InstanceSpec one = InstanceSpec.builder().withPort(20_000).build();
    InstanceSpec two = InstanceSpec.builder().withPort(20_002).build();
    String message = assertThrows(IllegalArgumentException.class, () -> new TestingCluster(one, two)).getMessage();
    assertEquals("port 20002 after 20000: the ports of an ensemble must be consecutive, because one process listens on them;"
        + " TestingCluster.makeSpecs chooses them", message);
  }

  /** BaseClassForTests tries once more then. */
  @Test
  void takenPortFailsTheStart() throws Exception {
    try (TestingCluster other = new TestingCluster(3)) {
      int port = other.getServers().get(1).getInstanceSpec().getPort();
      try (ServerSocket taken = new ServerSocket(port)) {
        assertThrows(FailedServerStartException.class, other::start, taken::toString);
      }
    }
  }

  @Test
  void serversOfABuilderAreTakenDownOneByOne() throws Exception {
    try (MinikeeperServer server = MinikeeperServer.builder().servers(3).start()) {
      assertEquals(3, server.connectString().split(",").length);
      server.setServer(1, Mode.DOWN);
      server.setServer(2, Mode.CUT_OFF);
      assertEquals(3, server.servers().size());
      server.createUniverse("mine").dropUniverse("mine");
      server.ensureReady();
      assertEquals(Mode.UP, server.servers().get(0).mode());
      assertEquals(Mode.UP, server.servers().get(1).mode());
    }
  }

  private List<Mode> modes() {
    List<Mode> modes = new ArrayList<>();
    cluster.minikeeper().servers().forEach(one -> modes.add(one.mode()));
    return modes;
  }
}
