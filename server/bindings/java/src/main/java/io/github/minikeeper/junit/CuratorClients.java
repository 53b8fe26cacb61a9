package io.github.minikeeper.junit;

import io.github.minikeeper.Universe;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.retry.RetryNTimes;
import org.apache.zookeeper.QuickClientCnxnSocket;
import org.apache.zookeeper.Watcher;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.client.ZKClientConfig;
import org.junit.jupiter.api.extension.ParameterResolutionException;

/** The clients of a universe that are parameters of tests. Needs Curator, so nothing else may load this class first. */
final class CuratorClients implements Runnable {
  /** The type of the parameter, as a name: the class may be missing. */
  static final String TYPE = "org.apache.curator.framework.CuratorFramework";

  private static final int SESSION_MS = 30_000;
  private static final int CONNECTION_MS = 10_000;
  private static final int RETRIES = 50;
  private static final int RETRY_MS = 100;
  private static final int QUICK_RETRIES = 500;
  private static final int QUICK_RETRY_MS = 10;

  private final Universe universe;
  private final boolean reconnectOften;
  private final List<CuratorFramework> clients = new ArrayList<>();

  /** If they reconnect often, they do so without the pauses that protect a real server. */
  CuratorClients(Universe universe, boolean reconnectOften) {
    this.universe = universe;
    this.reconnectOften = reconnectOften;
  }

  /** Returns the client with this number, connected; creates it the first time. */
  synchronized CuratorFramework client(int number) {
    while (clients.size() <= number) clients.add(connected());
    return clients.get(number);
  }

  private CuratorFramework connected() {
    CuratorFrameworkFactory.Builder builder = CuratorFrameworkFactory.builder()
        .connectString(universe.connectString())
        .sessionTimeoutMs(SESSION_MS)
        .connectionTimeoutMs(CONNECTION_MS)
        .retryPolicy(new RetryNTimes(RETRIES, RETRY_MS))
        // It reads the configuration in the background, at another place of the test in each run of a sweep.
        .ensembleTracker(false);
    if (reconnectOften) {
      builder
          .retryPolicy(new RetryNTimes(QUICK_RETRIES, QUICK_RETRY_MS))
          .zookeeperFactory(CuratorClients::quick);
    }
    CuratorFramework client = builder.build();
    client.start();
    try {
      if (client.blockUntilConnected(CONNECTION_MS, TimeUnit.MILLISECONDS)) return client;
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
    }
    client.close();
    throw new ParameterResolutionException("no connection of Curator to " + universe + " within " + CONNECTION_MS + " ms");
  }

  private static ZooKeeper quick(String connectString, int timeoutMs, Watcher watcher, boolean canBeReadOnly)
      throws IOException {
    ZKClientConfig config = new ZKClientConfig();
    config.setProperty(ZKClientConfig.ZOOKEEPER_CLIENT_CNXN_SOCKET, QuickClientCnxnSocket.class.getName());
    // When a session expires, Curator makes a new client, and lets the old one have another watcher before that notifies it that it
    // has closed, 200 ms later. It comes at once here, and Curator would take the new client for disconnected.
    Watcher withoutClosed = event -> {
      if (event.getState() != Watcher.Event.KeeperState.Closed) watcher.process(event);
    };
    return new ZooKeeper(
        connectString, timeoutMs, withoutClosed, canBeReadOnly, new QuickHosts(connectString), config);
  }

  /** Closes the clients. */
  @Override
  public synchronized void run() {
    // The test may have closed some.
    for (CuratorFramework client : clients) client.close();
    clients.clear();
  }
}
