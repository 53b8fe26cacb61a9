// Generated from the table of verbs, server/src/control/verbs. To generate it again:
// UPDATE_EXPECT=1 cargo test -p minikeeper --test bindings
package io.github.minikeeper;

/** What it does for its clients. */
public enum Mode {
  UP,
  DOWN,
  CUT_OFF,
  READ_ONLY
}
