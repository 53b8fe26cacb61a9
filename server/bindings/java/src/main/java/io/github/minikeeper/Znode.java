package io.github.minikeeper;

import java.nio.charset.StandardCharsets;
import java.util.Map;

/** A znode, as the verb {@code get} returns it. */
public final class Znode extends Answer {
  Znode(Map<String, Object> json) {
    super(json);
  }

  /** Its data, or null if it has none. */
  public byte[] data() {
    return Values.data(json);
  }

  /** Its data as text, or null if it has none. */
  public String text() {
    byte[] data = data();
    return data == null ? null : new String(data, StandardCharsets.UTF_8);
  }

  /** Its metadata. */
  public Stat stat() {
    return new Stat(Control.object(json.get("stat")));
  }
}
