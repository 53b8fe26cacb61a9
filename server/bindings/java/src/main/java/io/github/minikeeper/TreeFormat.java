// Generated from the table of verbs, server/src/control/verbs. To generate it again:
// UPDATE_EXPECT=1 cargo test -p minikeeper --test bindings
package io.github.minikeeper;

/** Whether to return the tree as a JSON object or as YAML text. */
public enum TreeFormat {
  JSON,
  YAML
}
