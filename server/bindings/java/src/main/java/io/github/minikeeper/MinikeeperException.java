package io.github.minikeeper;

/** A verb failed, or the program could not run. The message is an explanation for humans. */
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
   * The HTTP status: 400 for invalid input, 401 and 403 for a caller without access, 404 for a missing object, 408 if a
   * wait timed out, 409 if the server's state does not allow the call; 0 without an answer.
   */
  public int status() {
    return status;
  }

  /** Whether a wait timed out; the message says what was seen instead. */
  public boolean isTimeout() {
    return status == 408;
  }
}
