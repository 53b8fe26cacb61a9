// Generated from the table of verbs, server/src/control/verbs. To generate it again:
// UPDATE_EXPECT=1 cargo test -p minikeeper --test bindings
package io.github.minikeeper;

import java.util.Map;

/** A znode that differs from the one in a snapshot. */
public final class ZnodeChange extends Answer {
  ZnodeChange(Map<String, Object> json) {
    super(json);
  }

  /** Its path. */
  public String path() {
    return (String) json.get("path");
  }

  /** Its change. */
  public String change() {
    return (String) json.get("change");
  }

  /** The znode then; null if it did not exist or its data is null. */
  public Object before() {
    return json.get("before");
  }

  /** The znode now; null if it does not exist or its data is null. */
  public Object after() {
    return json.get("after");
  }

  /** Every field that the server returned, by the names of the control API. */
  public Map<String, Object> json() {
    return json;
  }
}
