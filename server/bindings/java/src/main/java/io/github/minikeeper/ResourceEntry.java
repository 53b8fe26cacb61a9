package io.github.minikeeper;

/** A holder that is inside a resource, until it is closed: see {@link Universe#enter(String)}. */
public final class ResourceEntry implements AutoCloseable {
  private final Universe universe;
  private final long entry;

  ResourceEntry(Universe universe, long entry) {
    this.universe = universe;
    this.entry = entry;
  }

  /** Writes to the resource. Returns whether it accepts that: it does unless it has seen a higher token. */
  public boolean write() {
    return universe.resourceWrite(entry);
  }

  /** Leaves it: before the lock is released. */
  @Override
  public void close() {
    universe.resourceLeave(entry);
  }
}
