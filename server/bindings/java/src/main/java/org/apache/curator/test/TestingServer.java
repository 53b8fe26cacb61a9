package org.apache.curator.test;

import io.github.minikeeper.MinikeeperException;
import io.github.minikeeper.MinikeeperServer;
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
import java.util.Set;
import java.util.concurrent.CopyOnWriteArraySet;

/**
 * Stands in for Curator's class of the same name: the same constructors and methods, with minikeeper behind them.
 *
 * <p>Data and sessions are kept in the temp directory, so that a server that is stopped and started again goes on where it
 * was, on the same port. {@link #minikeeper()} has the verbs that Curator's class does not have.
 *
 * <p>Differences: {@link #start()} starts after a {@link #stop()} too, where Curator's does nothing; {@link #close()}
 * deletes the directory of a server that was never started too; a port is chosen when the server starts, or when a
 * caller asks for it before.
 */
public class TestingServer implements Closeable {
  private static final Set<TestingServer> OPEN = new CopyOnWriteArraySet<>();

  private final InstanceSpec spec;
  private int port;
  private MinikeeperServer server;
  private boolean isClosed;

  /** A running server on a free port. */
  public TestingServer() throws Exception {
    this(-1, null, true);
  }

  /** A server on a free port. */
  public TestingServer(boolean start) throws Exception {
    this(-1, null, start);
  }

  /** A running server on this port; -1 and 0 take a free one. */
  public TestingServer(int port) throws Exception {
    this(port, null, true);
  }

  /** A server on this port. */
  public TestingServer(int port, boolean start) throws Exception {
    this(port, null, start);
  }

  /** A running server on this port, with its data in this directory; null makes one. */
  public TestingServer(int port, File tempDirectory) throws Exception {
    this(port, tempDirectory, true);
  }

  /** A server on this port, with its data in this directory. */
  public TestingServer(int port, File tempDirectory, boolean start) throws Exception {
    this(InstanceSpec.builder().withPort(Math.max(0, port)).withDataDirectory(tempDirectory).build(), start);
  }

  /** A server as the spec says: directory, port, host name, tick, connections per client, lines of a zoo.cfg. */
  public TestingServer(InstanceSpec spec, boolean start) throws Exception {
    this.spec = spec;
    this.port = spec.getPort();
    if (start) start();
  }

  /** The port it listens on, or will. */
  public synchronized int getPort() {
    if (port <= 0) port = InstanceSpec.getRandomPort();
    return port;
  }

  /** Where its data is. */
  public File getTempDirectory() {
    return spec.getDataDirectory();
  }

  /** Starts it, unless it runs or is closed. */
  public synchronized void start() throws Exception {
    if (isClosed || server != null) return;
    Files.createDirectories(spec.getDataDirectory().toPath());
    MinikeeperServer.Builder builder = MinikeeperServer.builder()
        .port(Math.max(0, port))
        .dataDir(spec.getDataDirectory().toPath())
        .options("--listen", InetAddress.getByName(spec.getHostname()).getHostAddress());
    if (spec.getTickTime() > 0) builder.options("--tick-time", Integer.toString(spec.getTickTime()));
    int clients = spec.getMaxClientCnxns();
    if (clients >= 0) builder.options("--max-client-cnxns", Integer.toString(clients));
    if (!spec.getCustomProperties().isEmpty()) builder.options("--config", writeConfig().toString());
    server = builder.start();
    port = server.port();
    OPEN.add(this);
  }

  /** The program follows what means something to it, and names the rest on stderr. */
  private Path writeConfig() throws IOException {
    Properties properties = new Properties();
    for (Map.Entry<String, Object> entry : spec.getCustomProperties().entrySet()) {
      properties.setProperty(entry.getKey(), entry.getValue().toString());
    }
    Path file = spec.getDataDirectory().toPath().resolve("zoo.cfg");
    try (Writer out = Files.newBufferedWriter(file, StandardCharsets.ISO_8859_1)) {
      properties.store(out, null);
    }
    return file;
  }

  /** Stops it; its data and sessions stay where they are. */
  public synchronized void stop() throws IOException {
    MinikeeperServer running = server;
    server = null;
    OPEN.remove(this);
    try {
      if (running != null) running.stop();
    } catch (MinikeeperException error) {
      throw new IOException(error.getMessage(), error);
    }
  }

  /** Stops it if it runs, and starts it. Throws IllegalStateException if it is closed. */
  public synchronized void restart() throws Exception {
    if (isClosed) throw new IllegalStateException("a closed server cannot be started again");
    stop();
    start();
  }

  /** Stops it and deletes its directory, unless the spec says that it is to stay. Once closed, nothing happens. */
  @Override
  public synchronized void close() throws IOException {
    if (isClosed) return;
    isClosed = true;
    stop();
    if (spec.deleteDataDirectoryOnClose()) DirectoryUtils.deleteRecursively(spec.getDataDirectory());
  }

  /** What clients connect to: HOST:PORT. */
  public String getConnectString() {
    return spec.getHostname() + ":" + getPort();
  }

  /**
   * The server behind this one, with every verb of a test. Not a method of Curator's class.
   *
   * @throws IllegalStateException if it does not run
   */
  public synchronized MinikeeperServer minikeeper() {
    if (server == null) throw new IllegalStateException("the server does not run: call start()");
    return server;
  }

  /** Those of this process that run. */
  static Set<TestingServer> open() {
    return OPEN;
  }
}
