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
  EVENT_LATE;

  /** Its name in the control API, such as {@code reply-lost}. */
  @Override
  public String toString() {
    return name().toLowerCase(Locale.ROOT).replace('_', '-');
  }
}
