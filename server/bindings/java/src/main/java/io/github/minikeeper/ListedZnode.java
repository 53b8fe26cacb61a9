// Generated from the table of verbs, server/src/control/verbs. To generate it again:
// UPDATE_EXPECT=1 cargo test -p minikeeper --test bindings
package io.github.minikeeper;

import java.time.Duration;
import java.util.Map;
import java.util.OptionalLong;

/** A znode, without its data. */
public final class ListedZnode extends Answer {
  ListedZnode(Map<String, Object> json) {
    super(json);
  }

  /** Its path. */
  public String path() {
    return (String) json.get("path");
  }

  /** The length of its data; empty if it has none. */
  public OptionalLong dataLength() {
    return Values.optionalNumber(json.get("data_length"));
  }

  /** The session that owns it; empty if it is not ephemeral. */
  public OptionalLong ephemeralOwner() {
    return Values.optionalSession(json.get("ephemeral_owner"));
  }

  /** Whether it is a container. */
  public boolean container() {
    return Boolean.TRUE.equals(json.get("container"));
  }

  /** Its time to live; null without one. */
  public Duration ttl() {
    return Values.orNull(json.get("ttl_ms"), ms -> Duration.ofMillis(Values.number(ms)));
  }

  /** Every field that the server returned, by the names of the control API. */
  public Map<String, Object> json() {
    return json;
  }
}
