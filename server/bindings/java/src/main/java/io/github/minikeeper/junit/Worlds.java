package io.github.minikeeper.junit;

import io.github.minikeeper.InjectedFault;
import io.github.minikeeper.MinikeeperException;
import io.github.minikeeper.MinikeeperServer;
import io.github.minikeeper.Universe;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;

/** The universes of tests. Uses neither JUnit 4 nor 5, so that either may be missing. */
final class Worlds {
  private static final AtomicInteger NUMBER = new AtomicInteger();

  private Worlds() {}

  static MinikeeperServer start(List<String> options) {
    return MinikeeperServer.builder().options(options.toArray(new String[0])).start();
  }

  /** Returns a name that no other universe of this process has. */
  static String newName() {
    return "junit-" + NUMBER.incrementAndGet();
  }

  /**
   * Drops a universe. A remaining fault that has never acted is an error, unless it is optional: then tells the story. Closes
   * the clients after that.
   */
  static void end(
      MinikeeperServer server, Universe universe, String name, Consumer<Throwable> tell, Runnable closeClients) {
    server.ensureReady();
    AssertionError failure;
    try {
      failure = neverActed(universe, tell);
      // Closing a client must not wait for what a fault holds back.
      if (failure != null) universe.resetFaults();
      closeClients.run();
      server.dropUniverse(name);
    } catch (MinikeeperException error) {
      if (error.status() != 404) throw error;
      // The test has dropped it.
      closeClients.run();
      return;
    }
    if (failure != null) throw failure;
  }

  /**
   * Tells the story if there is a fault that has never acted and is not optional, and removes it. Returns the error; null if
   * there is none.
   */
  static AssertionError neverActed(Universe universe, Consumer<Throwable> tell) {
    boolean hasAny = false;
    for (InjectedFault fault : universe.faults()) hasAny |= fault.hits() == 0 && !fault.optional();
    if (!hasAny) return null;
    // While the server still has them.
    tell.accept(new AssertionError("faults that have never acted"));
    List<String> never = universe.removeFaultsThatNeverActed();
    return never.isEmpty() ? null : new AssertionError(String.join("\n", never));
  }
}
