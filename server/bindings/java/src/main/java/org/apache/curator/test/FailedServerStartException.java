package org.apache.curator.test;

/** Replaces Curator's class of the same name: {@link BaseClassForTests} tries once more to start the server. */
public class FailedServerStartException extends IllegalStateException {
  private static final long serialVersionUID = 1;

  /** With a cause. */
  public FailedServerStartException(Throwable cause) {
    super(cause);
  }

  /** With a message. */
  public FailedServerStartException(String message) {
    super(message);
  }
}
