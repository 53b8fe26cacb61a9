// Generated from the table of verbs, server/src/control/verbs. To generate it again:
// UPDATE_EXPECT=1 cargo test -p minikeeper --test bindings
package io.github.minikeeper;

import java.util.List;
import java.util.Map;

/**
 * The result of {@code findZnodes}.
 *
 * <p>Returns the paths, children by name below their parent. Upper and lower case differ. Fails (404) if there is no
 * znode to begin at.
 */
public final class FindZnodes extends Answer {
  FindZnodes(Map<String, Object> json) {
    super(json);
  }

  /** Its paths. */
  public List<String> paths() {
    return Values.texts(json.get("paths"));
  }

  /** Whether there are more. */
  public boolean isTruncated() {
    return Boolean.TRUE.equals(json.get("is_truncated"));
  }
}
