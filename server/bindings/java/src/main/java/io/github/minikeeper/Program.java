package io.github.minikeeper;

import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** One run of the program. It exits with this process, even if that is killed: its stdin is a pipe from here. */
final class Program {
  private static final int START_S = 30;
  private static final int STOP_S = 10;
  private static final int LINES_KEPT = 200;
  private static final Pattern FIRST_LINE = Pattern.compile("minikeeper \\S+ listening on (\\S+)");

  private static Path bundled;

  private final Process process;
  private final CompletableFuture<String> firstAddress = new CompletableFuture<>();
  private final Deque<String> said = new ArrayDeque<>();
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
    reader = new Thread(this::read, "minikeeper");
    reader.setDaemon(true);
    reader.start();
    address = awaitAddress();
  }

  /** Reads all of the program's output, because the program would block on a full pipe. */
  private void read() {
    try (BufferedReader lines =
        new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8))) {
      for (String line = lines.readLine(); line != null; line = lines.readLine()) {
        Matcher matcher = FIRST_LINE.matcher(line);
        if (!firstAddress.isDone() && matcher.matches()) firstAddress.complete(matcher.group(1));
        synchronized (said) {
          said.add(line);
          if (said.size() > LINES_KEPT) said.remove();
        }
      }
    } catch (IOException error) {
      // The program has exited.
    }
    firstAddress.complete(null);
  }

  private String awaitAddress() {
    try {
      String address = firstAddress.get(START_S, TimeUnit.SECONDS);
      if (address != null) return address;
      throw new MinikeeperException("minikeeper exited with code " + process.waitFor() + " at startup: " + said());
    } catch (TimeoutException error) {
      process.destroyForcibly();
      throw new MinikeeperException("minikeeper did not listen within " + START_S + " s", 0, error);
    } catch (InterruptedException error) {
      process.destroyForcibly();
      Thread.currentThread().interrupt();
      throw new MinikeeperException("interrupted while minikeeper started", 0, error);
    } catch (ExecutionException error) {
      throw new AssertionError("the future never completes exceptionally", error);
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
    // This is SIGTERM on every system that the program runs on.
    process.destroy();
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

  void kill() {
    process.destroyForcibly();
    try {
      process.waitFor();
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
    }
  }

  private static String find() {
    String named = System.getProperty("minikeeper.bin", System.getenv("MINIKEEPER_BIN"));
    if (named != null && !named.isEmpty()) {
      File file = new File(named);
      if (!file.isFile() || !file.canExecute()) throw new MinikeeperException("no program at \"" + named + "\"");
      return file.getAbsolutePath();
    }
    return bundled().toString();
  }

  /** Unpacks the program in the jar, once per process. */
  private static synchronized Path bundled() {
    if (bundled != null && Files.isExecutable(bundled)) return bundled;
    try (InputStream in = Program.class.getResourceAsStream("program/" + platform() + "/minikeeper")) {
      if (in == null) {
        throw new MinikeeperException("no program minikeeper for " + platform()
            + " in the jar: set MINIKEEPER_BIN, or the property minikeeper.bin");
      }
      Path file = Files.createTempFile("minikeeper", "");
      file.toFile().deleteOnExit();
      Files.copy(in, file, StandardCopyOption.REPLACE_EXISTING);
      if (!file.toFile().setExecutable(true)) throw new IOException("cannot make it executable");
      bundled = file;
      return file;
    } catch (IOException error) {
      throw new MinikeeperException("cannot unpack the program: " + error.getMessage(), 0, error);
    }
  }

  /** Returns the platform as `uname -s` and `uname -m` print it. */
  private static String platform() {
    String machine = System.getProperty("os.arch");
    if (machine.equals("amd64")) machine = "x86_64";
    String system = System.getProperty("os.name");
    return (system.startsWith("Mac") ? "Darwin" : system) + "-" + machine;
  }
}
