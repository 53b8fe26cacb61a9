// Generated from the table of verbs, server/src/control/verbs. To generate it again:
// UPDATE_EXPECT=1 cargo test -p minikeeper --test bindings
package io.github.minikeeper;

import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;

/** A znode in the queue of a lock. */
public final class Contender extends Answer {
  Contender(Map<String, Object> json) {
    super(json);
  }

  /** Its path. */
  public String path() {
    return (String) json.get("path");
  }

  /** Whether it shares the lock with other readers. */
  public boolean isReader() {
    return Boolean.TRUE.equals(json.get("is_reader"));
  }

  /** Its session; empty if no session owns it. */
  public OptionalLong session() {
    return Values.optionalSession(json.get("session"));
  }

  /** HOST:PORT of its client; null if it is not connected. */
  public String address() {
    return (String) json.get("address");
  }

  /** Whether it is connected. */
  public boolean isConnected() {
    return Boolean.TRUE.equals(json.get("is_connected"));
  }

  /** Whether it is silenced. */
  public boolean isSilenced() {
    return Boolean.TRUE.equals(json.get("is_silenced"));
  }

  /** When it was created. */
  public Instant since() {
    return Instant.ofEpochMilli(Values.number(json.get("since_ms")));
  }

  /** How long ago that was. */
  public Duration age() {
    return Duration.ofMillis(Values.number(json.get("age_ms")));
  }

  /** Its data, at most 256 bytes. */
  public byte[] data() {
    return Values.data(json);
  }

  /** The length of its data in bytes. */
  public long dataLength() {
    return Values.number(json.get("data_length"));
  }

  /** The paths that it waits for. */
  public List<String> waitsFor() {
    return Values.texts(json.get("waits_for"));
  }

  /** Whether it watches one of them. */
  public boolean isWatching() {
    return Boolean.TRUE.equals(json.get("is_watching"));
  }

  /** Every field that the server returned, by the names of the control API. */
  public Map<String, Object> json() {
    return json;
  }
}
