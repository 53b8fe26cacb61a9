// Generated from the table of verbs, server/src/control/verbs. To generate it again:
// UPDATE_EXPECT=1 cargo test -p minikeeper --test bindings
package io.github.minikeeper;

import java.util.List;
import java.util.Map;
import java.util.OptionalDouble;

/** What the journal knows of a lock. */
public final class LockHistory extends Answer {
  LockHistory(Map<String, Object> json) {
    super(json);
  }

  /** Its acquisitions. */
  public long acquisitions() {
    return Values.number(json.get("acquisitions"));
  }

  /** The sessions that acquired it. */
  public List<LockShare> sessions() {
    return Values.list(json.get("sessions"), it -> new LockShare(Control.object(it)));
  }

  /** How many there are, listed or not. */
  public long sessionsTotal() {
    return Values.number(json.get("sessions_total"));
  }

  /** Jain's index: 1 if all sessions acquired it equally often. */
  public OptionalDouble fairness() {
    return Values.optionalDouble(json.get("fairness"));
  }

  /** Its hand overs. */
  public long handOvers() {
    return Values.number(json.get("hand_overs"));
  }

  /** How long it was free while a contender waited. */
  public Spread handOver() {
    return Values.orNull(json.get("hand_over_ms"), it -> new Spread(Control.object(it)));
  }

  /** How long contenders waited. */
  public Spread waits() {
    return Values.orNull(json.get("wait_ms"), it -> new Spread(Control.object(it)));
  }

  /** How many contenders left without having held it. */
  public long gaveUp() {
    return Values.number(json.get("gave_up"));
  }

  /** Every field that the server returned, by the names of the control API. */
  public Map<String, Object> json() {
    return json;
  }
}
