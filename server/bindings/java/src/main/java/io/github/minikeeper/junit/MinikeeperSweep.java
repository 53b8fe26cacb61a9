package io.github.minikeeper.junit;

import io.github.minikeeper.SweepFault;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import org.junit.jupiter.api.TestTemplate;

/**
 * In place of {@code @Test}: runs the test once for every fault at every request and event where it can happen, and reports
 * those that break it.
 *
 * <pre>{@code
 * @Minikeeper
 * class CounterTest {
 *   @MinikeeperSweep(timeSeconds = 60)
 *   void countsOnce(Universe universe, CuratorFramework client) throws Exception {
 *     ...
 *   }
 * }
 * }</pre>
 *
 * <p>The class has {@link Minikeeper}, or a static {@link MinikeeperExtension} with {@code @RegisterExtension}. JUnit reports
 * one test, which fails with what the sweep has found: for each failure the fault, how to repeat it, the requests around it and
 * the page with its story. It also fails if the sweep is incomplete, because a point was not reached, a limit has left one, or
 * nothing was tried: a green sweep has tried everything. It saves the report as a page, in the folder of the stories.
 *
 * <p>Each run is an invocation of the test, in a launch of JUnit that no report shows, with an instance of the class, methods
 * {@code @BeforeEach} and {@code @AfterEach}, and a universe of its own. The first runs have no faults; their requests and
 * events are what the others try. Several runs are done at a time, each on a thread of its own.
 *
 * <p>Methods {@code @BeforeAll} and {@code @AfterAll} are called once, before and after all runs, as for any test. Callbacks of other
 * extensions for them are called once more, around the runs.
 *
 * <p>The configuration parameter or system property {@code minikeeper.sweep.only}, else the environment variable
 * MINIKEEPER_SWEEP_ONLY, names the point of the only run to do, as the report does. It applies to every sweep, so also select
 * the test.
 */
@Target({ElementType.METHOD, ElementType.ANNOTATION_TYPE})
@Retention(RetentionPolicy.RUNTIME)
@TestTemplate
public @interface MinikeeperSweep {
  /**
   * The faults to try; by default all but {@link SweepFault#OUTAGE}, {@link SweepFault#CLIENT_OUTAGE}, {@link
   * SweepFault#CLIENT_CRASH} and {@link SweepFault#ROLLBACK}, which ask more of a test.
   */
  SweepFault[] faults() default {};

  /**
   * How long an outage lasts, by the server's clock; 0 if it does not end. Unit: milliseconds. By default -1, for the default of
   * the server.
   */
  long outageMillis() default -1;

  /** How many changes {@link SweepFault#ROLLBACK} takes back. */
  int rollback() default 1;

  /** The time after which no run begins, except to confirm a failure. By default 0, which is no limit. */
  long timeSeconds() default 0;

  /** The maximum number of runs, not counting those that confirm a failure. By default 0, which is no limit. */
  long runs() default 0;

  /** How many faults a run has: 1, or 2 to try pairs, too; then set a limit. With {@code orders}, 2 also tries one fault in each order. */
  int depth() default 1;

  /** The order in which points are tried. */
  long seed() default 0;

  /** Whether to try equivalent points, too: the same fault at the same request with the same result. */
  boolean all() default false;

  /**
   * The time after which a run hangs: then its thread is interrupted. If it goes on for as long again, it is left behind, and
   * the next run begins.
   */
  int runSeconds() default 60;

  /**
   * How many runs are done at a time: 1 to 64. With 1 they are done one after the other, as a test needs that uses what all
   * instances share, such as static fields. So they are with {@code orders}, if the tests of the class share one instance, and
   * with JUnit's {@code @Execution(SAME_THREAD)}, {@code @Isolated} or {@code @ResourceLock}.
   */
  int jobs() default 8;

  /** How many points may stay unreached before the sweep is incomplete, which fails the test. */
  long allowUnreached() default 0;

  /** How many points, or pairs of points, the limits of time and runs may leave before the sweep is incomplete. */
  long allowUntried() default 0;

  /** Whether to end with the first failure, once it is confirmed. */
  boolean first() default false;

  /**
   * Whether a run also fails if it leaves other znodes, clients or watches than the runs without faults. What is there in the end
   * is compared before the clients of parameters close.
   */
  boolean compare() default false;

  /** The failures that are expected. */
  Allow[] allow() default {};

  /** The points that are not tried. */
  LeaveOut[] leaveOut() default {};

  /** Whether to try the orders in which requests can be served, instead of faults. */
  boolean orders() default false;

  /**
   * With {@code orders}: up to how many unforced changes (of client, late events, with a depth of 2 a fault) all orders are
   * tried, or {@code "all"}.
   */
  String changes() default "2";

  /**
   * With {@code orders}: how many further orders are tried then, random ones among them. By default 1,000, or until a limit is
   * reached.
   */
  long more() default -1;

  /**
   * With {@code orders}: whether the clients that begin a run, up to 4, do the same, so that orders which differ only in which
   * of them is which are equivalent.
   */
  boolean alike() default false;

  /**
   * With {@code orders}: the number of clients with which a run begins, if it is known. Then requests are served as soon as
   * each client has one.
   */
  int clients() default 0;
}
