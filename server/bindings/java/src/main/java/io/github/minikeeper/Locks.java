// Generated from the table of verbs, server/src/control/verbs. To generate it again:
// UPDATE_EXPECT=1 cargo test -p minikeeper --test bindings
package io.github.minikeeper;

import java.util.List;
import java.util.Map;

/**
 * The result of {@code locks}.
 *
 * <p>Recognises the znodes of Curator, kazoo, go-zookeeper, ZooKeeper's own recipes and the Rust crates by their
 * names. A deadlock is a cycle of sessions that wait for each other over several locks. Lists at most 1000 locks and
 * 10000 contenders, 1000 of one lock.
 */
public final class Locks extends Answer {
  Locks(Map<String, Object> json) {
    super(json);
  }

  /** The locks, by path. */
  public List<Lock> locks() {
    return Values.list(json.get("locks"), it -> new Lock(Control.object(it)));
  }

  /** The deadlocks, each with its cycle. */
  public List<Deadlock> deadlocks() {
    return Values.list(json.get("deadlocks"), it -> new Deadlock(Control.object(it)));
  }

  /** Whether there are more locks or contenders than listed. */
  public boolean isTruncated() {
    return Boolean.TRUE.equals(json.get("is_truncated"));
  }

  /** The same for people. */
  public String text() {
    return (String) json.get("text");
  }

  /** Its text. */
  @Override
  public String toString() {
    return text();
  }
}
