package io.github.minikeeper;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** A session as its server sees it. */
public final class Session {
  private final Map<String, Object> json;

  Session(Map<String, Object> json) {
    this.json = json;
  }

  /** Its id, as {@code zooKeeper.getSessionId()} tells it. */
  public long id() {
    return Long.parseUnsignedLong(json.get("id").toString().substring(2), 16);
  }

  /** Its timeout as negotiated. */
  public Duration timeout() {
    return Duration.ofMillis(((Number) json.get("timeout_ms")).longValue());
  }

  /** The address of its connection, or null. */
  public String address() {
    return (String) json.get("address");
  }

  /** Whether it has a connection now. */
  public boolean isConnected() {
    return Boolean.TRUE.equals(json.get("is_connected"));
  }

  /** Whether it is not heard now. */
  public boolean isSilenced() {
    return Boolean.TRUE.equals(json.get("is_silenced"));
  }

  /**
   * Whether it belongs to no universe yet: its client has not sent a path so far, which says to which one. Until then the
   * server's own universe lists it, and another one if there is no third.
   */
  public boolean isUnbound() {
    return Boolean.TRUE.equals(json.get("is_unbound"));
  }

  /** What it asked last, as the protocol calls it ({@code getData}), or null. */
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

  /** All that the server tells, by the names of the control API. */
  public Map<String, Object> json() {
    return json;
  }

  @Override
  public String toString() {
    return json.toString();
  }
}
