package io.github.minikeeper;

import java.time.Duration;
import java.util.Map;

/**
 * An injected fault. Closing removes it.
 *
 * <p>A fault that has never acted has tested nothing: then closing it throws {@link MinikeeperException} (409), unless
 * it was injected with {@code "optional", true} or already removed. In try-with-resources this does not hide an
 * exception of the block.
 */
public final class Fault implements AutoCloseable {
  private final Universe universe;
  final long id;
  private volatile long hits = -1;

  Fault(Universe universe, long id) {
    this.universe = universe;
    this.id = id;
  }

  /** How often it has acted so far. Throws {@link MinikeeperException} (404) if another caller has removed it. */
  public long hits() {
    if (hits >= 0) return hits;
    for (Map<String, Object> fault : universe.faults()) {
      if (Values.number(fault.get("fault")) == id) return Values.number(fault.get("hits"));
    }
    throw new MinikeeperException(this + ": unknown, or removed by another caller", 404, null);
  }

  /** Waits until it has acted this often, and returns how often it has; or throws {@link MinikeeperException} (408). */
  public long untilHit(long hits, Duration within) {
    return universe.untilHit(this, hits, within);
  }

  /**
   * Removes it. Throws {@link MinikeeperException}: 404 if it was already removed; 409 if it has never acted and is not
   * optional, in which case it is removed anyway.
   *
   * @return how often it has acted
   */
  public long remove() {
    try {
      hits = universe.removeNow(this);
    } catch (MinikeeperException error) {
      if (error.status() == 409) hits = 0;
      throw error;
    }
    return hits;
  }

  /** Removes it unless it was already removed. Throws {@link MinikeeperException} (409) if it has never acted. */
  @Override
  public void close() {
    if (hits >= 0) return;
    try {
      remove();
    } catch (MinikeeperException error) {
      // A missing fault was removed on purpose.
      if (error.status() != 404) throw error;
    }
  }

  @Override
  public String toString() {
    return "fault " + id;
  }
}
