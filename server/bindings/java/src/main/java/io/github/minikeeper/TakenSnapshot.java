// Generated from the table of verbs, server/src/control/verbs. To generate it again:
// UPDATE_EXPECT=1 cargo test -p minikeeper --test bindings
package io.github.minikeeper;

import java.time.Instant;
import java.util.Map;

/** A snapshot. */
public final class TakenSnapshot extends Answer {
  TakenSnapshot(Map<String, Object> json) {
    super(json);
  }

  /** Its number. */
  public long snapshot() {
    return Values.number(json.get("snapshot"));
  }

  /** When it was taken. */
  public Instant taken() {
    return Instant.ofEpochMilli(Values.number(json.get("taken_ms")));
  }

  /** Whether it can still be restored. */
  public boolean isThere() {
    return Boolean.TRUE.equals(json.get("is_there"));
  }

  /** Every field that the server returned, by the names of the control API. */
  public Map<String, Object> json() {
    return json;
  }
}
