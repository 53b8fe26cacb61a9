package io.github.minikeeper.junit;

import io.github.minikeeper.MinikeeperException;
import io.github.minikeeper.SweepFault;
import io.github.minikeeper.SweepNext;
import io.github.minikeeper.Universe;
import java.io.IOException;
import java.lang.reflect.Method;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
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
 * <p>With {@link MinikeeperSweep}, the runs are the invocations of the test in one launch of JUnit of their own, so that every extension of the class works,
 * while the report of the launch around it has one test. Rejected: a launch for each run, which would call the extensions of
 * the class, and start what they keep for all tests, as many times. JUnit asks for the next run while others are being
 * done, and calls it on one of its threads. The server decides which run is next. JUnit cannot call another test more than
 * once in a launch: then each run is one.
 */
final class SweepRuns implements Iterator<TestTemplateInvocationContext> {
  /** The configuration parameter that marks the launch of a sweep's runs, and names the sweep. */
  private static final String LAUNCH = "minikeeper.sweep.launch";
  /** The configuration parameter with the number of the run that a launch is for, if it is for one. */
  private static final String RUN = "minikeeper.sweep.run";
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
  private final Universe server;
  /** Whether {@code minikeeper sweep --suite} keeps the sweep, and gives its options. */
  private final boolean isOfSuite;
  /** Whether the runs are invocations of a method with {@link MinikeeperSweep}. */
  private final boolean isTemplate;
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
  SweepRuns(ExtensionContext context, Universe server, boolean isOfSuite) {
    this.context = context;
    this.server = server;
    this.isOfSuite = isOfSuite;
    Optional<MinikeeperSweep> annotation = AnnotationSupport.findAnnotation(method(), MinikeeperSweep.class);
    isTemplate = annotation.isPresent();
    settings = annotation.orElseGet(SweepRuns::defaults);
    title = isTemplate
        ? context.getRequiredTestClass().getName() + "." + method().getName()
        : MinikeeperExtension.title(context);
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

  /** The settings of a test without the annotation. */
  @MinikeeperSweep
  private static MinikeeperSweep defaults() {
    try {
      return SweepRuns.class.getDeclaredMethod("defaults").getAnnotation(MinikeeperSweep.class);
    } catch (NoSuchMethodException error) {
      throw new AssertionError(error);
    }
  }

  /** Whether a test is swept in orders of requests, of which a suite has none. */
  static boolean hasOrders(ExtensionContext context) {
    return AnnotationSupport.findAnnotation(context.getTestMethod(), MinikeeperSweep.class)
        .filter(MinikeeperSweep::orders)
        .isPresent();
  }

  /** The sweep that a context is a run of; none outside of the launch of its runs. */
  static Optional<SweepRuns> of(ExtensionContext context) {
    return context.getConfigurationParameter(LAUNCH).map(LAUNCHED::get);
  }

  /** The run that the launch of a context is for, if it is for one. */
  static Optional<SweepRun> run(ExtensionContext context) {
    return context.getConfigurationParameter(RUN).flatMap(number -> of(context).map(sweep -> sweep.given(Integer.parseInt(number))));
  }

  private synchronized SweepRun given(int number) {
    return given.get(number);
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

  Universe server() {
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
    sweep = server.sweepStart(fields());
    String name = "sweep-" + NUMBER.incrementAndGet();
    LAUNCHED.put(name, this);
    try {
      if (isTemplate) {
        launch(name);
      } else {
        launchEach(name);
      }
    } finally {
      LAUNCHED.remove(name);
      end();
    }
    synchronized (this) {
      if (broken != null) throw SweepRuns.<RuntimeException>as(broken);
      if (isTemplate && extension == null) throw notFound();
      if (skipped != null) throw skipped;
    }
    judge();
  }

  /**
   * Does the runs on a thread of its own. A thread of JUnit that waits for tasks of another launch may begin a further test
   * meanwhile, until whose end it would not go on.
   */
  private void launch(String name) {
    Thread launching = daemon(
        () -> {
          // #1, #2, and so on.
          execute(parameters(name), (segment, thrown) -> ended(Integer.parseInt(segment.substring(1)), thrown));
        },
        "minikeeper sweep of " + title);
    launching.start();
    join(launching);
  }

  /** Does each run in a launch of its own, several at a time. */
  private void launchEach(String name) {
    List<Thread> launching = new ArrayList<>();
    for (int count = 0; count < jobs; count++) {
      launching.add(daemon(() -> launchNext(name), "minikeeper sweep of " + title + ", launch " + (count + 1)));
    }
    daemon(this::feed, "minikeeper sweep of " + title + ", next run").start();
    launching.forEach(Thread::start);
    launching.forEach(this::join);
  }

  /** Does runs until the sweep is over. */
  private void launchNext(String name) {
    while (true) {
      int number;
      synchronized (this) {
        if (!hasNext()) return;
        next();
        number = givenCount;
      }
      Map<String, String> parameters = new HashMap<>(parameters(name));
      parameters.put(PARALLEL + "enabled", "false");
      parameters.put(RUN, Integer.toString(number));
      execute(parameters, (segment, thrown) -> ended(number, thrown));
      // It ends the run, unless JUnit has not found the test.
      if (given(number) != null) breaks(notFound());
    }
  }

  private IllegalStateException notFound() {
    return new IllegalStateException("JUnit's launcher has not found " + title + ", which it is running");
  }

  private void execute(Map<String, String> parameters, SweepLaunch.Listener listener) {
    try {
      SweepLaunch.execute(context, parameters, listener);
    } catch (NoClassDefFoundError error) {
      breaks(new IllegalStateException("@MinikeeperSweep needs JUnit's launcher at run time: add org.junit.platform:"
          + "junit-platform-launcher to the dependencies of the tests", error));
    } catch (Throwable error) {
      breaks(error);
    }
  }

  private void join(Thread launching) {
    try {
      launching.join();
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
      breaks(new IllegalStateException("the sweep was interrupted", error));
    }
  }

  private Map<String, Object> fields() {
    Map<String, Object> fields = new LinkedHashMap<>();
    if (isOfSuite) {
      fields.put("test", title);
      fields.put("repeat", repeat());
      SweepSuite.testsLeft().ifPresent(left -> fields.put("tests_left", left));
    }
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
    // Several processes may use the server of a suite.
    String name = Worlds.newName() + (isOfSuite ? "-" + ProcessHandle.current().pid() : "");
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
        server.sweepFindings(Map.of("sweep", sweep, "title", title, "repeat", repeat()));
    // The report of a suite tells which sweeps are incomplete.
    if (isOfSuite ? !"failed".equals(found.get("state")) : Boolean.TRUE.equals(found.get("is_clean"))) {
      System.err.println("minikeeper: sweep of " + title + ": " + found.get("summary"));
      return;
    }
    synchronized (this) {
      throw new AssertionFailedError(found.get("text") + saved((String) found.get("html")), first);
    }
  }

  /** What repeats a run, with {} in place of its points. The report of a suite has several tests. */
  private String repeat() {
    String points = "-D" + ONLY + "='{}'";
    if (!isTemplate) points = "-D" + SuiteExtension.UNMARKED + "=true " + points;
    return isOfSuite ? "-Dtest='" + context.getRequiredTestClass().getName() + "#" + method().getName() + "' " + points : points;
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
