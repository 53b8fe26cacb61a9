// Generated from the table of verbs, server/src/control/verbs. To generate it again:
// UPDATE_EXPECT=1 cargo test -p minikeeper --test bindings
package io.github.minikeeper;

import java.util.Map;
import java.util.OptionalLong;

/** What a fault has acted on. */
public final class FaultHit extends Answer {
  FaultHit(Map<String, Object> json) {
    super(json);
  }

  /** The session; empty for a connection that is refused, and for a handshake that opened no session. */
  public OptionalLong session() {
    return Values.optionalSession(json.get("session"));
  }

  /** The operation, {@code createSession} for a handshake; the kind of an event, such as {@code NodeDeleted}. */
  public String op() {
    return (String) json.get("op");
  }

  /** The path, the first if there are several; null without one. */
  public String path() {
    return (String) json.get("path");
  }

  /** The number that its client gave the request; empty for handshakes, connections and events. */
  public OptionalLong xid() {
    return Values.optionalNumber(json.get("xid"));
  }

  /** Every field that the server returned, by the names of the control API. */
  public Map<String, Object> json() {
    return json;
  }
}
