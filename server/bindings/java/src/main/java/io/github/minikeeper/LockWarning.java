// Generated from the table of verbs, server/src/control/verbs. To generate it again:
// UPDATE_EXPECT=1 cargo test -p minikeeper --test bindings
package io.github.minikeeper;

import java.util.Map;

/** What is wrong with a lock. */
public final class LockWarning extends Answer {
  LockWarning(Map<String, Object> json) {
    super(json);
  }

  /** {@code herd}, {@code waiter-without-watch}, {@code silent-session}, {@code no-connection} or {@code orphan}. */
  public String code() {
    return (String) json.get("code");
  }

  /** The znode concerned. */
  public String path() {
    return (String) json.get("path");
  }

  /** A sentence. */
  public String text() {
    return (String) json.get("text");
  }

  /** Every field that the server returned, by the names of the control API. */
  public Map<String, Object> json() {
    return json;
  }
}
