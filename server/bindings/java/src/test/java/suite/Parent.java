package suite;

import io.github.minikeeper.MinikeeperServer;

/** Starts a server, says where, and waits to be killed. */
public final class Parent {
  private Parent() {}

  public static void main(String[] args) throws Exception {
    System.out.println(MinikeeperServer.builder().start().port());
    // Its standard input ends when whoever started it is gone.
    while (System.in.read() >= 0) {}
  }
}
