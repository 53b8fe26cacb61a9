package suite;

import io.github.minikeeper.MinikeeperServer;

/** Starts a server, prints its port, and waits to be killed. */
public final class Parent {
  private Parent() {}

  public static void main(String[] args) throws Exception {
    System.out.println(MinikeeperServer.builder().start().port());
    // Standard input ends when the process that started this one exits.
    while (System.in.read() >= 0) {}
  }
}
