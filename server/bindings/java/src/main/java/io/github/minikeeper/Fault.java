package io.github.minikeeper;

import java.time.Duration;
import java.util.Map;

/**
 * A rule that is in force until it is closed.
 *
 * <p>One that has never acted has tested nothing: closing it throws {@link MinikeeperException} (409), unless it was injected
 * with {@code "optional", true} or was removed by hand before. In try-with-resources that does not hide an exception that is
 * on its way.
 */
public final class Fault implements AutoCloseable {
  private final Universe universe;
  final Object id;
  private volatile long hits = -1;

  Fault(Universe universe, Object id) {
    this.universe = universe;
    this.id = id;
  }

  /** How often it has acted so far. Throws {@link MinikeeperException} (404) if somebody else has removed it. */
  public long hits() {
    if (hits >= 0) return hits;
    for (Map<String, Object> fault : universe.faults()) {
      if (id.equals(fault.getOrDefault("fault", fault.get("id")))) return ((Number) fault.get("hits")).longValue();
    }
    throw new MinikeeperException(this + ": unknown, or removed by somebody else", 404, null);
  }

  /** Waits until it has been met so often, or throws {@link MinikeeperException} (408). */
  public void untilHit(int hits, Duration within) {
    universe.untilHit(this, hits, within);
  }

  /**
   * Takes it back. Throws {@link MinikeeperException}: 404 if it is gone already, 409 if it has never acted and is not
   * optional; it is taken back all the same.
   *
   * @return how often it has acted
   */
  public long remove() {
    try {
      hits = universe.removeFault(id);
    } catch (MinikeeperException error) {
      if (error.status() == 409) hits = 0;
      throw error;
    }
    return hits;
  }

  /** Takes it back, unless that has been done. Throws {@link MinikeeperException} (409) if it has never acted. */
  @Override
  public void close() {
    if (hits >= 0) return;
    try {
      remove();
    } catch (MinikeeperException error) {
      // Who has removed it by hand knows what became of it.
      if (error.status() != 404) throw error;
    }
  }

  @Override
  public String toString() {
    return "fault " + id;
  }
}
