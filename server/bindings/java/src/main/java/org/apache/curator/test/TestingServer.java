package org.apache.curator.test;

import io.github.minikeeper.MinikeeperException;
import io.github.minikeeper.MinikeeperServer;
import io.github.minikeeper.junit.RunningServers;
import java.io.Closeable;
import java.io.File;
import java.io.IOException;
import java.io.Writer;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.Properties;
import org.apache.curator.test.compatibility.Timing2;

/**
 * Replaces Curator's class of the same name: the same constructors and methods, with minikeeper as the server.
 *
 * <p>The temp directory keeps data and sessions, so that a stopped server continues from there when it is started
 * again, on the same port. {@link #minikeeper()} has the verbs that Curator's class lacks.
 *
 * <p>Sessions last from 1 tick to 20 ticks, as Curator's: 1 s to 20 s. The tick is that of the spec, else that of {@link
 * Timing2}, which the property {@code timing-multiple} multiplies.
 *
 * <p>A start reads these system properties, as Curator's does, since tests of TTLs and containers set them: {@code
 * znode.container.checkIntervalMs}, {@code maxNeverUsedIntervalMs} and {@code maxPerMinute}, and {@code zookeeper.} with
 * {@code DigestAuthenticationProvider.superDigest}, {@code enforceQuota}, {@code extendedTypesEnabled} and {@code skipACL}. A
 * property of the spec wins.
 *
 * <p>Differences: {@link #start()} also starts after {@link #stop()}, where Curator's does nothing; {@link #close()}
 * also deletes the directory of a server that was never started; the port is chosen when the server starts, or earlier
 * if a caller asks for it.
 */
public class TestingServer implements Closeable {
  private static final String PREFIX = "zookeeper.";
  /** Settings of ZooKeeper's server that are system properties, and those of no client. */
  private static final String[] SYSTEM_PROPERTIES = {
    "zookeeper.DigestAuthenticationProvider.superDigest", "zookeeper.enforceQuota", "zookeeper.extendedTypesEnabled",
    "zookeeper.skipACL", "znode.container.checkIntervalMs", "znode.container.maxNeverUsedIntervalMs",
    "znode.container.maxPerMinute"
  };

  private final InstanceSpec spec;
  private int port;
  private MinikeeperServer server;
  private boolean isClosed;

  /** Starts a server on a free port. */
  public TestingServer() throws Exception {
    this(-1, null, true);
  }

  /** Creates a server on a free port, and starts it if requested. */
  public TestingServer(boolean start) throws Exception {
    this(-1, null, start);
  }

  /** Starts a server on this port; -1 and 0 take a free one. */
  public TestingServer(int port) throws Exception {
    this(port, null, true);
  }

  /** Creates a server on this port, and starts it if requested. */
  public TestingServer(int port, boolean start) throws Exception {
    this(port, null, start);
  }

  /** Starts a server on this port, with its data in this directory; null creates one. */
  public TestingServer(int port, File tempDirectory) throws Exception {
    this(port, tempDirectory, true);
  }

  /** Creates a server on this port, with its data in this directory, and starts it if requested. */
  public TestingServer(int port, File tempDirectory, boolean start) throws Exception {
    this(InstanceSpec.builder().withPort(Math.max(0, port)).withDataDirectory(tempDirectory).build(), start);
  }

  /**
   * Creates a server from a spec, and starts it if requested. Uses directory, port, host name, tick time, connections
   * per client, and lines of a zoo.cfg.
   */
  public TestingServer(InstanceSpec spec, boolean start) throws Exception {
    this.spec = spec;
    this.port = spec.getPort();
    if (start) start();
  }

  /** The port that it listens on, or will listen on. */
  public synchronized int getPort() {
    if (port <= 0) port = InstanceSpec.getRandomPort();
    return port;
  }

  /** The directory of its data. */
  public File getTempDirectory() {
    return spec.getDataDirectory();
  }

  /** Starts it unless it is running or closed. */
  public synchronized void start() throws Exception {
    if (isClosed || server != null) return;
    Files.createDirectories(spec.getDataDirectory().toPath());
    MinikeeperServer.Builder builder = MinikeeperServer.builder()
        .port(Math.max(0, port))
        .dataDir(spec.getDataDirectory().toPath());
    configure(builder, spec);
    server = builder.start();
    port = server.port();
    RunningServers.add(server);
  }

  /** Sets what a spec says about a server, except for port and data. */
  static void configure(MinikeeperServer.Builder builder, InstanceSpec spec) throws IOException {
    builder.options("--listen", InetAddress.getByName(spec.getHostname()).getHostAddress());
    int clients = spec.getMaxClientCnxns();
    if (clients >= 0) builder.options("--max-client-cnxns", Integer.toString(clients));
    // Those of Curator's server, unless the spec has others.
    String tick = Integer.toString(spec.getTickTime() > 0 ? spec.getTickTime() : new Timing2().tickTime());
    if (!spec.getCustomProperties().containsKey("tickTime")) builder.options("--tick-time", tick);
    if (!spec.getCustomProperties().containsKey("minSessionTimeout")) builder.options("--min-session-timeout", tick);
    Properties config = config(spec);
    if (!config.isEmpty()) builder.options("--config", write(config, spec).toString());
  }

  /** The lines of a zoo.cfg: what system properties set, then what the spec sets. */
  private static Properties config(InstanceSpec spec) {
    Properties config = new Properties();
    for (String name : SYSTEM_PROPERTIES) {
      String value = System.getProperty(name);
      if (value != null) config.setProperty(name.startsWith(PREFIX) ? name.substring(PREFIX.length()) : name, value);
    }
    for (Map.Entry<String, Object> entry : spec.getCustomProperties().entrySet()) {
      config.setProperty(entry.getKey(), entry.getValue().toString());
    }
    return config;
  }

  /** Writes a zoo.cfg. The program applies the keys it knows, and lists the others on stderr. */
  private static Path write(Properties config, InstanceSpec spec) throws IOException {
    Path file = spec.getDataDirectory().toPath().resolve("zoo.cfg");
    try (Writer out = Files.newBufferedWriter(file, StandardCharsets.ISO_8859_1)) {
      config.store(out, null);
    }
    return file;
  }

  /** Stops it, and keeps its data and sessions. */
  public synchronized void stop() throws IOException {
    MinikeeperServer running = server;
    server = null;
    if (running == null) return;
    RunningServers.remove(running);
    try {
      running.stop();
    } catch (MinikeeperException error) {
      throw new IOException(error.getMessage(), error);
    }
  }

  /** Stops it if it is running, and starts it. Throws IllegalStateException if it is closed. */
  public synchronized void restart() throws Exception {
    if (isClosed) throw new IllegalStateException("a closed server cannot be started again");
    stop();
    start();
  }

  /** Stops it and deletes its directory, unless the spec keeps it. Does nothing if it is already closed. */
  @Override
  public synchronized void close() throws IOException {
    if (isClosed) return;
    isClosed = true;
    stop();
    if (spec.deleteDataDirectoryOnClose()) DirectoryUtils.deleteRecursively(spec.getDataDirectory());
  }

  /** The connect string for clients: HOST:PORT. */
  public String getConnectString() {
    return spec.getHostname() + ":" + getPort();
  }

  /**
   * The minikeeper server, with every verb. Not a method of Curator's class.
   *
   * @throws IllegalStateException if it is not running
   */
  public synchronized MinikeeperServer minikeeper() {
    if (server == null) throw new IllegalStateException("the server is not running: call start()");
    return server;
  }
}
