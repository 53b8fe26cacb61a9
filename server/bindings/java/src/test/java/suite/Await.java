package suite;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.concurrent.Callable;

/** Waits for what a client does in threads of its own. */
final class Await {
  private Await() {}

  static void until(String what, Callable<Boolean> holds) throws Exception {
    long end = System.nanoTime() + Client.PATIENCE.toNanos();
    while (!holds.call()) {
      assertTrue(System.nanoTime() < end, "waited in vain for " + what);
      Thread.sleep(5);
    }
  }
}
