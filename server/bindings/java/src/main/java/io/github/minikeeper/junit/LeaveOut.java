package io.github.minikeeper.junit;

import io.github.minikeeper.SweepFault;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * Points that a sweep does not try, and why: an element of {@link MinikeeperSweep#leaveOut}.
 *
 * <pre>{@code
 * leaveOut = @LeaveOut(fault = SweepFault.REPLY_LATE, op = "getData", reason = "its timeout is an hour")
 * }</pre>
 */
@Target({})
@Retention(RetentionPolicy.RUNTIME)
public @interface LeaveOut {
  /** The faults, all of which are left out. */
  SweepFault[] fault();

  /** The operation or event as the report names it: {@code create2}, {@code setData}, {@code nodeDeleted}. By default any one. */
  String op() default "";

  /** The path; {@code *} stands for any characters of a name. By default any path. */
  String path() default "";

  /** The number of the client, as the report has it. By default 0, which is any client. */
  int client() default 0;

  /** Why they need not be tried. */
  String reason();
}
