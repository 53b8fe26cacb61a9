// Generated from the table of verbs, server/src/control/verbs. To generate it again:
// UPDATE_EXPECT=1 cargo test -p minikeeper --test bindings
package io.github.minikeeper;

import java.util.List;
import java.util.Map;

/** Sessions that wait for each other over several locks. */
public final class Deadlock extends Answer {
  Deadlock(Map<String, Object> json) {
    super(json);
  }

  /** Always {@code deadlock}. */
  public String code() {
    return (String) json.get("code");
  }

  /** A sentence. */
  public String text() {
    return (String) json.get("text");
  }

  /** Its cycle. */
  public List<DeadlockStep> cycle() {
    return Values.list(json.get("cycle"), it -> new DeadlockStep(Control.object(it)));
  }

  /** Its sessions. */
  public List<Long> sessions() {
    return Values.list(json.get("sessions"), Values::session);
  }

  /** Every field that the server returned, by the names of the control API. */
  public Map<String, Object> json() {
    return json;
  }
}
