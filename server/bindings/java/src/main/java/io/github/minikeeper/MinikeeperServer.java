package io.github.minikeeper;

import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * The program {@code minikeeper} as a child of this process, on a free loopback port, with every verb. It starts within
 * a few milliseconds and exits with this process, even if that is killed.
 *
 * <pre>{@code
 * try (MinikeeperServer server = MinikeeperServer.builder().start()) {
 *   CuratorFramework client = CuratorFrameworkFactory.newClient(server.connectString(), new RetryOneTime(100));
 *   ...
 *   server.expire(client.getZookeeperClient().getZooKeeper().getSessionId());
 * }
 * }</pre>
 *
 * <p>The property {@code minikeeper.bin} names the program, else the environment variable MINIKEEPER_BIN; without
 * either, it is the one in the jar.
 */
public final class MinikeeperServer extends Universe implements AutoCloseable {
  private final List<String> options;
  private int port;
  private Program program;

  private MinikeeperServer(Builder builder) {
    super(null, null, null);
    this.options = new ArrayList<>(builder.options);
    this.port = builder.port;
  }

  /** Returns a builder for a server. */
  public static Builder builder() {
    return new Builder();
  }

  /** Starts it unless it is running; after {@link #stop}, on the same port. */
  public synchronized void start() {
    if (program != null && program.isRunning()) return;
    if (System.getenv("MINIKEEPER_SWEEP_RUN") != null) {
      throw new MinikeeperException("the test has a server of its own, and minikeeper sweep acts on its own server only: mark the"
          + " test with @MinikeeperSweep and run it without minikeeper sweep");
    }
    List<String> all = new ArrayList<>(List.of("--port", Integer.toString(port)));
    all.addAll(options);
    program = new Program(all);
    connect(program.address, null);
    port = port();
  }

  /**
   * Stops it, like SIGTERM, and waits until it has exited. It saves first if it has a data directory. Does nothing if
   * it is not running.
   */
  public synchronized void stop() {
    Program running = program;
    program = null;
    if (running != null) running.stop();
  }

  /**
   * Undoes changes of a test to the whole server, so that clients can connect: starts the program if it is not running
   * or does not answer, brings the server up if it is down, and every server of an ensemble, removes the faults of its own
   * universe, and unfreezes its clock. Znodes, sessions and universes remain. The JUnit extension calls this before each test.
   */
  public synchronized void ensureReady() {
    start();
    try {
      comeUp(Keep.EVERYTHING);
    } catch (MinikeeperException error) {
      if (error.status() != 0) throw error;
      // Another caller has taken it down, and only that caller knows where to bring it up.
      kill();
      start();
    }
    if (connectString().indexOf(',') >= 0) {
      for (EnsembleServer one : servers()) setServer(one.id(), Mode.UP);
    }
    resetFaults();
    autoAdvance(null);
    unfreeze();
  }

  /** Kills it, as in a crash: it keeps its last save. */
  public synchronized void kill() {
    Program running = program;
    program = null;
    if (running != null) running.kill();
  }

  /** Whether it is running. */
  public synchronized boolean isRunning() {
    return program != null && program.isRunning();
  }

  /** The last lines of its output; with the options {@code --log debug}, every request. */
  public synchronized String log() {
    return program == null ? "" : program.said();
  }

  /**
   * Stops it. Then throws {@link MinikeeperException} (409) if a fault, of any of its universes, has never acted and is not
   * optional. In try-with-resources this does not hide an exception of the block. {@link #stop} does not throw it.
   */
  @Override
  public synchronized void close() {
    List<String> never = new ArrayList<>();
    try {
      if (isRunning()) neverActed(never);
    } finally {
      stop();
    }
    if (!never.isEmpty()) throw new MinikeeperException(String.join("\n", never), 409, null);
  }

  private void neverActed(List<String> sentences) {
    try {
      sentences.addAll(removeFaultsThatNeverActed());
      for (String name : universes()) sentences.addAll(named(name).removeFaultsThatNeverActed());
    } catch (MinikeeperException error) {
      // It does not answer, or with --control-token in the options, the test has the token, and not this server.
      if (error.status() != 0 && error.status() != 401) throw error;
    }
  }

  /** Builds a server; by default on a free port, without a data directory, with ticks of 3 s. */
  public static final class Builder {
    private final List<String> options = new ArrayList<>();
    private int port;

    private Builder() {}

    /** The port to listen on; 0, the default, takes a free one. */
    public Builder port(int port) {
      this.port = port;
      return this;
    }

    /** A folder that keeps the state between runs. */
    public Builder dataDir(Path dir) {
      return options("--data-dir", dir.toAbsolutePath().toString());
    }

    /** The unit of session timeouts, which are limited to 2 to 20 ticks. */
    public Builder tickTime(Duration tick) {
      return options("--tick-time", Long.toString(tick.toMillis()));
    }

    /**
     * The number of servers of one ensemble that it plays, by default 1. They listen on consecutive ports; {@code setServer}
     * takes them down, so that clients fail over.
     */
    public Builder servers(int servers) {
      return options("--servers", Integer.toString(servers));
    }

    /** More options of the program, as on its command line. */
    public Builder options(String... more) {
      options.addAll(Arrays.asList(more));
      return this;
    }

    /** Creates a server without starting it. */
    public MinikeeperServer build() {
      return new MinikeeperServer(this);
    }

    /** Creates and starts a server. */
    public MinikeeperServer start() {
      MinikeeperServer server = build();
      server.start();
      return server;
    }
  }
}
