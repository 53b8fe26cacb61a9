package org.apache.curator.test;

import java.io.Closeable;
import java.io.IOException;
import java.util.Collection;

/**
 * Replaces Curator's class of the same name: one server of a {@link TestingCluster}, which creates it. It has no constructors
 * with a {@code QuorumConfigBuilder}, which needs classes of ZooKeeper's server.
 */
public class TestingZooKeeperServer implements Closeable {
  final int number;
  volatile boolean isRunning;
  private final TestingCluster cluster;
  private final InstanceSpec spec;

  TestingZooKeeperServer(TestingCluster cluster, InstanceSpec spec, int number) {
    this.cluster = cluster;
    this.spec = spec;
    this.number = number;
  }

  /** The specs of all servers of the ensemble. */
  public Collection<InstanceSpec> getInstanceSpecs() {
    return cluster.getInstances();
  }

  /** Its spec. */
  public InstanceSpec getInstanceSpec() {
    return spec;
  }

  /** Kills it: see {@link TestingCluster#killServer}. */
  public void kill() {
    try {
      stop();
    } catch (IOException error) {
      throw new IllegalStateException(error.getMessage(), error);
    }
  }

  /** Kills it and starts it again. */
  public void restart() throws Exception {
    kill();
    start();
  }

  /** Stops it: its clients are disconnected, and it refuses connections. */
  public void stop() throws IOException {
    isRunning = false;
    cluster.apply();
  }

  /** Starts it. */
  public void start() throws Exception {
    isRunning = true;
    cluster.apply();
  }

  /** Stops it. */
  @Override
  public void close() throws IOException {
    stop();
  }
}
