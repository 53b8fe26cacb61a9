// Generated from the table of verbs, server/src/control/verbs. To generate it again:
// UPDATE_EXPECT=1 cargo test -p minikeeper --test bindings
package io.github.minikeeper;

import java.time.Duration;
import java.util.Map;

/** The last request of a session. */
public final class LastOperation extends Answer {
  LastOperation(Map<String, Object> json) {
    super(json);
  }

  /** Its name in the protocol, such as {@code getData}. */
  public String name() {
    return (String) json.get("name");
  }

  /** The time by the universe's clock, since the start. */
  public Duration at() {
    return Duration.ofMillis(Values.number(json.get("at_ms")));
  }

  /** Every field that the server returned, by the names of the control API. */
  public Map<String, Object> json() {
    return json;
  }
}
