package io.github.minikeeper.junit;

import io.github.minikeeper.InjectedFault;
import io.github.minikeeper.MinikeeperException;
import io.github.minikeeper.Universe;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.function.Consumer;

/**
 * This process as a run of {@code minikeeper sweep -- COMMAND}, whose faults act in the own universe of the server at
 * MINIKEEPER_CONNECT. So tests use that one, one after the other, and each gets it as the first one did. Uses neither JUnit 4
 * nor 5, so that either may be missing.
 */
final class SweptRun {
  private static Universe universe;
  private static long start;
  /** The test that has the universe. */
  private static SweptRun current;

  private final Set<Long> faultsOfTheSweep = new HashSet<>();

  private SweptRun() {}

  /** Whether this process is such a run. */
  static boolean isOne() {
    return System.getenv("MINIKEEPER_SWEEP_RUN") != null && System.getenv("MINIKEEPER_CONNECT") != null;
  }

  /** The error of a test that cannot take part. */
  static IllegalStateException refused(String why) {
    return new IllegalStateException(why + ", and minikeeper sweep acts on its own server only: mark the test with @MinikeeperSweep"
        + " and run it without minikeeper sweep");
  }

  /** Gives a test the universe. */
  static synchronized SweptRun begin(List<String> options) {
    if (!options.isEmpty()) throw refused("the test has a server with the options " + String.join(" ", options));
    if (current != null) {
      throw new IllegalStateException("two tests at the same time, and minikeeper sweep has one universe: run them one after the"
          + " other, without junit.jupiter.execution.parallel.enabled");
    }
    if (universe == null) {
      universe = Universe.at(System.getenv("MINIKEEPER_CONNECT"), null);
      start = universe.snapshot();
    }
    current = new SweptRun();
    for (InjectedFault fault : universe.faults()) current.faultsOfTheSweep.add(fault.fault());
    return current;
  }

  Universe universe() {
    return universe;
  }

  /**
   * Ends the test: removes its faults, and restores the universe. A fault of the test that has never acted is an error, unless
   * it is optional: then tells the story.
   */
  void end(Consumer<Throwable> tell, Runnable closeClients) {
    synchronized (SweptRun.class) {
      try {
        // A fault of the sweep may have kept a fault of the test from acting.
        AssertionError failure = faultsOfTheSweep.isEmpty() ? Worlds.neverActed(universe, tell) : null;
        List<InjectedFault> own = universe.faults();
        own.removeIf(fault -> faultsOfTheSweep.contains(fault.fault()));
        for (InjectedFault fault : own) remove(fault.fault());
        closeClients.run();
        // Sweeps do not freeze the clock.
        universe.unfreeze();
        universe.restore(start);
        if (failure != null) throw failure;
      } finally {
        current = null;
      }
    }
  }

  private static void remove(long fault) {
    try {
      universe.fault(fault).remove();
    } catch (MinikeeperException error) {
      // It has never acted, which is told, but now it has ended.
      if (error.status() != 409) throw error;
    }
  }
}
