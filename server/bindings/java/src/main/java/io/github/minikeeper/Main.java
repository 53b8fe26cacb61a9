package io.github.minikeeper;

import java.io.IOException;

/**
 * The command {@code minikeeper}: runs the program in the jar with the same arguments, such as {@code java -jar
 * minikeeper-junit.jar ctl now}.
 */
public final class Main {
  private Main() {}

  /** Runs the program, and exits with its exit code. */
  public static void main(String[] arguments) throws InterruptedException {
    try {
      Process process = new ProcessBuilder(Program.command(arguments)).inheritIO().start();
      // A signal to this process alone stops the program too.
      Runtime.getRuntime().addShutdownHook(new Thread(process::destroy));
      System.exit(process.waitFor());
    } catch (IOException | MinikeeperException error) {
      System.err.println("minikeeper: " + error.getMessage());
      System.exit(1);
    }
  }
}
