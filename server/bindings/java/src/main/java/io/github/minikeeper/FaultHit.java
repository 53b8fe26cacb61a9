package io.github.minikeeper;

import java.util.Map;
import java.util.OptionalLong;

/** The request or event that a fault has acted on: see {@link Fault#lastHit}. */
public final class FaultHit {
  private final Map<String, Object> json;

  FaultHit(Map<String, Object> json) {
    this.json = json;
  }

  /** The session, as {@code zooKeeper.getSessionId()} returns it; empty for a new connection. */
  public OptionalLong session() {
    String id = (String) json.get("session");
    return id == null ? OptionalLong.empty() : OptionalLong.of(Long.parseUnsignedLong(id.substring(2), 16));
  }

  /** The operation by its name in the protocol, such as {@code getData}; {@code event} for an event. */
  public String op() {
    return (String) json.get("op");
  }

  /** The path, or null without one. */
  public String path() {
    return (String) json.get("path");
  }

  /** The number of the request in its connection; empty for an event or a handshake. */
  public OptionalLong xid() {
    Object xid = json.get("xid");
    return xid == null ? OptionalLong.empty() : OptionalLong.of(Values.number(xid));
  }

  @Override
  public String toString() {
    return json.toString();
  }
}
