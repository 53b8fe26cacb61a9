// Generated from the table of verbs, server/src/control/verbs. To generate it again:
// UPDATE_EXPECT=1 cargo test -p minikeeper --test bindings
package io.github.minikeeper;

import java.util.List;
import java.util.Map;
import java.util.OptionalLong;

/** A lock, semaphore or election. */
public final class Lock extends Answer {
  Lock(Map<String, Object> json) {
    super(json);
  }

  /** Its path. */
  public String path() {
    return (String) json.get("path");
  }

  /** Its kind. */
  public String kind() {
    return (String) json.get("kind");
  }

  /** The library whose names the znodes have; null if they have those of several. */
  public String family() {
    return (String) json.get("family");
  }

  /** The leases of a semaphore; empty if it does not say. */
  public OptionalLong maxLeases() {
    return Values.optionalNumber(json.get("max_leases"));
  }

  /** Who holds it. */
  public List<Contender> holders() {
    return Values.list(json.get("holders"), it -> new Contender(Control.object(it)));
  }

  /** Who waits, in the order of the queue. */
  public List<Contender> waiters() {
    return Values.list(json.get("waiters"), it -> new Contender(Control.object(it)));
  }

  /** How many hold it or wait, listed or not. */
  public long contendersTotal() {
    return Values.number(json.get("contenders_total"));
  }

  /** What is wrong. */
  public List<LockWarning> warnings() {
    return Values.list(json.get("warnings"), it -> new LockWarning(Control.object(it)));
  }

  /** What happened to it, as far as the journal goes back. */
  public LockHistory history() {
    return Values.orNull(json.get("history"), it -> new LockHistory(Control.object(it)));
  }

  /** Every field that the server returned, by the names of the control API. */
  public Map<String, Object> json() {
    return json;
  }
}
