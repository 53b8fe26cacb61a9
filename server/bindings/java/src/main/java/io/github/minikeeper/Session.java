package io.github.minikeeper;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** A session as the server sees it. */
public final class Session {
  private final Map<String, Object> json;

  Session(Map<String, Object> json) {
    this.json = json;
  }

  /** Its id, as {@code zooKeeper.getSessionId()} returns it. */
  public long id() {
    return Long.parseUnsignedLong(json.get("id").toString().substring(2), 16);
  }

  /** Its negotiated timeout. */
  public Duration timeout() {
    return Duration.ofMillis(((Number) json.get("timeout_ms")).longValue());
  }

  /** The address of its connection, or null without one. */
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

  /**
   * Whether its universe is unknown, because its client has not sent a request with a path yet. Until then the server's
   * own universe lists it, and so does a created universe if it is the only one.
   */
  public boolean isUnbound() {
    return Boolean.TRUE.equals(json.get("is_unbound"));
  }

  /** The name of its last request in the protocol ({@code getData}), or null. */
  public String lastOperation() {
    Map<String, Object> last = Control.object(json.get("last_operation"));
    return last == null ? null : (String) last.get("name");
  }

  /** The paths of its ephemerals. */
  public List<String> ephemerals() {
    List<String> paths = new ArrayList<>();
    if (json.get("ephemerals") instanceof List) {
      for (Object path : (List<?>) json.get("ephemerals")) paths.add((String) path);
    }
    return paths;
  }

  /** Every field that the server returned, by the names of the control API. */
  public Map<String, Object> json() {
    return json;
  }

  @Override
  public String toString() {
    return json.toString();
  }
}
