// Generated from the table of verbs, server/src/control/verbs. To write it again:
// UPDATE_EXPECT=1 cargo test -p minikeeper --test bindings
package io.github.minikeeper;

/** What is still there afterwards: sessions and znodes, znodes alone, or nothing. */
public enum Keep {
  EVERYTHING,
  DATA,
  NOTHING
}
