package org.apache.curator.test;

import io.github.minikeeper.EnsembleServer;
import io.github.minikeeper.Keep;
import io.github.minikeeper.MinikeeperException;
import io.github.minikeeper.MinikeeperServer;
import io.github.minikeeper.Mode;
import io.github.minikeeper.junit.RunningServers;
import java.io.Closeable;
import java.io.IOException;
import java.net.BindException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.zookeeper.ZooKeeper;

/**
 * Replaces Curator's class of the same name: an ensemble of servers that tests kill and restart one by one, so that clients
 * fail over.
 *
 * <p>It is one process with one state, which listens on the port of each server. There is no election, so that clients of the
 * remaining servers keep their connections. When half of the servers or more are killed, the others stop serving too, as an
 * ensemble without a quorum does; if the system property {@code readonlymode.enabled} is {@code true} then, they are read-only
 * instead. No session expires while no server serves.
 *
 * <p>Differences: the ports must be consecutive; the data is kept in memory until {@link #close()}; data directories, election
 * and quorum ports have no effect; {@link #start()} also starts after {@link #stop()}.
 */
public class TestingCluster implements Closeable {
  private static final int PORT_TRIES = 100;

  private final List<TestingZooKeeperServer> servers = new ArrayList<>();
  private MinikeeperServer minikeeper;
  private boolean isDown;

  /** Creates an ensemble of this many servers, on free ports. */
  public TestingCluster(int instanceQty) {
    this(makeSpecs(instanceQty));
  }

  /** Creates an ensemble of these servers. */
  public TestingCluster(InstanceSpec... specs) {
    this(Arrays.asList(specs));
  }

  /**
   * Creates an ensemble of these servers.
   *
   * @throws IllegalArgumentException if their ports are not consecutive
   */
  public TestingCluster(Collection<InstanceSpec> specs) {
    int expected = -1;
    for (InstanceSpec spec : specs) {
      if (expected >= 0 && spec.getPort() != expected) {
        throw new IllegalArgumentException("port " + spec.getPort() + " after " + (expected - 1)
            + ": the ports of an ensemble must be consecutive, because one process listens on them; TestingCluster.makeSpecs"
            + " chooses them");
      }
      expected = spec.getPort() + 1;
      servers.add(new TestingZooKeeperServer(this, spec, servers.size() + 1));
    }
  }

  /** Creates an ensemble of the servers that are keys. All have the same peers here. */
  public TestingCluster(Map<InstanceSpec, Collection<InstanceSpec>> specs) {
    this(specs.keySet());
  }

  /** The specs of the servers. */
  public Collection<InstanceSpec> getInstances() {
    List<InstanceSpec> specs = new ArrayList<>();
    for (TestingZooKeeperServer server : servers) specs.add(server.getInstanceSpec());
    return specs;
  }

  /** The servers. */
  public List<TestingZooKeeperServer> getServers() {
    return new ArrayList<>(servers);
  }

  /** The connect string for clients, with the address of each server. */
  public String getConnectString() {
    List<String> addresses = new ArrayList<>();
    for (InstanceSpec spec : getInstances()) addresses.add(spec.getConnectString());
    return String.join(",", addresses);
  }

  /** Starts all servers that are not running. */
  public synchronized void start() throws Exception {
    for (TestingZooKeeperServer server : servers) server.isRunning = true;
    apply();
  }

  /** Stops all servers. They keep their ports, data and sessions. */
  public synchronized void stop() throws IOException {
    for (TestingZooKeeperServer server : servers) server.isRunning = false;
    apply();
  }

  /** Stops all servers, and deletes data and directories. */
  @Override
  public synchronized void close() throws IOException {
    MinikeeperServer running = minikeeper;
    minikeeper = null;
    for (TestingZooKeeperServer server : servers) server.isRunning = false;
    try {
      if (running != null) {
        RunningServers.remove(running);
        running.stop();
      }
    } catch (MinikeeperException error) {
      throw new IOException(error.getMessage(), error);
    } finally {
      for (InstanceSpec spec : getInstances()) {
        if (spec.deleteDataDirectoryOnClose()) DirectoryUtils.deleteRecursively(spec.getDataDirectory());
      }
    }
  }

  /** Kills a server: its clients are disconnected, and it refuses connections. Returns false if it is not one of these. */
  public boolean killServer(InstanceSpec instance) throws Exception {
    TestingZooKeeperServer server = server(instance);
    if (server != null) server.kill();
    return server != null;
  }

  /** Restarts a server, whether it runs or not. Returns false if it is not one of these. */
  public boolean restartServer(InstanceSpec instance) throws Exception {
    TestingZooKeeperServer server = server(instance);
    if (server != null) server.restart();
    return server != null;
  }

  private TestingZooKeeperServer server(InstanceSpec instance) {
    for (TestingZooKeeperServer server : servers) {
      if (server.getInstanceSpec().equals(instance)) return server;
    }
    return null;
  }

  /** Returns the server that a client is connected to, as the servers see it; null if it is not connected. */
  public synchronized InstanceSpec findConnectionInstance(ZooKeeper client) throws Exception {
    if (minikeeper == null || isDown) return null;
    for (EnsembleServer one : minikeeper.servers()) {
      if (one.sessions().contains(client.getSessionId())) return servers.get((int) one.id() - 1).getInstanceSpec();
    }
    return null;
  }

  /**
   * The minikeeper server that plays the ensemble, with every verb. Not a method of Curator's class.
   *
   * @throws IllegalStateException if it is not running
   */
  public synchronized MinikeeperServer minikeeper() {
    if (minikeeper == null) throw new IllegalStateException("the ensemble is not running: call start()");
    return minikeeper;
  }

  /** Returns the specs of this many servers, on consecutive ports that are free now, with ids from 1. */
  public static Map<InstanceSpec, Collection<InstanceSpec>> makeSpecs(int instanceQty) {
    return makeSpecs(instanceQty, true);
  }

  /** Returns the specs of this many servers, on consecutive ports that are free now. */
  public static Map<InstanceSpec, Collection<InstanceSpec>> makeSpecs(int instanceQty, boolean resetServerIds) {
    if (resetServerIds) InstanceSpec.reset();
    int first = freePorts(instanceQty);
    List<InstanceSpec> specs = new ArrayList<>();
    for (int i = 0; i < instanceQty; i++) specs.add(InstanceSpec.builder().withPort(first + i).build());
    Map<InstanceSpec, Collection<InstanceSpec>> all = new LinkedHashMap<>();
    for (InstanceSpec spec : specs) all.put(spec, specs);
    return all;
  }

  /** Returns the first of consecutive ports that are free now. */
  private static int freePorts(int count) {
    for (int i = 0; i < PORT_TRIES; i++) {
      int first = InstanceSpec.getRandomPort();
      int port = first;
      while (port < first + count && isFree(port)) port++;
      if (port == first + count) return first;
    }
    throw new IllegalStateException("no " + count + " consecutive free ports in " + PORT_TRIES + " tries");
  }

  private static boolean isFree(int port) {
    if (port > 65_535) return false;
    try (ServerSocket socket = new ServerSocket(port, 1, InetAddress.getByName("127.0.0.1"))) {
      return socket.isBound();
    } catch (IOException error) {
      return false;
    }
  }

  /** Starts the process if a server is to run and it does not, and makes its servers run as they are to. */
  synchronized void apply() throws IOException {
    int running = 0;
    for (TestingZooKeeperServer server : servers) running += server.isRunning ? 1 : 0;
    try {
      if (minikeeper == null) {
        if (running == 0) return;
        minikeeper = started();
        RunningServers.add(minikeeper);
        isDown = false;
      }
      boolean hasQuorum = running > servers.size() / 2;
      if (!hasQuorum && (running == 0 || !Boolean.getBoolean("readonlymode.enabled"))) {
        if (!isDown) minikeeper.goDown();
        isDown = true;
        return;
      }
      // First those that serve: the last one that listens cannot be taken down.
      for (TestingZooKeeperServer server : servers) {
        if (server.isRunning) minikeeper.setServer(server.number, hasQuorum ? Mode.UP : Mode.READ_ONLY);
      }
      for (TestingZooKeeperServer server : servers) {
        if (!server.isRunning) minikeeper.setServer(server.number, Mode.DOWN);
      }
      if (isDown) minikeeper.comeUp(Keep.EVERYTHING);
      isDown = false;
    } catch (MinikeeperException error) {
      throw new IOException(error.getMessage(), error);
    }
  }

  private MinikeeperServer started() throws IOException {
    InstanceSpec first = servers.get(0).getInstanceSpec();
    MinikeeperServer.Builder builder = MinikeeperServer.builder().port(first.getPort()).servers(servers.size());
    TestingServer.configure(builder, first);
    try {
      return builder.start();
    } catch (MinikeeperException error) {
      // As the base class expects it, which tries again with other ports.
      if (error.getMessage().contains("in use")) {
        throw new FailedServerStartException((BindException) new BindException(error.getMessage()).initCause(error));
      }
      throw error;
    }
  }
}
