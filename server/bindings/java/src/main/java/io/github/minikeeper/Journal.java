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
public final class Journal {
  private final Map<String, Object> json;

  Journal(Map<String, Object> json) {
    this.json = json;
  }

  /** . */
  public List<Map<String, Object>> entries() {
    return Values.objects(json.get("entries"));
  }

  /** The number of the next entry. */
  public long next() {
    return Values.number(json.get("next"));
  }

  /** The number of the oldest entry. */
  public long oldest() {
    return Values.number(json.get("oldest"));
  }

  @Override
  public String toString() {
    return json.toString();
  }
}
