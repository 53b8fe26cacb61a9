// Generated from the table of verbs, server/src/control/verbs. To generate it again:
// UPDATE_EXPECT=1 cargo test -p minikeeper --test bindings
package io.github.minikeeper;

import java.util.Map;

/** A session of a deadlock, and what it waits for. */
public final class DeadlockStep extends Answer {
  DeadlockStep(Map<String, Object> json) {
    super(json);
  }

  /** Its session. */
  public long session() {
    return Values.session(json.get("session"));
  }

  /** HOST:PORT of its client; null if it is not connected. */
  public String address() {
    return (String) json.get("address");
  }

  /** The path of the lock. */
  public String lock() {
    return (String) json.get("lock");
  }

  /** The path of its znode. */
  public String contender() {
    return (String) json.get("contender");
  }

  /** The session that it waits for. */
  public long waitsFor() {
    return Values.session(json.get("waits_for"));
  }

  /** Whether that session holds the lock. */
  public boolean isHeld() {
    return Boolean.TRUE.equals(json.get("is_held"));
  }

  /** Every field that the server returned, by the names of the control API. */
  public Map<String, Object> json() {
    return json;
  }
}
