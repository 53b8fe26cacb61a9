package io.github.minikeeper;

import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.Map;

/** A znode, as the verb {@code get} returns it. */
public final class Znode {
  private final Map<String, Object> json;

  Znode(Map<String, Object> json) {
    this.json = json;
  }

  /** Its data, or null if it has none. */
  public byte[] data() {
    Object coded = json.get("data_base64");
    if (coded != null) return Base64.getDecoder().decode((String) coded);
    Object text = json.get("data");
    return text == null ? null : ((String) text).getBytes(StandardCharsets.UTF_8);
  }

  /** Its data as text, or null if it has none. */
  public String text() {
    byte[] data = data();
    return data == null ? null : new String(data, StandardCharsets.UTF_8);
  }

  /** Its stat, by the names of the control API. */
  public Map<String, Object> stat() {
    return Control.object(json.get("stat"));
  }

  @Override
  public String toString() {
    return json.toString();
  }
}
