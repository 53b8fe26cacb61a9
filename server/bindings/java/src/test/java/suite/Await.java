package suite;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.concurrent.Callable;

/** Waits for effects of a client's own threads. */
final class Await {
  private Await() {}

  static void until(String what, Callable<Boolean> holds) throws Exception {
    long end = System.nanoTime() + Client.PATIENCE.toNanos();
    while (!holds.call()) {
      assertTrue(System.nanoTime() < end, "timed out waiting for " + what);
      Thread.sleep(5);
    }
  }
}
