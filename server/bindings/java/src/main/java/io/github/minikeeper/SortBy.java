// Generated from the table of verbs, server/src/control/verbs. To generate it again:
// UPDATE_EXPECT=1 cargo test -p minikeeper --test bindings
package io.github.minikeeper;

/** By name, the newest first, or those with the most children first. */
public enum SortBy {
  NAME,
  NEWEST,
  CHILDREN
}
