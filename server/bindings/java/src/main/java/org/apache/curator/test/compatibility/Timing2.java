package org.apache.curator.test.compatibility;

import java.util.concurrent.BlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.curator.test.Timing;

/**
 * Replaces Curator's class of the same name: {@link Timing} with more times. In Curator, the two classes are not related.
 */
public class Timing2 extends Timing {
  /** Longer than a session, and the time until its server notices. */
  private static final double SESSION_SLEEP_MULTIPLE = 1.75 * 1.5;

  /** A base time of 10 s. */
  public Timing2() {}

  /** A base time of {@code multiple} times 10 s. */
  public Timing2(double multiple) {
    super(multiple);
  }

  /** A base time of {@code multiple} times 10 s; waits take {@code waitingMultiple} times that. */
  public Timing2(double multiple, int waitingMultiple) {
    super(multiple, waitingMultiple);
  }

  /** This base time. */
  public Timing2(long value, TimeUnit unit) {
    super(value, unit);
  }

  /** This base time; waits take {@code waitingMultiple} times that. */
  public Timing2(long value, TimeUnit unit, int waitingMultiple) {
    super(value, unit, waitingMultiple);
  }

  /** Takes an element from a queue. Throws TimeoutException if the queue stays empty. */
  public <T> T takeFromQueue(BlockingQueue<T> queue) throws Exception {
    Timing2 waiting = forWaiting();
    T taken;
    try {
      taken = queue.poll(waiting.value, waiting.unit);
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
      throw error;
    }
    if (taken == null) throw new TimeoutException("nothing in the queue within " + waiting.milliseconds() + " ms");
    return taken;
  }

  /** Returns {@code n} times this time, in whole units, with the default multiple for waits. */
  @Override
  public Timing2 multiple(double n) {
    return multiple(n, waitingMultiple());
  }

  /** Returns {@code n} times this time, in whole units; waits take {@code waitingMultiple} times that. */
  public Timing2 multiple(double n, int waitingMultiple) {
    return new Timing2((int) (value * n), unit, waitingMultiple);
  }

  /** Returns the time for waits. */
  @Override
  public Timing2 forWaiting() {
    return (Timing2) super.forWaiting();
  }

  /** Returns a time after which a session without a client has expired. */
  public Timing2 forSessionSleep() {
    return multiple(SESSION_SLEEP_MULTIPLE, 1);
  }

  /** Returns a quarter of this time. */
  public Timing2 forSleepingABit() {
    return multiple(0.25);
  }

  /** Sleeps for the base time. */
  public void sleep() throws InterruptedException {
    unit.sleep(value);
  }

  /** The tick of a server in milliseconds: a tenth of the base time. */
  public int tickTime() {
    return Math.max(1, milliseconds() / 10);
  }
}
