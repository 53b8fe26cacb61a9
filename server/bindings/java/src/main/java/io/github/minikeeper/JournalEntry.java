// Generated from the table of verbs, server/src/control/verbs. To generate it again:
// UPDATE_EXPECT=1 cargo test -p minikeeper --test bindings
package io.github.minikeeper;

import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;

/** An entry of the journal, with the fields that apply to its kind. */
public final class JournalEntry extends Answer {
  JournalEntry(Map<String, Object> json) {
    super(json);
  }

  /** Its number. */
  public long number() {
    return Values.number(json.get("number"));
  }

  /** {@code request}, {@code event}, {@code deleted}, {@code fault}, {@code session_opened} and so on. */
  public String kind() {
    return (String) json.get("kind");
  }

  /** The time by the universe's clock, since the start. */
  public Duration at() {
    return Duration.ofMillis(Values.number(json.get("at_ms")));
  }

  /** The time of day. */
  public Instant wall() {
    return Values.orNull(json.get("wall_ms"), ms -> Instant.ofEpochMilli(Values.number(ms)));
  }

  /** The entry in a line. */
  public String text() {
    return (String) json.get("text");
  }

  /** The number of the connection. */
  public OptionalLong connection() {
    return Values.optionalNumber(json.get("connection"));
  }

  /** Its session. */
  public OptionalLong session() {
    return Values.optionalSession(json.get("session"));
  }

  /** Its address. */
  public String address() {
    return (String) json.get("address");
  }

  /** The operation of a request, or the one that a fault acted on. */
  public String op() {
    return (String) json.get("op");
  }

  /** Its path. */
  public String path() {
    return (String) json.get("path");
  }

  /** Its zxid. */
  public String zxid() {
    return (String) json.get("zxid");
  }

  /** The number that the client gave the request. */
  public OptionalLong xid() {
    return Values.optionalNumber(json.get("xid"));
  }

  /** The path of a create, with the number that was appended. */
  public String created() {
    return (String) json.get("created");
  }

  /** The version that the request demands, -1 for any. */
  public OptionalLong version() {
    return Values.optionalNumber(json.get("version"));
  }

  /** The mode of a create, such as {@code EPHEMERAL}. */
  public String mode() {
    return (String) json.get("mode");
  }

  /** Whether the request sets a watch. */
  public boolean watch() {
    return Boolean.TRUE.equals(json.get("watch"));
  }

  /** Its data bytes. */
  public OptionalLong dataBytes() {
    return Values.optionalNumber(json.get("data_bytes"));
  }

  /** Its timeout. */
  public Duration timeout() {
    return Values.orNull(json.get("timeout_ms"), ms -> Duration.ofMillis(Values.number(ms)));
  }

  /** The first 32 operations of a multi. */
  public List<MultiOperation> operations() {
    return Values.list(json.get("operations"), it -> new MultiOperation(Control.object(it)));
  }

  /** Its operation count. */
  public OptionalLong operationCount() {
    return Values.optionalNumber(json.get("operation_count"));
  }

  /** {@code OK}, the name of an error, or {@code NONE} without a reply. */
  public String result() {
    return (String) json.get("result");
  }

  /** How long the turn took that served the request, in microseconds. */
  public OptionalLong durationUs() {
    return Values.optionalNumber(json.get("duration_us"));
  }

  /** The kind of the event, such as {@code NodeCreated}. */
  public String event() {
    return (String) json.get("event");
  }

  /** Why the server deleted the znode without a request for it, such as {@code session_expired}. */
  public String why() {
    return (String) json.get("why");
  }

  /** The number of the entry that caused the event or the deletion. */
  public OptionalLong cause() {
    return Values.optionalNumber(json.get("cause"));
  }

  /** Whether a fault holds the event. */
  public boolean isHeld() {
    return Boolean.TRUE.equals(json.get("is_held"));
  }

  /** The number of the fault that acted. */
  public OptionalLong fault() {
    return Values.optionalNumber(json.get("fault"));
  }

  /** What the fault did. */
  public String action() {
    return (String) json.get("action");
  }

  /** Why the connection was closed. */
  public String reason() {
    return (String) json.get("reason");
  }

  /** What was done to the clock, or the verb with its arguments. */
  public String what() {
    return (String) json.get("what");
  }

  /** How many entries were omitted. */
  public OptionalLong count() {
    return Values.optionalNumber(json.get("count"));
  }

  /** Every field that the server returned, by the names of the control API. */
  public Map<String, Object> json() {
    return json;
  }
}
