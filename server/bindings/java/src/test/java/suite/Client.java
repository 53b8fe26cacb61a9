package suite;

import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.retry.RetryNTimes;
import org.apache.zookeeper.ZooKeeper;

/** A Curator client that waits for its state changes. */
final class Client implements AutoCloseable {
  static final Duration PATIENCE = Duration.ofSeconds(30);

  final CuratorFramework curator;
  private final BlockingQueue<ConnectionState> states = new LinkedBlockingQueue<>();

  /** With a session timeout longer than every restart in these tests. */
  Client(String connectString) {
    this(connectString, 30_000);
  }

  Client(String connectString, int sessionMs) {
    curator = CuratorFrameworkFactory.newClient(connectString, sessionMs, 10_000, new RetryNTimes(300, 100));
    curator.getConnectionStateListenable().addListener((client, state) -> states.add(state));
    curator.start();
  }

  Client connected() throws Exception {
    assertTrue(curator.blockUntilConnected((int) PATIENCE.getSeconds(), TimeUnit.SECONDS), "no connection");
    await(ConnectionState.CONNECTED);
    return this;
  }

  /** Waits for a state, and discards those before it. */
  void await(ConnectionState wanted) throws InterruptedException {
    String seen = "";
    while (true) {
      ConnectionState state = states.poll(PATIENCE.getSeconds(), TimeUnit.SECONDS);
      assertNotNull(state, "timed out waiting for " + wanted + "; seen:" + seen);
      if (state == wanted) return;
      seen += " " + state;
    }
  }

  /** Waits for the next state, which must be this one. */
  void awaitNext(ConnectionState wanted) throws InterruptedException {
    ConnectionState state = states.poll(PATIENCE.getSeconds(), TimeUnit.SECONDS);
    assertTrue(state == wanted, "wanted " + wanted + " next, got " + state);
  }

  ZooKeeper zooKeeper() throws Exception {
    return curator.getZookeeperClient().getZooKeeper();
  }

  long session() throws Exception {
    return zooKeeper().getSessionId();
  }

  boolean exists(String path) throws Exception {
    return curator.checkExists().forPath(path) != null;
  }

  @Override
  public void close() {
    curator.close();
  }
}
