package io.github.minikeeper;

import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/** One run of the program. It exits with this process, even if that is killed: its stdin is a pipe from here. */
final class Program {
  private static final int START_S = 30;
  private static final int STOP_S = 10;
  private static final int LINES_KEPT = 200;
  private static final String LISTENING = " listening on ";
  private static final boolean IS_WINDOWS = File.separatorChar == '\\';
  private static final String PROGRAM = "minikeeper";
  /** The programs of the jar that are unpacked, by name. */
  private static final Map<String, Path> BUNDLED = new HashMap<>();

  static {
    // Loads classes that the first start needs while another thread unpacks the program: 20 ms on a small machine.
    Thread ahead = new Thread("minikeeper-ahead") {
      @Override
      public void run() {
        ProcessHandle.current();
        Control.load();
      }
    };
    ahead.setDaemon(true);
    ahead.start();
  }

  private final Process process;
  private final Deque<String> said = new ArrayDeque<>();
  /** What the first line says; null if the output ended without one. Guarded by {@code said}, as is the next. */
  private String firstAddress;
  private boolean hasAddressOrEnd;
  private final Thread reader;
  final String address;

  Program(List<String> options) {
    List<String> command = new ArrayList<>(List.of(find(), "serve", "--control", "--exit-on-stdin-eof"));
    command.addAll(options);
    try {
      process = new ProcessBuilder(command).redirectErrorStream(true).start();
    } catch (IOException error) {
      throw new MinikeeperException("cannot run " + command.get(0) + ": " + error.getMessage(), 0, error);
    }
    // Not a lambda: the first lambda and the first regular expression of a JVM each cost several milliseconds.
    reader = new Thread("minikeeper") {
      @Override
      public void run() {
        read();
      }
    };
    reader.setDaemon(true);
    reader.start();
    address = awaitAddress();
  }

  /** Returns the address in the program's first line, or null if this is another line. */
  static String addressIn(String line) {
    int at = line.indexOf(LISTENING);
    if (!line.startsWith("minikeeper ") || at < 0) return null;
    String address = line.substring(at + LISTENING.length());
    return address.isEmpty() || address.indexOf(' ') >= 0 ? null : address;
  }

  /** Reads all of the program's output, because the program would block on a full pipe. */
  private void read() {
    try (BufferedReader lines =
        new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8))) {
      for (String line = lines.readLine(); line != null; line = lines.readLine()) {
        synchronized (said) {
          if (!hasAddressOrEnd) found(addressIn(line));
          said.add(line);
          if (said.size() > LINES_KEPT) said.remove();
        }
      }
    } catch (IOException error) {
      // The program has exited.
    }
    synchronized (said) {
      hasAddressOrEnd = true;
      said.notifyAll();
    }
  }

  private void found(String address) {
    if (address == null) return;
    firstAddress = address;
    hasAddressOrEnd = true;
    said.notifyAll();
  }

  /** Waits with a monitor: a future would load classes for 4 ms in the first start. */
  private String awaitAddress() {
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(START_S);
    try {
      synchronized (said) {
        while (!hasAddressOrEnd) {
          long rest = TimeUnit.NANOSECONDS.toMillis(end - System.nanoTime());
          if (rest <= 0) {
            process.destroyForcibly();
            throw new MinikeeperException("minikeeper did not listen within " + START_S + " s");
          }
          said.wait(rest);
        }
        if (firstAddress != null) return firstAddress;
      }
      throw new MinikeeperException("minikeeper exited with code " + process.waitFor() + " at startup: " + said());
    } catch (InterruptedException error) {
      process.destroyForcibly();
      Thread.currentThread().interrupt();
      throw new MinikeeperException("interrupted while minikeeper started", 0, error);
    }
  }

  boolean isRunning() {
    return process.isAlive();
  }

  /** The last lines of its output. */
  String said() {
    synchronized (said) {
      return String.join("\n", said);
    }
  }

  /** Stops it and waits until it has exited. */
  void stop() {
    if (IS_WINDOWS) {
      // There, destroy() would kill the program before it has saved.
      closeInput();
    } else {
      // SIGTERM.
      process.destroy();
    }
    boolean isInterrupted = false;
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(STOP_S);
    while (process.isAlive()) {
      try {
        if (process.waitFor(end - System.nanoTime(), TimeUnit.NANOSECONDS)) break;
        process.destroyForcibly();
        throw new MinikeeperException("minikeeper did not stop within " + STOP_S + " s and was killed");
      } catch (InterruptedException error) {
        // Continues to wait, at most until the limit, and restores the interrupt below.
        isInterrupted = true;
      }
    }
    if (isInterrupted) Thread.currentThread().interrupt();
    int code = process.exitValue();
    if (code != 0) throw new MinikeeperException("minikeeper exited with code " + code + ": " + said());
  }

  private void closeInput() {
    try {
      process.getOutputStream().close();
    } catch (IOException error) {
      // The program has exited.
    }
  }

  void kill() {
    process.destroyForcibly();
    try {
      process.waitFor();
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
    }
  }

  /** Returns the command that runs the program, or its shell, with these arguments. */
  static List<String> command(String... arguments) {
    List<String> command = new ArrayList<>(Arrays.asList(arguments));
    if (named() == null && arguments.length > 0 && arguments[0].equals("cli")) {
      // The program looks for its shell beside itself, where the jar does not unpack it.
      command.set(0, bundled("minikeeper-cli").toString());
    } else {
      command.add(0, find());
    }
    return command;
  }

  /** The program that the caller names, or null. */
  private static String named() {
    String named = System.getProperty("minikeeper.bin", System.getenv("MINIKEEPER_BIN"));
    return named == null || named.isEmpty() ? null : named;
  }

  private static String find() {
    String named = named();
    if (named != null) {
      File file = new File(named);
      if (!file.isFile() || !file.canExecute()) {
        // Unlike a shell, this looks for a bare name in no folder of PATH.
        String path = named.contains("/") || named.contains(File.separator) ? "" : "; it must be a path, such as /usr/bin/minikeeper";
        throw new MinikeeperException("no program at \"" + named + "\"" + path);
      }
      return file.getAbsolutePath();
    }
    return bundled(PROGRAM).toString();
  }

  /** Unpacks a program in the jar, or finds it unpacked, once per process. */
  private static synchronized Path bundled(String name) {
    Path bundled = BUNDLED.get(name);
    if (bundled != null && Files.isExecutable(bundled)) return bundled;
    try (InputStream in = Program.class.getResourceAsStream("program/" + platform() + "/" + name)) {
      if (in == null) {
        throw new MinikeeperException("no program " + name + " for " + platform()
            + " in the jar: set MINIKEEPER_BIN, or the property minikeeper.bin");
      }
      bundled = Unpacked.program(in.readAllBytes(), IS_WINDOWS ? ".exe" : "");
      BUNDLED.put(name, bundled);
      return bundled;
    } catch (IOException error) {
      throw new MinikeeperException("cannot unpack the program: " + error.getMessage(), 0, error);
    }
  }

  /** Returns the platform as `uname -s` and `uname -m` print it; on Windows, Windows and the machine as on Linux. */
  private static String platform() {
    String machine = System.getProperty("os.arch");
    if (machine.equals("amd64")) machine = "x86_64";
    String system = System.getProperty("os.name");
    if (IS_WINDOWS) return "Windows-" + machine;
    if (!system.startsWith("Mac")) return system + "-" + machine;
    return "Darwin-" + (machine.equals("aarch64") ? "arm64" : machine);
  }
}
