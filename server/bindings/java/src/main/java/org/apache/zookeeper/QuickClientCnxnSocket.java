package org.apache.zookeeper;

import org.apache.zookeeper.client.ZKClientConfig;

/**
 * A socket of a client that ends a connection at once. ZooKeeper's sleeps for 100 ms; when a client closes, it holds a lock
 * meanwhile that all clients of the process have in common, so that they close one after the other, and others cannot send.
 *
 * <p>In this package because the method to override is visible in it only.
 */
public final class QuickClientCnxnSocket extends ClientCnxnSocketNIO {
  /** ZooKeeper calls it by its name. */
  public QuickClientCnxnSocket(ZKClientConfig config) throws java.io.IOException {
    super(config);
  }

  @Override
  void cleanup() {
    // Ends the sleep.
    Thread.currentThread().interrupt();
    super.cleanup();
    // A version that does not sleep.
    Thread.interrupted();
  }
}
