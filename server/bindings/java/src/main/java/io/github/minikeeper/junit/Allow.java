package io.github.minikeeper.junit;

import io.github.minikeeper.SweepFault;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * A failure that a sweep expects at some of its points, and why: an element of {@link MinikeeperSweep#allow}. A run that fails so
 * does not break the sweep.
 *
 * <pre>{@code
 * allow = @Allow(fault = SweepFault.SESSION_EXPIRED, raises = KeeperException.SessionExpiredException.class,
 *     op = "create2", path = "/jobs/*", reason = "the caller asks again")
 * }</pre>
 */
@Target({})
@Retention(RetentionPolicy.RUNTIME)
public @interface Allow {
  /** The faults, any one of which. */
  SweepFault[] fault();

  /** What the run throws: this class itself, or what contains it as a cause in its text. By default anything. */
  Class<? extends Throwable> raises() default Throwable.class;

  /** A part of the text of what the run throws, in place of its class. By default any text. */
  String message() default "";

  /** The operation or event as the report names it: {@code create2}, {@code setData}, {@code nodeDeleted}. By default any one. */
  String op() default "";

  /** The path; {@code *} stands for any characters of a name. By default any path. */
  String path() default "";

  /** The number of the client, as the report has it. By default 0, which is any client. */
  int client() default 0;

  /** Why this is no bug. */
  String reason();
}
