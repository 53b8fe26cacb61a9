// Generated from the table of verbs, server/src/control/verbs. To generate it again:
// UPDATE_EXPECT=1 cargo test -p minikeeper --test bindings
package io.github.minikeeper;

import java.util.List;
import java.util.Map;

/** A server of the ensemble. */
public final class EnsembleServer extends Answer {
  EnsembleServer(Map<String, Object> json) {
    super(json);
  }

  /** Its number, from 1. */
  public long id() {
    return Values.number(json.get("id"));
  }

  /** HOST:PORT. */
  public String address() {
    return (String) json.get("address");
  }

  /** What it does for its clients. */
  public Mode mode() {
    return Values.word(Mode.class, json.get("mode"));
  }

  /** Whether it says that it is the leader. */
  public boolean isLeader() {
    return Boolean.TRUE.equals(json.get("is_leader"));
  }

  /** The sessions of the universe that are connected to it. */
  public List<Long> sessions() {
    return Values.list(json.get("sessions"), Values::session);
  }

  /** Every field that the server returned, by the names of the control API. */
  public Map<String, Object> json() {
    return json;
  }
}
