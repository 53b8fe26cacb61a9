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
public final class ChangesSince {
  private final Map<String, Object> json;

  ChangesSince(Map<String, Object> json) {
    this.json = json;
  }

  /** The differences, by path. */
  public List<Map<String, Object>> changes() {
    return Values.objects(json.get("changes"));
  }

  /** Whether there are more. */
  public boolean isTruncated() {
    return Boolean.TRUE.equals(json.get("is_truncated"));
  }

  @Override
  public String toString() {
    return json.toString();
  }
}
