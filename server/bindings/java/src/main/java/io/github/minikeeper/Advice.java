// Generated from the table of verbs, server/src/control/verbs. To generate it again:
// UPDATE_EXPECT=1 cargo test -p minikeeper --test bindings
package io.github.minikeeper;

import java.util.List;
import java.util.Map;

/**
 * The result of {@code advise}.
 *
 * <p>Such as a sequential ephemeral that a lost reply orphans, polling, or a write that loses an update. Each finding
 * has the numbers of the entries that show it. It is about what the journal still has; {@code first} is the number of
 * the oldest entry read.
 */
public final class Advice extends Answer {
  Advice(Map<String, Object> json) {
    super(json);
  }

  /** The mistakes, by rule. */
  public List<Finding> findings() {
    return Values.list(json.get("findings"), it -> new Finding(Control.object(it)));
  }

  /** The number of entries that were read. */
  public long entryCount() {
    return Values.number(json.get("entry_count"));
  }

  /** The number of the oldest entry. */
  public long first() {
    return Values.number(json.get("first"));
  }

  /** The same for people. */
  public String text() {
    return (String) json.get("text");
  }

  /** Its text. */
  @Override
  public String toString() {
    return text();
  }
}
