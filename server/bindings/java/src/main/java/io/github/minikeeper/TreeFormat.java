// Generated from the table of verbs, server/src/control/verbs. To write it again:
// UPDATE_EXPECT=1 cargo test -p minikeeper --test bindings
package io.github.minikeeper;

/** The tree as an object, or as text in YAML. */
public enum TreeFormat {
  JSON,
  YAML
}
