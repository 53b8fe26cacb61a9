package io.github.minikeeper;

import java.util.HashMap;
import java.util.Map;

/** Selects sessions. */
public final class Who {
  final Map<String, Object> json;

  private Who(Map<String, Object> json) {
    this.json = json;
  }

  private Who(String name, String value) {
    this(Map.of(name, value));
  }

  /** Selects a session by its id: {@code zooKeeper.getSessionId()}. */
  public static Who session(long id) {
    return new Who("session", "0x" + Long.toHexString(id));
  }

  /** Selects sessions connected from an address: {@code "127.0.0.1:4711"}, or {@code "127.0.0.1"} for every port. */
  public static Who address(String address) {
    return new Who("address", address);
  }

  /** Selects sessions with an identity: {@code "digest:alice"}. */
  public static Who identity(String identity) {
    return new Who("identity", identity);
  }

  /** Selects the session that owns this ephemeral. */
  public static Who owner(String path) {
    return new Who("owner", path);
  }

  /**
   * Returns a copy that accepts no match: a verb then returns 0. Otherwise it throws, because a test without a match
   * tests nothing.
   */
  public Who allowNone() {
    Map<String, Object> more = new HashMap<>(json);
    more.put("allow_none", true);
    return new Who(more);
  }

  @Override
  public String toString() {
    return json.toString();
  }
}
