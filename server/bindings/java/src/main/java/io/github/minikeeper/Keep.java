package io.github.minikeeper;

/** What a restart keeps. */
public enum Keep {
  /** Data and sessions. */
  EVERYTHING,
  /** Data, but no session, so no ephemeral either. */
  DATA,
  /** Nothing: a new, empty tree. */
  NOTHING
}
