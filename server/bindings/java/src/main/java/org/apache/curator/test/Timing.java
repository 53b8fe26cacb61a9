package org.apache.curator.test;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;

/**
 * Replaces Curator's class of the same name: how long a test waits, and how long its sessions last. As in Curator, the
 * properties {@code timing-multiple} and {@code timing-waiting-multiple} multiply these times.
 */
public class Timing {
  private static final int BASE_S = 10;
  private static final int WAITING_MULTIPLE = 5;
  private static final double SESSION_MULTIPLE = 1.5;

  /** The base time, in {@link #unit}. */
  protected final long value;
  /** The unit of {@link #value}. */
  protected final TimeUnit unit;
  private final int waitingMultiple;

  /** A base time of 10 s. */
  public Timing() {
    this(Integer.getInteger("timing-multiple", 1), waitingMultiple());
  }

  /** A base time of {@code multiple} times 10 s. */
  public Timing(double multiple) {
    this(multiple, waitingMultiple());
  }

  /** A base time of {@code multiple} times 10 s; waits take {@code waitingMultiple} times that. */
  public Timing(double multiple, int waitingMultiple) {
    this((long) (BASE_S * multiple), TimeUnit.SECONDS, waitingMultiple);
  }

  /** This base time. */
  public Timing(long value, TimeUnit unit) {
    this(value, unit, waitingMultiple());
  }

  /** This base time; waits take {@code waitingMultiple} times that. */
  public Timing(long value, TimeUnit unit, int waitingMultiple) {
    this.value = value;
    this.unit = unit;
    this.waitingMultiple = waitingMultiple;
  }

  /** The default multiple for waits. */
  protected static int waitingMultiple() {
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
    Timing waiting = forWaiting();
    try {
      return latch.await(waiting.value, waiting.unit);
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
      return false;
    }
  }

  /** Waits for a permit. Returns false if the wait timed out or the thread was interrupted. */
  public boolean acquireSemaphore(Semaphore semaphore) {
    return acquireSemaphore(semaphore, 1);
  }

  /** Waits for permits. Returns false if the wait timed out or the thread was interrupted. */
  public boolean acquireSemaphore(Semaphore semaphore, int permits) {
    Timing waiting = forWaiting();
    try {
      return semaphore.tryAcquire(permits, waiting.value, waiting.unit);
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
      return false;
    }
  }

  /** Returns {@code n} times this time. */
  public Timing multiple(double n) {
    return new Timing((int) (value * n), unit);
  }

  /** Returns the time for waits. */
  public Timing forWaiting() {
    return multiple(waitingMultiple);
  }

  /** Sleeps for a quarter of the base time. */
  public void sleepABit() throws InterruptedException {
    unit.sleep(value / 4);
  }

  /** The session timeout in milliseconds. */
  public int session() {
    return multiple(SESSION_MULTIPLE).milliseconds();
  }

  /** The connection timeout in milliseconds. */
  public int connection() {
    return milliseconds();
  }
}
