package io.github.minikeeper;

import java.time.Duration;
import java.util.Map;

/** A rule that is in force until it is closed. */
public final class Fault implements AutoCloseable {
  private final Universe universe;
  final Object id;

  Fault(Universe universe, Object id) {
    this.universe = universe;
    this.id = id;
  }

  /** How often it was met so far. */
  public long hits() {
    for (Map<String, Object> fault : universe.faults()) {
      if (id.equals(fault.getOrDefault("fault", fault.get("id")))) return ((Number) fault.get("hits")).longValue();
    }
    return 0;
  }

  /** Waits until it has been met so often, or throws {@link MinikeeperException} (408). */
  public void untilHit(int hits, Duration within) {
    universe.untilHit(this, hits, within);
  }

  /** Takes it back. */
  @Override
  public void close() {
    universe.removeFault(this);
  }

  @Override
  public String toString() {
    return "fault " + id;
  }
}
