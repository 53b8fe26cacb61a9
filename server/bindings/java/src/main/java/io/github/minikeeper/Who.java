package io.github.minikeeper;

import java.util.Map;

/** Whose session is meant. */
public final class Who {
  final Map<String, String> json;

  private Who(String name, String value) {
    json = Map.of(name, value);
  }

  /** A session, by its id: {@code zooKeeper.getSessionId()}. */
  public static Who session(long id) {
    return new Who("session", "0x" + Long.toHexString(id));
  }

  /** Whoever is connected from there: {@code "127.0.0.1:4711"}, or all from {@code "127.0.0.1"}. */
  public static Who address(String address) {
    return new Who("address", address);
  }

  /** Whoever has shown this identity: {@code "digest:alice"}. */
  public static Who identity(String identity) {
    return new Who("identity", identity);
  }

  /** Whoever owns this ephemeral. */
  public static Who owner(String path) {
    return new Who("owner", path);
  }

  @Override
  public String toString() {
    return json.toString();
  }
}
