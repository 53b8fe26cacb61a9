// Generated from the table of verbs, server/src/control/verbs. To generate it again:
// UPDATE_EXPECT=1 cargo test -p minikeeper --test bindings
package io.github.minikeeper;

import java.util.List;
import java.util.Map;

/**
 * The result of {@code tree}.
 *
 * <p>Children are sorted by name below their parent. {@code isTruncated} says whether znodes after the last one are
 * omitted; paths of more than 4 MiB are omitted too. Fails (404) if there is no such znode.
 */
public final class TreeListing extends Answer {
  TreeListing(Map<String, Object> json) {
    super(json);
  }

  /** The znodes, parents before their children. */
  public List<ListedZnode> znodes() {
    return Values.list(json.get("znodes"), it -> new ListedZnode(Control.object(it)));
  }

  /** Whether there are more. */
  public boolean isTruncated() {
    return Boolean.TRUE.equals(json.get("is_truncated"));
  }
}
