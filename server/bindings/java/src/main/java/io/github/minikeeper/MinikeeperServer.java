package io.github.minikeeper;

import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * The program {@code minikeeper} as a child of this process, on a free loopback port, with every verb of a test. It is up
 * after a few milliseconds, and ends with this process, also when that is killed.
 *
 * <pre>{@code
 * try (MinikeeperServer server = MinikeeperServer.builder().start()) {
 *   CuratorFramework client = CuratorFrameworkFactory.newClient(server.connectString(), new RetryOneTime(100));
 *   ...
 *   server.expire(client.getZookeeperClient().getZooKeeper().getSessionId());
 * }
 * }</pre>
 *
 * <p>The program is the one named by the property {@code minikeeper.bin}, else by the environment's MINIKEEPER_BIN, else
 * the one in the jar.
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

  /** What a server is to be like. */
  public static Builder builder() {
    return new Builder();
  }

  /** Starts it, unless it runs; after {@link #stop} on the port it had. */
  public synchronized void start() {
    if (program != null && program.isRunning()) return;
    List<String> all = new ArrayList<>(List.of("--port", Integer.toString(port)));
    all.addAll(options);
    program = new Program(all);
    connect(program.address, null);
    port = port();
  }

  /**
   * Stops it, as SIGTERM does, and waits until it has stopped; it saves before if it has a data directory. Nothing happens
   * if it does not run.
   */
  public synchronized void stop() {
    Program running = program;
    program = null;
    if (running != null) running.stop();
  }

  /**
   * Undoes what a test may have left on the server itself, so that clients can connect: starts the program if it does not
   * run or answer, brings the server up if it is down, takes back the faults of its own universe, and lets its clock run.
   * Znodes, sessions and universes stay. The JUnit extension does so before each test.
   */
  public synchronized void ensureReady() {
    start();
    try {
      comeUp(Keep.EVERYTHING);
    } catch (MinikeeperException error) {
      if (error.status() != 0) throw error;
      // Another caller has taken it down, and knows the address at which to bring it up.
      kill();
      start();
    }
    resetFaults();
    autoAdvance(null);
    unfreeze();
  }

  /** Ends it as a crash does: what it keeps is its last save. */
  public synchronized void kill() {
    Program running = program;
    program = null;
    if (running != null) running.kill();
  }

  /** Whether it runs. */
  public synchronized boolean isRunning() {
    return program != null && program.isRunning();
  }

  /** The last lines it wrote: with the options {@code --log debug} every request. */
  public synchronized String log() {
    return program == null ? "" : program.said();
  }

  /** Stops it. */
  @Override
  public void close() {
    stop();
  }

  /** What a server is to be like; by default a free port, nothing kept, ticks of 3 s. */
  public static final class Builder {
    private final List<String> options = new ArrayList<>();
    private int port;

    private Builder() {}

    /** The port to listen on; 0, the default, takes a free one. */
    public Builder port(int port) {
      this.port = port;
      return this;
    }

    /** A folder to keep everything in, from one run to the next. */
    public Builder dataDir(Path dir) {
      return options("--data-dir", dir.toAbsolutePath().toString());
    }

    /** Unit of session expiry. Sessions are of 2 to 20 ticks. */
    public Builder tickTime(Duration tick) {
      return options("--tick-time", Long.toString(tick.toMillis()));
    }

    /** More options of the program, as on its command line. */
    public Builder options(String... more) {
      options.addAll(Arrays.asList(more));
      return this;
    }

    /** A server that does not run yet. */
    public MinikeeperServer build() {
      return new MinikeeperServer(this);
    }

    /** A server that runs. */
    public MinikeeperServer start() {
      MinikeeperServer server = build();
      server.start();
      return server;
    }
  }
}
