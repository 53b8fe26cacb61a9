package io.github.minikeeper.junit;

import io.github.minikeeper.Universe;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.retry.RetryNTimes;
import org.junit.jupiter.api.extension.ParameterResolutionException;

/** The clients of a universe that are parameters of tests. Needs Curator, so nothing else may load this class first. */
final class CuratorClients implements Runnable {
  /** The type of the parameter, as a name: the class may be missing. */
  static final String TYPE = "org.apache.curator.framework.CuratorFramework";

  private static final int SESSION_MS = 30_000;
  private static final int CONNECTION_MS = 10_000;
  private static final int RETRIES = 50;
  private static final int RETRY_MS = 100;

  private final Universe universe;
  private final String connectString;
  private final List<CuratorFramework> clients = new ArrayList<>();

  /**
   * If they reconnect often, they get the address twice: a client of ZooKeeper pauses for a second when it has tried all
   * addresses, which is before the first attempt to reconnect if there is only one.
   */
  CuratorClients(Universe universe, boolean reconnectOften) {
    this.universe = universe;
    String given = universe.connectString();
    String addresses = given.split("/", 2)[0];
    connectString = reconnectOften ? addresses + "," + given : given;
  }

  /** Returns the client with this number, connected; creates it the first time. */
  synchronized CuratorFramework client(int number) {
    while (clients.size() <= number) clients.add(connected());
    return clients.get(number);
  }

  private CuratorFramework connected() {
    CuratorFramework client = CuratorFrameworkFactory.builder()
        .connectString(connectString)
        .sessionTimeoutMs(SESSION_MS)
        .connectionTimeoutMs(CONNECTION_MS)
        .retryPolicy(new RetryNTimes(RETRIES, RETRY_MS))
        // It reads the configuration in the background, at another place of the test in each run of a sweep.
        .ensembleTracker(false)
        .build();
    client.start();
    try {
      if (client.blockUntilConnected(CONNECTION_MS, TimeUnit.MILLISECONDS)) return client;
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
    }
    client.close();
    throw new ParameterResolutionException("no connection of Curator to " + universe + " within " + CONNECTION_MS + " ms");
  }

  /** Closes the clients. */
  @Override
  public synchronized void run() {
    // The test may have closed some.
    for (CuratorFramework client : clients) client.close();
    clients.clear();
  }
}
