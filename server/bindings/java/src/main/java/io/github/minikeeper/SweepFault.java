package io.github.minikeeper;

import java.util.Locale;

/** What goes wrong at a request or event in the runs of a sweep. */
public enum SweepFault {
  /** The request is carried out, and its connection is closed instead of a reply. */
  REPLY_LOST,
  /** The connection is closed instead of carrying the request out. */
  REQUEST_LOST,
  /** The connection is closed after the reply, before what the client does next. */
  CONNECTION_CUT,
  /** The session expires after the reply. */
  SESSION_EXPIRED,
  /** The request is carried out, and time moves past the session's timeout before the reply is sent. */
  REPLY_LATE,
  /** The request is carried out, and all connections close instead of a reply, as when the server restarts. */
  SERVER_RESTARTED,
  /** An event comes after the reply to the watcher's next request, or 100 ms late. */
  EVENT_LATE,
  /** The server reads the request, and what its client sends after it, 100 ms late. */
  REQUEST_LATE,
  /**
   * The request is carried out, and the client stands still for longer than its session's timeout: its session expires, the
   * others go on for 100 ms, and then it gets the reply and goes on as if nothing had happened.
   */
  CLIENT_PAUSED,
  /** From this request on no client can connect, for a while; then everything is as before, sessions that live on included. */
  OUTAGE,
  /** From this request on its client cannot connect, for a while. */
  CLIENT_OUTAGE,
  /**
   * The request is carried out, and the process of the test dies: the test is stopped, its clients are given up without closing
   * their sessions, and it begins again in the same universe.
   */
  CLIENT_CRASH,
  /** The request is carried out and answered, and the server comes back without the last change, as from an older disk. */
  ROLLBACK;

  /** Returns the fault with this name, as in the control API. */
  static SweepFault of(String name) {
    return valueOf(name.toUpperCase(Locale.ROOT).replace('-', '_'));
  }

  /** Its name in the control API, such as {@code reply-lost}. */
  @Override
  public String toString() {
    return name().toLowerCase(Locale.ROOT).replace('_', '-');
  }
}
