// Generated from the table of verbs, server/src/control/verbs. To generate it again:
// UPDATE_EXPECT=1 cargo test -p minikeeper --test bindings
package io.github.minikeeper;

import java.time.Duration;
import java.util.Map;
import java.util.OptionalLong;

/** A fault, and how often it has acted. */
public final class InjectedFault extends Answer {
  InjectedFault(Map<String, Object> json) {
    super(json);
  }

  /** Its number. */
  public long fault() {
    return Values.number(json.get("fault"));
  }

  /** What it does. */
  public String action() {
    return (String) json.get("action");
  }

  /** The operations, separated by commas; empty for all. */
  public String op() {
    return (String) json.get("op");
  }

  /** The paths; null for all. */
  public String path() {
    return (String) json.get("path");
  }

  /** The session that it applies to. */
  public OptionalLong session() {
    return Values.optionalSession(json.get("session"));
  }

  /** The number of the client that it applies to. */
  public OptionalLong client() {
    return Values.optionalNumber(json.get("client"));
  }

  /** The address that it applies to. */
  public String address() {
    return (String) json.get("address");
  }

  /** How many matches it skips first. */
  public long skip() {
    return Values.number(json.get("skip"));
  }

  /** How many times it acts; empty without a limit. */
  public OptionalLong count() {
    return Values.optionalNumber(json.get("count"));
  }

  /** The probability that it acts on a match. */
  public double probability() {
    return ((Number) json.get("probability")).doubleValue();
  }

  /** The seed of the random numbers for the probability. */
  public long seed() {
    return Values.number(json.get("seed"));
  }

  /** Whether it may be removed without having acted. */
  public boolean optional() {
    return Boolean.TRUE.equals(json.get("optional"));
  }

  /** The delay, for the actions {@code delay}, {@code delay-reply} and {@code delay-events}. */
  public Duration delay() {
    return Values.orNull(json.get("delay_ms"), ms -> Duration.ofMillis(Values.number(ms)));
  }

  /** The error, for the action {@code error}. */
  public String error() {
    return (String) json.get("error");
  }

  /** How many requests or events matched. */
  public long matches() {
    return Values.number(json.get("matches"));
  }

  /** How often it has acted. */
  public long hits() {
    return Values.number(json.get("hits"));
  }

  /** How many events it holds. */
  public long held() {
    return Values.number(json.get("held"));
  }

  /** What it has acted on last; null if it has not acted. */
  public FaultHit lastHit() {
    return Values.orNull(json.get("last_hit"), it -> new FaultHit(Control.object(it)));
  }

  /** Every field that the server returned, by the names of the control API. */
  public Map<String, Object> json() {
    return json;
  }
}
