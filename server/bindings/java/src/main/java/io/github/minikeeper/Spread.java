// Generated from the table of verbs, server/src/control/verbs. To generate it again:
// UPDATE_EXPECT=1 cargo test -p minikeeper --test bindings
package io.github.minikeeper;

import java.time.Duration;
import java.util.Map;

/** The spread of times, in milliseconds. */
public final class Spread extends Answer {
  Spread(Map<String, Object> json) {
    super(json);
  }

  /** Its min. */
  public Duration min() {
    return Duration.ofMillis(Values.number(json.get("min")));
  }

  /** Its median. */
  public Duration median() {
    return Duration.ofMillis(Values.number(json.get("median")));
  }

  /** Its max. */
  public Duration max() {
    return Duration.ofMillis(Values.number(json.get("max")));
  }

  /** Every field that the server returned, by the names of the control API. */
  public Map<String, Object> json() {
    return json;
  }
}
