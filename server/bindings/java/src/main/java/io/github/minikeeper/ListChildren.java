// Generated from the table of verbs, server/src/control/verbs. To generate it again:
// UPDATE_EXPECT=1 cargo test -p minikeeper --test bindings
package io.github.minikeeper;

import java.util.List;
import java.util.Map;

/**
 * The result of {@code listChildren}.
 *
 * <p>Pass the last name as {@code after} to read on. In another order the first ones are listed, and equal ones by
 * name. {@code total} is the number of children that contain the text, and {@code isTruncated} says whether there are
 * more after the last one. Fails (404) if there is no such znode.
 */
public final class ListChildren extends Answer {
  ListChildren(Map<String, Object> json) {
    super(json);
  }

  /** The children, in the order. */
  public List<ListedChild> children() {
    return Values.list(json.get("children"), it -> new ListedChild(Control.object(it)));
  }

  /** How many match, listed or not. */
  public long total() {
    return Values.number(json.get("total"));
  }

  /** Whether there are more. */
  public boolean isTruncated() {
    return Boolean.TRUE.equals(json.get("is_truncated"));
  }
}
