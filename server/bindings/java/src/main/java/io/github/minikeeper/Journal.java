// Generated from the table of verbs, server/src/control/verbs. To generate it again:
// UPDATE_EXPECT=1 cargo test -p minikeeper --test bindings
package io.github.minikeeper;

import java.util.List;
import java.util.Map;

/**
 * The result of {@code journal}.
 *
 * <p>Returns the newest matching entries, oldest first, and in {@code next} the number that the next entry gets: pass
 * it as {@code since} to read what follows. {@code text} is the entry in a line. Entries never contain data of
 * znodes. The journal keeps what happened last, within the setting `journal_bytes`; {@code oldest} is the number of
 * the oldest entry that it still has.
 */
public final class Journal extends Answer {
  Journal(Map<String, Object> json) {
    super(json);
  }

  /** Its entries. */
  public List<JournalEntry> entries() {
    return Values.list(json.get("entries"), it -> new JournalEntry(Control.object(it)));
  }

  /** The number of the next entry. */
  public long next() {
    return Values.number(json.get("next"));
  }

  /** The number of the oldest entry. */
  public long oldest() {
    return Values.number(json.get("oldest"));
  }
}
