// Generated from the table of verbs, server/src/control/verbs. To generate it again:
// UPDATE_EXPECT=1 cargo test -p minikeeper --test bindings
package io.github.minikeeper;

import java.util.List;
import java.util.Map;

/** A known mistake of clients. */
public final class Finding extends Answer {
  Finding(Map<String, Object> json) {
    super(json);
  }

  /** The rule, such as {@code polling}. */
  public String rule() {
    return (String) json.get("rule");
  }

  /** What the mistake is. */
  public String title() {
    return (String) json.get("title");
  }

  /** The path concerned, with * for ids and numbers in it; empty if it is about sessions. */
  public String path() {
    return (String) json.get("path");
  }

  /** What happened: of several occurrences the worst. */
  public String text() {
    return (String) json.get("text");
  }

  /** How often it happened. */
  public long count() {
    return Values.number(json.get("count"));
  }

  /** The numbers of the entries of the journal that show it, at most 8. */
  public List<Long> entries() {
    return Values.list(json.get("entries"), Values::number);
  }

  /** Why it matters. */
  public String why() {
    return (String) json.get("why");
  }

  /** What to do instead. */
  public String remedy() {
    return (String) json.get("do");
  }

  /** Every field that the server returned, by the names of the control API. */
  public Map<String, Object> json() {
    return json;
  }
}
