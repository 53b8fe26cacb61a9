// Generated from the table of verbs, server/src/control/verbs. To generate it again:
// UPDATE_EXPECT=1 cargo test -p minikeeper --test bindings
package io.github.minikeeper;

import java.time.Duration;
import java.util.List;
import java.util.Map;

/** A session as the server sees it. */
public final class Session extends Answer {
  Session(Map<String, Object> json) {
    super(json);
  }

  /** Its id, as its client has it. */
  public long id() {
    return Values.session(json.get("id"));
  }

  /** Its negotiated timeout. */
  public Duration timeout() {
    return Duration.ofMillis(Values.number(json.get("timeout_ms")));
  }

  /** The time until it expires, by the universe's clock. */
  public Duration timeoutLeft() {
    return Duration.ofMillis(Values.number(json.get("timeout_left_ms")));
  }

  /** HOST:PORT of its client; null without a TCP connection. */
  public String address() {
    return (String) json.get("address");
  }

  /** Whether it has a connection. */
  public boolean isConnected() {
    return Boolean.TRUE.equals(json.get("is_connected"));
  }

  /** Whether it is silenced. */
  public boolean isSilenced() {
    return Boolean.TRUE.equals(json.get("is_silenced"));
  }

  /** The identities of its connection as {@code scheme:id}, without passwords. */
  public List<String> identities() {
    return Values.texts(json.get("identities"));
  }

  /** The paths of its ephemerals, oldest first. */
  public List<String> ephemerals() {
    return Values.texts(json.get("ephemerals"));
  }

  /** Its watches, by path. */
  public List<Watch> watches() {
    return Values.list(json.get("watches"), it -> new Watch(Control.object(it)));
  }

  /** Its last request; null without one. */
  public LastOperation lastOperation() {
    return Values.orNull(json.get("last_operation"), it -> new LastOperation(Control.object(it)));
  }

  /** Whether its universe is unknown, because its client has not sent a request with a path yet. */
  public boolean isUnbound() {
    return Boolean.TRUE.equals(json.get("is_unbound"));
  }

  /** Every field that the server returned, by the names of the control API. */
  public Map<String, Object> json() {
    return json;
  }
}
