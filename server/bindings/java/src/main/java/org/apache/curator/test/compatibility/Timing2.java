package org.apache.curator.test.compatibility;

import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * Replaces Curator's class of the same name: how long a test waits, and how long its sessions last. As in Curator, the
 * properties {@code timing-multiple} and {@code timing-waiting-multiple} multiply these times.
 */
public class Timing2 {
  private static final int BASE_S = 10;
  private static final int WAITING_MULTIPLE = 5;
  private static final double SESSION_MULTIPLE = 1.5;
  /** Longer than a session, and the time until its server notices. */
  private static final double SESSION_SLEEP_MULTIPLE = 1.75 * SESSION_MULTIPLE;

  private final long value;
  private final TimeUnit unit;
  private final int waitingMultiple;

  /** A base time of 10 s. */
  public Timing2() {
    this(Integer.getInteger("timing-multiple", 1));
  }

  /** A base time of {@code multiple} times 10 s. */
  public Timing2(double multiple) {
    this(multiple, waitingMultiple());
  }

  /** A base time of {@code multiple} times 10 s; waits take {@code waitingMultiple} times that. */
  public Timing2(double multiple, int waitingMultiple) {
    this((long) (BASE_S * multiple), TimeUnit.SECONDS, waitingMultiple);
  }

  /** This base time. */
  public Timing2(long value, TimeUnit unit) {
    this(value, unit, waitingMultiple());
  }

  /** This base time; waits take {@code waitingMultiple} times that. */
  public Timing2(long value, TimeUnit unit, int waitingMultiple) {
    this.value = value;
    this.unit = unit;
    this.waitingMultiple = waitingMultiple;
  }

  private static int waitingMultiple() {
    return Integer.getInteger("timing-waiting-multiple", WAITING_MULTIPLE);
  }

  /** The base time in milliseconds. */
  public int milliseconds() {
    return (int) unit.toMillis(value);
  }

  /** The base time in the unit of the constructor, by default seconds. */
  public int seconds() {
    return (int) value;
  }

  /** Waits for a latch. Returns false if the wait timed out or the thread was interrupted. */
  public boolean awaitLatch(CountDownLatch latch) {
    Timing2 waiting = forWaiting();
    try {
      return latch.await(waiting.value, waiting.unit);
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
      return false;
    }
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

  /** Waits for a permit. Returns false if the wait timed out or the thread was interrupted. */
  public boolean acquireSemaphore(Semaphore semaphore) {
    return acquireSemaphore(semaphore, 1);
  }

  /** Waits for permits. Returns false if the wait timed out or the thread was interrupted. */
  public boolean acquireSemaphore(Semaphore semaphore, int permits) {
    Timing2 waiting = forWaiting();
    try {
      return semaphore.tryAcquire(permits, waiting.value, waiting.unit);
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
      return false;
    }
  }

  /** Returns {@code n} times this time, in whole units, with the default multiple for waits. */
  public Timing2 multiple(double n) {
    return multiple(n, waitingMultiple());
  }

  /** Returns {@code n} times this time, in whole units; waits take {@code waitingMultiple} times that. */
  public Timing2 multiple(double n, int waitingMultiple) {
    return new Timing2((int) (value * n), unit, waitingMultiple);
  }

  /** Returns the time for waits. */
  public Timing2 forWaiting() {
    return multiple(waitingMultiple);
  }

  /** Returns a time after which a session without a client has expired. */
  public Timing2 forSessionSleep() {
    return multiple(SESSION_SLEEP_MULTIPLE, 1);
  }

  /** Returns a quarter of this time. */
  public Timing2 forSleepingABit() {
    return multiple(0.25);
  }

  /** Sleeps for a quarter of the base time. */
  public void sleepABit() throws InterruptedException {
    forSleepingABit().sleep();
  }

  /** Sleeps for the base time. */
  public void sleep() throws InterruptedException {
    unit.sleep(value);
  }

  /** The session timeout in milliseconds. */
  public int session() {
    return multiple(SESSION_MULTIPLE).milliseconds();
  }

  /** The connection timeout in milliseconds. */
  public int connection() {
    return milliseconds();
  }

  /** The tick of a server in milliseconds: a tenth of the base time. */
  public int tickTime() {
    return Math.max(1, milliseconds() / 10);
  }
}
