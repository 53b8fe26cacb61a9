package org.apache.curator.test;

import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Replaces Curator's class of the same name: the specification of a {@link TestingServer}. It stores the ports and ids
 * of an ensemble, but a single server ignores them.
 */
public class InstanceSpec {
  private static final AtomicInteger NEXT_SERVER_ID = new AtomicInteger(1);

  private final File dataDirectory;
  private final int port;
  private final int electionPort;
  private final int quorumPort;
  private final boolean deleteDataDirectoryOnClose;
  private final int serverId;
  private final int tickTime;
  private final int maxClientCnxns;
  private final Map<String, Object> customProperties;
  private final String hostname;

  /** Like the constructor with all parameters, with defaults for the missing ones. */
  public InstanceSpec(
      File dataDirectory,
      int port,
      int electionPort,
      int quorumPort,
      boolean deleteDataDirectoryOnClose,
      int serverId) {
    this(dataDirectory, port, electionPort, quorumPort, deleteDataDirectoryOnClose, serverId, -1, -1);
  }

  /** Like the constructor with all parameters, with defaults for the missing ones. */
  public InstanceSpec(
      File dataDirectory,
      int port,
      int electionPort,
      int quorumPort,
      boolean deleteDataDirectoryOnClose,
      int serverId,
      int tickTime,
      int maxClientCnxns) {
    this(dataDirectory, port, electionPort, quorumPort, deleteDataDirectoryOnClose, serverId, tickTime,
        maxClientCnxns, null);
  }

  /** Like the constructor with all parameters, with defaults for the missing ones. */
  public InstanceSpec(
      File dataDirectory,
      int port,
      int electionPort,
      int quorumPort,
      boolean deleteDataDirectoryOnClose,
      int serverId,
      int tickTime,
      int maxClientCnxns,
      Map<String, Object> customProperties) {
    this(dataDirectory, port, electionPort, quorumPort, deleteDataDirectoryOnClose, serverId, tickTime,
        maxClientCnxns, customProperties, null);
  }

  /**
   * Specifies a server.
   *
   * @param dataDirectory the directory of its data; null creates one
   * @param port the port; 0 takes a free one when the server starts, -1 one that is free now
   * @param electionPort has no effect; -1 for a free one
   * @param quorumPort has no effect; -1 for a free one
   * @param deleteDataDirectoryOnClose whether closing the server deletes the directory
   * @param serverId has no effect; -1 for the next id
   * @param tickTime the unit of session timeouts in milliseconds; -1 for that of {@code Timing2}, 1,000
   * @param maxClientCnxns the limit of connections from one address; 0 and -1 for no limit
   * @param customProperties lines of a zoo.cfg, all of them strings; may be null
   * @param hostname the address to listen on; null for 127.0.0.1
   */
  public InstanceSpec(
      File dataDirectory,
      int port,
      int electionPort,
      int quorumPort,
      boolean deleteDataDirectoryOnClose,
      int serverId,
      int tickTime,
      int maxClientCnxns,
      Map<String, Object> customProperties,
      String hostname) {
    this.dataDirectory = dataDirectory != null ? dataDirectory : DirectoryUtils.createTempDirectory();
    this.port = port >= 0 ? port : getRandomPort();
    this.electionPort = electionPort >= 0 ? electionPort : getRandomPort();
    this.quorumPort = quorumPort >= 0 ? quorumPort : getRandomPort();
    this.deleteDataDirectoryOnClose = deleteDataDirectoryOnClose;
    this.serverId = serverId >= 0 ? serverId : NEXT_SERVER_ID.getAndIncrement();
    this.tickTime = tickTime > 0 ? tickTime : -1;
    this.maxClientCnxns = maxClientCnxns >= 0 ? maxClientCnxns : -1;
    this.customProperties = texts(customProperties);
    this.hostname = hostname != null ? hostname : "127.0.0.1";
  }

  private static Map<String, Object> texts(Map<String, Object> properties) {
    if (properties == null) return Collections.emptyMap();
    properties.forEach((name, value) -> {
      if (!(value instanceof String)) {
        throw new IllegalArgumentException("property " + name + " is not a string: " + value);
      }
    });
    return Collections.unmodifiableMap(new LinkedHashMap<>(properties));
  }

  /** Restarts the ids of servers at 1. */
  public static void reset() {
    NEXT_SERVER_ID.set(1);
  }

  /** Returns a builder with the defaults. */
  public static InstanceSpecBuilder builder() {
    return new InstanceSpecBuilder();
  }

  /** Returns a spec with the defaults, and a port that is free now. */
  public static InstanceSpec newInstanceSpec() {
    return new InstanceSpec(null, -1, -1, -1, true, -1);
  }

  /** Returns a port that is free now. Another process may take it before you do. */
  public static int getRandomPort() {
    try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getByName("127.0.0.1"))) {
      return socket.getLocalPort();
    } catch (IOException error) {
      throw new UncheckedIOException("no free port", error);
    }
  }

  /** The id in an ensemble, which has no effect. */
  public int getServerId() {
    return serverId;
  }

  /** The directory of the data. */
  public File getDataDirectory() {
    return dataDirectory;
  }

  /** The port; 0 for a free one. */
  public int getPort() {
    return port;
  }

  /** Has no effect. */
  public int getElectionPort() {
    return electionPort;
  }

  /** Has no effect. */
  public int getQuorumPort() {
    return quorumPort;
  }

  /** HOST:PORT. With port 0, use the connect string of the server instead. */
  public String getConnectString() {
    return hostname + ":" + port;
  }

  /** The unit of session timeouts in milliseconds, or -1. */
  public int getTickTime() {
    return tickTime;
  }

  /** The limit of connections from one address, or -1. */
  public int getMaxClientCnxns() {
    return maxClientCnxns;
  }

  /** Whether closing the server deletes the directory. */
  public boolean deleteDataDirectoryOnClose() {
    return deleteDataDirectoryOnClose;
  }

  /** Lines of a zoo.cfg. */
  public Map<String, Object> getCustomProperties() {
    return customProperties;
  }

  /** The address to listen on. */
  public String getHostname() {
    return hostname;
  }

  @Override
  public String toString() {
    return "InstanceSpec " + getConnectString() + " in " + dataDirectory;
  }

  @Override
  public boolean equals(Object other) {
    if (this == other) return true;
    if (other == null || other.getClass() != getClass()) return false;
    InstanceSpec that = (InstanceSpec) other;
    return port == that.port && hostname.equals(that.hostname);
  }

  @Override
  public int hashCode() {
    return 31 * hostname.hashCode() + port;
  }
}
