// Generated from the table of verbs, server/src/control/verbs. To generate it again:
// UPDATE_EXPECT=1 cargo test -p minikeeper --test bindings
package io.github.minikeeper;

import java.util.List;
import java.util.Map;

/**
 * The result of {@code changesSince}.
 *
 * <p>`change` is created, deleted or changed; `before` and {@code after} are znodes as in {@code exportTree}, or
 * null. Compares data, lifetimes and access lists. Lists at most 4 MiB.
 */
public final class ChangesSince extends Answer {
  ChangesSince(Map<String, Object> json) {
    super(json);
  }

  /** The differences, by path. */
  public List<ZnodeChange> changes() {
    return Values.list(json.get("changes"), it -> new ZnodeChange(Control.object(it)));
  }

  /** Whether there are more. */
  public boolean isTruncated() {
    return Boolean.TRUE.equals(json.get("is_truncated"));
  }
}
