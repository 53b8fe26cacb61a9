// Generated from the table of verbs, server/src/control/verbs. To generate it again:
// UPDATE_EXPECT=1 cargo test -p minikeeper --test bindings
package io.github.minikeeper;

import java.util.Map;

/** How often a session acquired a lock. */
public final class LockShare extends Answer {
  LockShare(Map<String, Object> json) {
    super(json);
  }

  /** Its session. */
  public long session() {
    return Values.session(json.get("session"));
  }

  /** Its acquisitions. */
  public long acquisitions() {
    return Values.number(json.get("acquisitions"));
  }

  /** Every field that the server returned, by the names of the control API. */
  public Map<String, Object> json() {
    return json;
  }
}
