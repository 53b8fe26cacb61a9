package org.apache.curator.test;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;

/**
 * Stands in for Curator's class of the same name: how long a test waits, and how long its sessions last. The properties
 * {@code timing-multiple} and {@code timing-waiting-multiple} stretch it, as there.
 */
public class Timing {
  private static final int BASE_S = 10;
  private static final int WAITING_MULTIPLE = 5;
  private static final double SESSION_MULTIPLE = 1.5;

  private final long value;
  private final TimeUnit unit;
  private final int waitingMultiple;

  /** 10 s. */
  public Timing() {
    this(Integer.getInteger("timing-multiple", 1), waitingMultiple());
  }

  /** {@code multiple} times 10 s. */
  public Timing(double multiple) {
    this(multiple, waitingMultiple());
  }

  /** {@code multiple} times 10 s; waiting takes {@code waitingMultiple} times that. */
  public Timing(double multiple, int waitingMultiple) {
    this((long) (BASE_S * multiple), TimeUnit.SECONDS, waitingMultiple);
  }

  /** This time. */
  public Timing(long value, TimeUnit unit) {
    this(value, unit, waitingMultiple());
  }

  /** This time; waiting takes {@code waitingMultiple} times that. */
  public Timing(long value, TimeUnit unit, int waitingMultiple) {
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

  /** The base time, in its unit: seconds, unless another was given. */
  public int seconds() {
    return (int) value;
  }

  /** Waits for a latch; false if the time ran out or the thread was interrupted. */
  public boolean awaitLatch(CountDownLatch latch) {
    Timing waiting = forWaiting();
    try {
      return latch.await(waiting.value, waiting.unit);
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
      return false;
    }
  }

  /** Waits for a permit; false if the time ran out or the thread was interrupted. */
  public boolean acquireSemaphore(Semaphore semaphore) {
    return acquireSemaphore(semaphore, 1);
  }

  /** Waits for permits; false if the time ran out or the thread was interrupted. */
  public boolean acquireSemaphore(Semaphore semaphore, int permits) {
    Timing waiting = forWaiting();
    try {
      return semaphore.tryAcquire(permits, waiting.value, waiting.unit);
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
      return false;
    }
  }

  /** So many times as long. */
  public Timing multiple(double n) {
    return new Timing((int) (value * n), unit);
  }

  /** As long as one waits. */
  public Timing forWaiting() {
    return multiple(waitingMultiple);
  }

  /** Sleeps for a quarter of the base time. */
  public void sleepABit() throws InterruptedException {
    unit.sleep(value / 4);
  }

  /** How long a session lasts, in milliseconds. */
  public int session() {
    return multiple(SESSION_MULTIPLE).milliseconds();
  }

  /** How long a client tries to connect, in milliseconds. */
  public int connection() {
    return milliseconds();
  }
}
