package io.github.minikeeper;

import java.util.HashMap;
import java.util.Map;

/** Whose session is meant. */
public final class Who {
  final Map<String, Object> json;

  private Who(Map<String, Object> json) {
    this.json = json;
  }

  private Who(String name, String value) {
    this(Map.of(name, value));
  }

  /** A session, by its id: {@code zooKeeper.getSessionId()}. */
  public static Who session(long id) {
    return new Who("session", "0x" + Long.toHexString(id));
  }

  /** Sessions with a connection from this address: {@code "127.0.0.1:4711"}, or all from {@code "127.0.0.1"}. */
  public static Who address(String address) {
    return new Who("address", address);
  }

  /** Sessions with this identity: {@code "digest:alice"}. */
  public static Who identity(String identity) {
    return new Who("identity", identity);
  }

  /** The session that owns this ephemeral znode. */
  public static Who owner(String path) {
    return new Who("owner", path);
  }

  /**
   * The same, and it is fine that there is no such session: a verb then returns 0. Else it throws, as a test that meets
   * nobody tests nothing.
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
