package suite;

import io.github.minikeeper.MinikeeperServer;

/**
 * Prints how long the first server of a JVM takes, in milliseconds: until it listens, and until it has answered a verb.
 * Run it in several JVMs without MINIKEEPER_BIN, so that the program is unpacked, and take the median.
 */
final class FirstStart {
  private FirstStart() {}

  public static void main(String[] args) {
    long start = System.nanoTime();
    try (MinikeeperServer server = MinikeeperServer.builder().start()) {
      long listens = System.nanoTime();
      server.now();
      long answers = System.nanoTime();
      System.out.printf("%.1f %.1f%n", (listens - start) / 1e6, (answers - start) / 1e6);
    }
  }
}
