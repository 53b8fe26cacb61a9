// Generated from the table of verbs, server/src/control/verbs. To generate it again:
// UPDATE_EXPECT=1 cargo test -p minikeeper --test bindings
package io.github.minikeeper;

import java.util.Map;
import java.util.OptionalLong;

/** An operation of a multi. */
public final class MultiOperation extends Answer {
  MultiOperation(Map<String, Object> json) {
    super(json);
  }

  /** Its op. */
  public String op() {
    return (String) json.get("op");
  }

  /** Its path. */
  public String path() {
    return (String) json.get("path");
  }

  /** The version that it demands, -1 for any. */
  public OptionalLong version() {
    return Values.optionalNumber(json.get("version"));
  }

  /** The mode of a create. */
  public String mode() {
    return (String) json.get("mode");
  }

  /** Its data bytes. */
  public OptionalLong dataBytes() {
    return Values.optionalNumber(json.get("data_bytes"));
  }

  /** Every field that the server returned, by the names of the control API. */
  public Map<String, Object> json() {
    return json;
  }
}
