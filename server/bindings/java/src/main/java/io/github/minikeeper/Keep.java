// Generated from the table of verbs, server/src/control/verbs. To generate it again:
// UPDATE_EXPECT=1 cargo test -p minikeeper --test bindings
package io.github.minikeeper;

/** What the server keeps: sessions and znodes, only znodes, or nothing. */
public enum Keep {
  EVERYTHING,
  DATA,
  NOTHING
}
