package org.awaitility;

import java.time.Duration;
import java.util.concurrent.Callable;

/** What Curator's tests use of Awaitility, which Debian does not have. */
public final class Awaitility {
  private final String what;
  private Duration limit = Duration.ofSeconds(10);
  private Duration interval = Duration.ofMillis(100);

  private Awaitility(String what) {
    this.what = what;
  }

  public static Awaitility await() {
    return await("the condition");
  }

  public static Awaitility await(String what) {
    return new Awaitility(what);
  }

  public Awaitility atMost(Duration limit) {
    this.limit = limit;
    return this;
  }

  public Awaitility pollInterval(Duration interval) {
    this.interval = interval;
    return this;
  }

  public Awaitility pollInSameThread() {
    return this;
  }

  public void until(Callable<Boolean> condition) {
    untilAsserted(() -> {
      if (!condition.call()) throw new AssertionError(what + " is still false after " + limit);
    });
  }

  public void untilAsserted(Assertion assertion) {
    long end = System.nanoTime() + limit.toNanos();
    while (true) {
      try {
        assertion.run();
        return;
      } catch (AssertionError error) {
        if (System.nanoTime() > end) throw error;
      } catch (Throwable error) {
        throw new IllegalStateException(error);
      }
      try {
        Thread.sleep(interval.toMillis());
      } catch (InterruptedException error) {
        throw new IllegalStateException(error);
      }
    }
  }

  /** May throw. */
  public interface Assertion {
    void run() throws Throwable;
  }
}
