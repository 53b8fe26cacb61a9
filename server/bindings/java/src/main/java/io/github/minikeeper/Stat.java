// Generated from the table of verbs, server/src/control/verbs. To generate it again:
// UPDATE_EXPECT=1 cargo test -p minikeeper --test bindings
package io.github.minikeeper;

import java.time.Instant;
import java.util.Map;

/** The metadata of a znode. */
public final class Stat extends Answer {
  Stat(Map<String, Object> json) {
    super(json);
  }

  /** The zxid of its creation. */
  public String czxid() {
    return (String) json.get("czxid");
  }

  /** The zxid of the last change of its data. */
  public String mzxid() {
    return (String) json.get("mzxid");
  }

  /** The zxid of the last change of its children. */
  public String pzxid() {
    return (String) json.get("pzxid");
  }

  /** When it was created. */
  public Instant ctime() {
    return Instant.ofEpochMilli(Values.number(json.get("ctime_ms")));
  }

  /** When its data was changed last. */
  public Instant mtime() {
    return Instant.ofEpochMilli(Values.number(json.get("mtime_ms")));
  }

  /** The number of changes of its data. */
  public long version() {
    return Values.number(json.get("version"));
  }

  /** The number of changes of its children. */
  public long cversion() {
    return Values.number(json.get("cversion"));
  }

  /** The number of changes of its access list. */
  public long aversion() {
    return Values.number(json.get("aversion"));
  }

  /** The session that owns it; 0x0 if it is not ephemeral. */
  public long ephemeralOwner() {
    return Values.session(json.get("ephemeral_owner"));
  }

  /** The length of its data in bytes. */
  public long dataLength() {
    return Values.number(json.get("data_length"));
  }

  /** How many children it has. */
  public long numChildren() {
    return Values.number(json.get("num_children"));
  }

  /** Every field that the server returned, by the names of the control API. */
  public Map<String, Object> json() {
    return json;
  }
}
