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
 * Stands in for Curator's class of the same name: what a {@link TestingServer} is to be like. Ports and ids of an ensemble
 * are kept and told, and mean nothing to a single server.
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

  /** As the one with all parameters, with the defaults of the rest. */
  public InstanceSpec(
      File dataDirectory,
      int port,
      int electionPort,
      int quorumPort,
      boolean deleteDataDirectoryOnClose,
      int serverId) {
    this(dataDirectory, port, electionPort, quorumPort, deleteDataDirectoryOnClose, serverId, -1, -1);
  }

  /** As the one with all parameters, with the defaults of the rest. */
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

  /** As the one with all parameters, with the defaults of the rest. */
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
   * What a server is to be like.
   *
   * @param dataDirectory where its data is; null makes a directory
   * @param port the port; 0 takes a free one when it starts, -1 one that is free now
   * @param electionPort of no meaning here; -1 for a free one
   * @param quorumPort of no meaning here; -1 for a free one
   * @param deleteDataDirectoryOnClose whether the directory goes with the server
   * @param serverId of no meaning here; -1 for the next
   * @param tickTime unit of session expiry in milliseconds; -1 for 3,000
   * @param maxClientCnxns most connections from one address; 0 and -1 for no limit
   * @param customProperties lines of a zoo.cfg, all of them text; may be null
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
        throw new IllegalArgumentException("property " + name + " is no text: " + value);
      }
    });
    return Collections.unmodifiableMap(new LinkedHashMap<>(properties));
  }

  /** Begins the ids of servers anew. */
  public static void reset() {
    NEXT_SERVER_ID.set(1);
  }

  /** Says one by one what differs from the defaults. */
  public static InstanceSpecBuilder builder() {
    return new InstanceSpecBuilder();
  }

  /** All defaults, with a port that is free now. */
  public static InstanceSpec newInstanceSpec() {
    return new InstanceSpec(null, -1, -1, -1, true, -1);
  }

  /** A port that is free now. Another process may take it before you do. */
  public static int getRandomPort() {
    try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getByName("127.0.0.1"))) {
      return socket.getLocalPort();
    } catch (IOException error) {
      throw new UncheckedIOException("no free port", error);
    }
  }

  /** The id in an ensemble. */
  public int getServerId() {
    return serverId;
  }

  /** Where the data is. */
  public File getDataDirectory() {
    return dataDirectory;
  }

  /** The port; 0 for a free one. */
  public int getPort() {
    return port;
  }

  /** Of no meaning here. */
  public int getElectionPort() {
    return electionPort;
  }

  /** Of no meaning here. */
  public int getQuorumPort() {
    return quorumPort;
  }

  /** HOST:PORT; that of the server is right with port 0 too. */
  public String getConnectString() {
    return hostname + ":" + port;
  }

  /** Unit of session expiry in milliseconds, or -1. */
  public int getTickTime() {
    return tickTime;
  }

  /** Most connections from one address, or -1. */
  public int getMaxClientCnxns() {
    return maxClientCnxns;
  }

  /** Whether the directory goes with the server. */
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
