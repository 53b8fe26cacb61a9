// Generated from the table of verbs, server/src/control/verbs. To generate it again:
// UPDATE_EXPECT=1 cargo test -p minikeeper --test bindings
package io.github.minikeeper;

import java.time.Duration;
import java.time.Instant;
import java.util.Map;

/** The result of {@code now}. */
public final class Now extends Answer {
  Now(Map<String, Object> json) {
    super(json);
  }

  /** Time since the start; it decides when sessions expire. */
  public Duration elapsed() {
    return Duration.ofMillis(Values.number(json.get("elapsed_ms")));
  }

  /** The time of day that stats show. */
  public Instant wall() {
    return Instant.ofEpochMilli(Values.number(json.get("wall_ms")));
  }

  /** Whether the clock is frozen. */
  public boolean isFrozen() {
    return Boolean.TRUE.equals(json.get("is_frozen"));
  }

  /** Whether the server keeps a journal. */
  public boolean hasJournal() {
    return Boolean.TRUE.equals(json.get("has_journal"));
  }
}
