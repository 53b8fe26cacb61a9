import java.nio.charset.StandardCharsets;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;

/** How a Java program of a test waits for the one in Rust, as {@code Pair} in tests/src/access.rs does. */
final class Pair {
  static final String OWN = "java";
  static final String OTHER = "rust";
  static final int PATIENCE_S = 120;

  interface Condition {
    boolean holds() throws Exception;
  }

  private Pair() {}

  /** Waits until the other program is at this place, too, and returns what it says there. */
  static String meet(CuratorFramework client, String base, String place, String says) throws Exception {
    String directory = base + "-" + place;
    client.create().creatingParentsIfNeeded().forPath(directory + "/" + OWN, says.getBytes(StandardCharsets.UTF_8));
    String theirs = directory + "/" + OTHER;
    await(OTHER + " at " + place, () -> client.checkExists().forPath(theirs) != null);
    return new String(client.getData().forPath(theirs), StandardCharsets.UTF_8);
  }

  /** Waits until a condition holds. */
  static void await(String what, Condition condition) throws Exception {
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(PATIENCE_S);
    while (!condition.holds()) {
      if (System.nanoTime() > end) {
        throw new IllegalStateException("not within " + PATIENCE_S + " s: " + what);
      }
      Thread.sleep(20);
    }
  }
}
