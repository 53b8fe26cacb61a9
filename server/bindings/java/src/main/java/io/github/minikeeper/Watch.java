// Generated from the table of verbs, server/src/control/verbs. To generate it again:
// UPDATE_EXPECT=1 cargo test -p minikeeper --test bindings
package io.github.minikeeper;

import java.util.Map;

/** A watch of a session. */
public final class Watch extends Answer {
  Watch(Map<String, Object> json) {
    super(json);
  }

  /** The watched path. */
  public String path() {
    return (String) json.get("path");
  }

  /** Its kind. */
  public String kind() {
    return (String) json.get("kind");
  }

  /** Every field that the server returned, by the names of the control API. */
  public Map<String, Object> json() {
    return json;
  }
}
