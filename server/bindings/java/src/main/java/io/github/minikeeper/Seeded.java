// Generated from the table of verbs, server/src/control/verbs. To generate it again:
// UPDATE_EXPECT=1 cargo test -p minikeeper --test bindings
package io.github.minikeeper;

import java.util.Map;

/**
 * The result of {@code seed}.
 *
 * <p>A tree of up to 1,000 znodes and 1 MiB is seeded in one turn, a larger one in several: clients are served in
 * between and may see its first part. Missing parents are created. A znode of the tree is its data, or an object with
 * the fields data, acl, container and ttl_ms.
 */
public final class Seeded extends Answer {
  Seeded(Map<String, Object> json) {
    super(json);
  }

  /** How many znodes were created. */
  public long created() {
    return Values.number(json.get("created"));
  }

  /** How many znodes got different data or a different ACL. */
  public long changed() {
    return Values.number(json.get("changed"));
  }
}
