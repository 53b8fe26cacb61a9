package io.github.minikeeper;

import java.time.Duration;
import java.time.Instant;
import java.util.Map;

/** What a universe's clock shows. */
public final class Now {
  private final Map<String, Object> json;

  Now(Map<String, Object> json) {
    this.json = json;
  }

  /** Since its start; decides about expiry. */
  public Duration elapsed() {
    return Duration.ofMillis(((Number) json.get("elapsed_ms")).longValue());
  }

  /** The time of day that stats show. */
  public Instant wall() {
    return Instant.ofEpochMilli(((Number) json.get("wall_ms")).longValue());
  }

  /** Whether it stands still. */
  public boolean isFrozen() {
    return Boolean.TRUE.equals(json.get("is_frozen"));
  }

  @Override
  public String toString() {
    return json.toString();
  }
}
