package io.github.minikeeper.junit;

import io.github.minikeeper.MinikeeperException;
import io.github.minikeeper.MinikeeperServer;
import io.github.minikeeper.SweepFault;
import io.github.minikeeper.SweepNext;
import io.github.minikeeper.Universe;
import java.io.IOException;
import java.lang.reflect.Method;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.NoSuchElementException;
import java.util.Optional;
import java.util.Queue;
import java.util.Spliterator;
import java.util.Spliterators;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;
import org.junit.jupiter.api.TestInstance.Lifecycle;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.TestInstances;
import org.junit.jupiter.api.extension.TestTemplateInvocationContext;
import org.junit.platform.commons.support.AnnotationSupport;
import org.opentest4j.AssertionFailedError;
import org.opentest4j.TestAbortedException;

/**
 * A sweep: it runs a test again and again, several runs at a time, and judges what they have found.
 *
 * <p>The runs are the invocations of the test in one launch of JUnit of their own, so that every extension of the class works,
 * while the report of the launch around it has one test. Rejected: a launch for each run, which would call the extensions of
 * the class, and start what they keep for all tests, as many times. JUnit asks for the next run while others are being
 * done, and calls it on one of its threads. The server decides which run is next.
 */
final class SweepRuns implements Iterator<TestTemplateInvocationContext> {
  /** The configuration parameter that marks the launch of a sweep's runs, and names the sweep. */
  private static final String LAUNCH = "minikeeper.sweep.launch";
  private static final String ONLY = "minikeeper.sweep.only";
  private static final String ONLY_VARIABLE = "MINIKEEPER_SWEEP_ONLY";
  private static final int JOBS_MAX = 64;
  private static final int CLOSING_THREADS = 16;
  private static final int CLOSING_MAX = 64;
  private static final int CLOSING_S = 60;
  private static final String PARALLEL = "junit.jupiter.execution.parallel.";
  private static final AtomicInteger NUMBER = new AtomicInteger();
  /** The sweeps whose launch is running. */
  private static final Map<String, SweepRuns> LAUNCHED = new ConcurrentHashMap<>();

  private final ExtensionContext context;
  private final MinikeeperServer server;
  private final MinikeeperSweep settings;
  private final String title;
  private final Optional<String> only;
  private final int jobs;
  private long sweep;
  private TestInstances instances;
  /** The extension of the launch of the runs. */
  private MinikeeperExtension extension;
  /** Closes clients and drops universes, which no run waits for. */
  private final ThreadPoolExecutor closing = new ThreadPoolExecutor(
      CLOSING_THREADS, CLOSING_THREADS, 1, TimeUnit.SECONDS, new LinkedBlockingQueue<>(CLOSING_MAX),
      task -> daemon(task, "minikeeper sweep, closes clients"), new ThreadPoolExecutor.CallerRunsPolicy());

  // What follows is guarded by this object.
  /** The runs that JUnit has not asked for yet. */
  private final Queue<SweepRun> ready = new ArrayDeque<>();
  /** The runs that JUnit has asked for and not ended, by the number of the invocation. */
  private final Map<Integer, SweepRun> given = new HashMap<>();
  private int givenCount;
  /** The number of runs that are being prepared, ready or given. */
  private int running;
  /** Whether no further run begins. */
  private boolean isOver;
  /** What has ended the sweep before its end. */
  private Throwable broken;
  /** The first failure, for its stack trace. */
  private Throwable first;
  /** What a run without faults has thrown that skips the test. */
  private TestAbortedException skipped;

  /** Begins nothing yet. */
  SweepRuns(ExtensionContext context, MinikeeperServer server) {
    this.context = context;
    this.server = server;
    settings = AnnotationSupport.findAnnotation(method(), MinikeeperSweep.class).orElseThrow();
    title = context.getRequiredTestClass().getName() + "." + method().getName();
    if (settings.runSeconds() < 1) {
      throw new IllegalArgumentException("runSeconds " + settings.runSeconds() + ": must be at least 1");
    }
    if (settings.jobs() < 1 || settings.jobs() > JOBS_MAX) {
      throw new IllegalArgumentException("jobs " + settings.jobs() + ": must be 1 to " + JOBS_MAX);
    }
    // A run with an order holds the requests of every client of the process.
    jobs = settings.orders() || sharesAnInstance(context) ? 1 : settings.jobs();
    closing.allowCoreThreadTimeOut(true);
    // Also a system property.
    only = context.getConfigurationParameter(ONLY)
        .or(() -> Optional.ofNullable(System.getenv(ONLY_VARIABLE)))
        .filter(points -> !points.isEmpty());
  }

  /** The sweep that a context is a run of; none outside of the launch of its runs. */
  static Optional<SweepRuns> of(ExtensionContext context) {
    return context.getConfigurationParameter(LAUNCH).map(LAUNCHED::get);
  }

  /** Whether the runs have an instance in common: with one for all tests of the class, or of one that it is nested in. */
  private static boolean sharesAnInstance(ExtensionContext context) {
    for (Optional<ExtensionContext> at = Optional.of(context); at.isPresent(); at = at.get().getParent()) {
      if (at.get().getTestInstanceLifecycle().filter(Lifecycle.PER_CLASS::equals).isPresent()) return true;
    }
    return false;
  }

  Method method() {
    return context.getRequiredTestMethod();
  }

  ExtensionContext context() {
    return context;
  }

  MinikeeperServer server() {
    return server;
  }

  MinikeeperExtension extension() {
    return extension;
  }

  long number() {
    return sweep;
  }

  String title() {
    return title;
  }

  int runSeconds() {
    return settings.runSeconds();
  }

  /** The instance of a class that all its tests share, which the runs use, too. */
  Object sharedInstance(Class<?> type) {
    return instances.getAllInstances().stream().filter(instance -> instance.getClass() == type).findFirst().orElseThrow();
  }

  /** Does all runs. Throws what the sweep has found, or that the test skips itself. */
  void run(TestInstances given) {
    instances = given;
    server.ensureReady();
    sweep = server.sweepStart(fields());
    String name = "sweep-" + NUMBER.incrementAndGet();
    LAUNCHED.put(name, this);
    try {
      launch(parameters(name));
    } finally {
      LAUNCHED.remove(name);
      end();
    }
    synchronized (this) {
      if (broken != null) throw SweepRuns.<RuntimeException>as(broken);
      if (extension == null) throw new IllegalStateException("JUnit's launcher has not found " + title + ", which it is running");
      if (skipped != null) throw skipped;
    }
    judge();
  }

  /**
   * Does the runs on a thread of its own. A thread of JUnit that waits for tasks of another launch may begin a further test
   * meanwhile, until whose end it would not go on.
   */
  private void launch(Map<String, String> parameters) {
    Thread launching = daemon(
        () -> {
          try {
            SweepLaunch.execute(context, parameters, this::ended);
          } catch (NoClassDefFoundError error) {
            breaks(new IllegalStateException("@MinikeeperSweep needs JUnit's launcher at run time: add org.junit.platform:"
                + "junit-platform-launcher to the dependencies of the tests", error));
          } catch (Throwable error) {
            breaks(error);
          }
        },
        "minikeeper sweep of " + title);
    launching.start();
    try {
      launching.join();
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
      breaks(new IllegalStateException("the sweep was interrupted", error));
    }
  }

  private Map<String, Object> fields() {
    Map<String, Object> fields = new LinkedHashMap<>();
    fields.put("all", settings.all());
    fields.put("depth", settings.depth());
    fields.put("seed", settings.seed());
    if (settings.allowUnreached() != 0) fields.put("allow_unreached", settings.allowUnreached());
    if (settings.allowUntried() != 0) fields.put("allow_untried", settings.allowUntried());
    if (settings.runs() != 0) fields.put("runs", settings.runs());
    if (settings.timeSeconds() != 0) fields.put("time_ms", Math.multiplyExact(settings.timeSeconds(), 1_000));
    if (settings.faults().length > 0) {
      fields.put("faults", Arrays.stream(settings.faults()).map(SweepFault::toString).collect(Collectors.joining(",")));
    }
    if (settings.outageMillis() >= 0) fields.put("outage_ms", settings.outageMillis());
    if (settings.rollback() != 1) fields.put("rollback", settings.rollback());
    if (settings.first()) fields.put("first", true);
    if (settings.compare()) fields.put("compare", true);
    if (settings.allow().length > 0) fields.put("allow", SweepRules.allow(settings.allow()));
    if (settings.leaveOut().length > 0) fields.put("leave_out", SweepRules.leaveOut(settings.leaveOut()));
    only.ifPresent(points -> fields.put("only", points));
    if (settings.orders()) {
      fields.put("orders", true);
      fields.put("changes", settings.changes());
      if (settings.more() >= 0) fields.put("more", settings.more());
      fields.put("alike", settings.alike());
      if (settings.clients() != 0) fields.put("clients", settings.clients());
      // The threads of the process tell when no further request is coming.
      fields.put("process", ProcessHandle.current().pid());
    }
    return fields;
  }

  private Map<String, String> parameters(String name) {
    return Map.of(
        LAUNCH, name,
        PARALLEL + "enabled", Boolean.toString(jobs > 1),
        PARALLEL + "mode.default", "concurrent",
        PARALLEL + "mode.classes.default", "concurrent",
        PARALLEL + "config.strategy", "fixed",
        // One thread waits for the next run.
        PARALLEL + "config.fixed.parallelism", Integer.toString(jobs + 1),
        // The launch around this one does that.
        "junit.platform.output.capture.stdout", "false",
        "junit.platform.output.capture.stderr", "false");
  }

  /** Returns the runs, which begin now; none for a second extension of the class. */
  Stream<TestTemplateInvocationContext> begin(MinikeeperExtension asking) {
    if (extension != null) return Stream.empty();
    extension = asking;
    daemon(this::feed, "minikeeper sweep of " + title + ", next run").start();
    return StreamSupport.stream(Spliterators.spliteratorUnknownSize(this, Spliterator.ORDERED), false);
  }

  /**
   * Asks the server for runs until the sweep is over. On a thread of its own: the server waits while what is next depends on a
   * run, which JUnit may have to be given once more.
   */
  private void feed() {
    try {
      while (mayBegin()) {
        MinikeeperExtension.World world = newWorld();
        SweepNext step = world.universe.sweepNext(sweep);
        if (step.run() == 0 || !add(new SweepRun(this, step, world))) {
          afterRun(world::close);
          return;
        }
      }
    } catch (RuntimeException | Error error) {
      breaks(error);
    } finally {
      synchronized (this) {
        isOver = true;
        notifyAll();
      }
    }
  }

  /** Waits until fewer runs are being done than may be, and counts one more. */
  private synchronized boolean mayBegin() {
    while (running >= jobs && !isOver) {
      try {
        wait();
      } catch (InterruptedException error) {
        throw new IllegalStateException("interrupted", error);
      }
    }
    if (!isOver) running += 1;
    return !isOver;
  }

  private MinikeeperExtension.World newWorld() {
    String name = Worlds.newName();
    Universe universe = server.createUniverse(name);
    return new MinikeeperExtension.World(universe, true, clients -> {
      clients.run();
      try {
        server.dropUniverse(name);
      } catch (MinikeeperException error) {
        // The test has dropped it.
        if (error.status() != 404) throw error;
      }
    });
  }

  /** Adds a run, unless the sweep has ended meanwhile. */
  private synchronized boolean add(SweepRun run) {
    if (!isOver) ready.add(run);
    notifyAll();
    return !isOver;
  }

  @Override
  public synchronized boolean hasNext() {
    while (!isBrokenOff() && ready.isEmpty() && (!isOver || !given.isEmpty())) {
      try {
        wait();
      } catch (InterruptedException error) {
        Thread.currentThread().interrupt();
        breaks(new IllegalStateException("the sweep was interrupted", error));
        return false;
      }
    }
    return !isBrokenOff() && !ready.isEmpty();
  }

  private boolean isBrokenOff() {
    return broken != null || skipped != null;
  }

  @Override
  public synchronized TestTemplateInvocationContext next() {
    if (!hasNext()) throw new NoSuchElementException();
    givenCount += 1;
    given.put(givenCount, ready.element());
    return ready.remove();
  }

  /** Takes the end of an invocation, on the thread that has called it. */
  private void ended(int invocation, Throwable thrown) {
    SweepRun run;
    synchronized (this) {
      run = given.get(invocation);
    }
    if (run == null) return;
    Optional<SweepRun> again = Optional.empty();
    try {
      again = run.ended(thrown);
    } catch (RuntimeException | Error error) {
      breaks(error);
    }
    synchronized (this) {
      given.remove(invocation);
      again.ifPresentOrElse(ready::add, () -> running -= 1);
      notifyAll();
    }
  }

  private synchronized void breaks(Throwable error) {
    if (broken == null) broken = error;
    isOver = true;
    notifyAll();
  }

  /** Counts a failure. */
  synchronized void failed(Throwable error) {
    if (first == null) first = error;
  }

  /** The test skips itself without faults: no further run begins. */
  synchronized void skips(TestAbortedException error) {
    skipped = error;
    isOver = true;
    notifyAll();
  }

  /** Does what is left of a run: while others are done, unless nothing may be done at the same time as they are. */
  void afterRun(Runnable task) {
    if (jobs > 1) {
      inBackground(task);
    } else {
      task.run();
    }
  }

  /** Does this while runs are done, and before the sweep is judged. */
  void inBackground(Runnable task) {
    closing.execute(() -> {
      try {
        task.run();
      } catch (RuntimeException | Error error) {
        breaks(error);
      }
    });
  }

  /** Ends what is left of the runs: none, unless the launch was broken off. */
  private void end() {
    synchronized (this) {
      isOver = true;
      notifyAll();
      ready.forEach(SweepRun::breakOff);
      given.values().forEach(SweepRun::breakOff);
    }
    closing.shutdown();
    try {
      if (!closing.awaitTermination(CLOSING_S, TimeUnit.SECONDS)) {
        System.err.println(
            "minikeeper: " + title + ": clients are still closing after " + CLOSING_S + " s; they are left behind");
      }
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
    }
  }

  private void judge() {
    Map<String, Object> found =
        server.sweepFindings(Map.of("sweep", sweep, "title", title, "repeat", "-D" + ONLY + "='{}'"));
    if (Boolean.TRUE.equals(found.get("is_clean"))) {
      System.err.println("minikeeper: sweep of " + title + ": " + found.get("summary"));
      return;
    }
    synchronized (this) {
      throw new AssertionFailedError(found.get("text") + saved((String) found.get("html")), first);
    }
  }

  private String saved(String html) {
    try {
      Optional<Path> page =
          Stories.page(context.getConfigurationParameter(Stories.PARAMETER), Stories.fileName(title) + ".sweep", html);
      return page.map(path -> "\nsaved in " + path + "\n").orElse("");
    } catch (IOException error) {
      return "\nnot saved: " + error + "\n";
    }
  }

  static Thread daemon(Runnable task, String name) {
    Thread thread = new Thread(task, name);
    thread.setDaemon(true);
    return thread;
  }

  /** Throws it as it is, though the compiler takes it for another exception. */
  @SuppressWarnings("unchecked")
  static <E extends Throwable> E as(Throwable error) throws E {
    throw (E) error;
  }
}
