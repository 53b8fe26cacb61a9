package io.github.minikeeper;

/** A verb that did not do what was asked, or a program that did not run. Its message is a sentence for people. */
public class MinikeeperException extends RuntimeException {
  private static final long serialVersionUID = 1;

  private final int status;

  MinikeeperException(String message, int status, Throwable cause) {
    super(message, cause);
    this.status = status;
  }

  MinikeeperException(String message) {
    this(message, 0, null);
  }

  /**
   * The status of the HTTP answer: 400 for input that makes no sense, 401 and 403 for a caller without access, 404 for
   * something that is not there, 408 for a wait whose time ran out, 409 for something that cannot be done now; 0 without
   * an answer.
   */
  public int status() {
    return status;
  }

  /** Whether a wait ran out of time; the message says what was seen instead. */
  public boolean isTimeout() {
    return status == 408;
  }
}
