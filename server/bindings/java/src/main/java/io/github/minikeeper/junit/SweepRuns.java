package io.github.minikeeper.junit;

import io.github.minikeeper.MinikeeperException;
import io.github.minikeeper.MinikeeperServer;
import io.github.minikeeper.SweepFault;
import io.github.minikeeper.SweepNext;
import java.io.IOException;
import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.NoSuchElementException;
import java.util.Optional;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.stream.Collectors;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.Extension;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.InvocationInterceptor;
import org.junit.jupiter.api.extension.LifecycleMethodExecutionExceptionHandler;
import org.junit.jupiter.api.extension.ReflectiveInvocationContext;
import org.junit.jupiter.api.extension.TestExecutionExceptionHandler;
import org.junit.jupiter.api.extension.TestTemplateInvocationContext;
import org.junit.platform.commons.support.AnnotationSupport;
import org.opentest4j.AssertionFailedError;
import org.opentest4j.TestAbortedException;

/**
 * The runs of a sweep. JUnit asks for the next one when the previous one is over, since they are on one thread, so that its
 * outcome decides what is next. The last one is the report.
 */
final class SweepRuns implements Iterator<TestTemplateInvocationContext> {
  private static final String ONLY = "minikeeper.sweep.only";
  private static final String ONLY_VARIABLE = "MINIKEEPER_SWEEP_ONLY";

  private final MinikeeperExtension extension;
  private final ExtensionContext context;
  private final MinikeeperServer server;
  private final String title;
  private final Optional<String> only;
  private final int runSeconds;
  private final long sweep;
  /** The first failure, for its stack trace. */
  private Throwable first;
  /** What a run without faults has thrown that skips the test. */
  private TestAbortedException skipped;
  private Run running;
  private TestTemplateInvocationContext next;
  private boolean isOver;

  SweepRuns(MinikeeperExtension extension, ExtensionContext context, MinikeeperServer server) {
    this.extension = extension;
    this.context = context;
    this.server = server;
    Method method = context.getRequiredTestMethod();
    title = context.getRequiredTestClass().getName() + "." + method.getName();
    MinikeeperSweep settings =
        AnnotationSupport.findAnnotation(method, MinikeeperSweep.class).orElseThrow();
    runSeconds = settings.runSeconds();
    if (runSeconds < 1) throw new IllegalArgumentException("runSeconds " + runSeconds + ": must be at least 1");
    // Also a system property.
    only = context.getConfigurationParameter(ONLY)
        .or(() -> Optional.ofNullable(System.getenv(ONLY_VARIABLE)))
        .filter(points -> !points.isEmpty());
    server.ensureReady();
    sweep = server.sweepStart(fields(settings));
  }

  private Map<String, Object> fields(MinikeeperSweep settings) {
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

  @Override
  public boolean hasNext() {
    if (next == null && !isOver) next = begin();
    return next != null;
  }

  @Override
  public TestTemplateInvocationContext next() {
    if (!hasNext()) throw new NoSuchElementException();
    TestTemplateInvocationContext given = next;
    next = null;
    return given;
  }

  private TestTemplateInvocationContext begin() {
    if (running != null) running.end();
    MinikeeperExtension.World world = extension.nextWorld(context);
    SweepNext step = skipped == null ? world.universe.sweepNext(sweep) : null;
    if (step != null && step.run() > 0) {
      running = new Run(step, world);
      return running;
    }
    isOver = true;
    world.isOfReport = true;
    return new Report();
  }

  /** Throws it as it is, though the compiler takes it for another exception. */
  @SuppressWarnings("unchecked")
  private static <E extends Throwable> E as(Throwable error) throws E {
    throw (E) error;
  }

  /**
   * A run. Its failures count for the sweep, not for JUnit.
   *
   * <p>It calls the constructor and the methods of the test on a thread of its own, which it leaves behind if they ignore that
   * they are interrupted: otherwise the sweep would not end.
   */
  private final class Run
      implements TestTemplateInvocationContext,
          InvocationInterceptor,
          TestExecutionExceptionHandler,
          LifecycleMethodExecutionExceptionHandler,
          AfterEachCallback {
    private final SweepNext step;
    private final MinikeeperExtension.World world;
    private final ExecutorService executor = Executors.newSingleThreadExecutor(this::thread);
    private Thread thread;
    /** When the run hangs, or has ignored for as long that it does. Unit: nanoseconds. */
    private long limit = System.nanoTime() + TimeUnit.SECONDS.toNanos(runSeconds);
    private Throwable failure;
    private Optional<Path> story = Optional.empty();
    private boolean isHung;
    /** Whether its thread goes on although the run is over. */
    private boolean isLeftBehind;

    Run(SweepNext step, MinikeeperExtension.World world) {
      this.step = step;
      this.world = world;
    }

    private Thread thread(Runnable task) {
      thread = new Thread(task, "minikeeper sweep, run " + step.run());
      thread.setDaemon(true);
      return thread;
    }

    @Override
    public String getDisplayName(int index) {
      return "run " + step.run() + ": " + (step.points().isEmpty() ? "no fault" : step.points());
    }

    @Override
    public List<Extension> getAdditionalExtensions() {
      return List.of(this);
    }

    @Override
    public <T> T interceptTestClassConstructor(
        Invocation<T> invocation, ReflectiveInvocationContext<Constructor<T>> constructor, ExtensionContext run)
        throws Throwable {
      return call(invocation);
    }

    @Override
    public void interceptBeforeEachMethod(
        Invocation<Void> invocation, ReflectiveInvocationContext<Method> method, ExtensionContext run) throws Throwable {
      call(invocation);
    }

    @Override
    public void interceptTestTemplateMethod(
        Invocation<Void> invocation, ReflectiveInvocationContext<Method> method, ExtensionContext run) throws Throwable {
      call(invocation);
    }

    @Override
    public void interceptAfterEachMethod(
        Invocation<Void> invocation, ReflectiveInvocationContext<Method> method, ExtensionContext run) throws Throwable {
      call(invocation);
    }

    /** Calls a constructor or method of the test on the thread of the run. */
    private <T> T call(Invocation<T> invocation) throws Throwable {
      if (isLeftBehind) {
        invocation.skip();
        return null;
      }
      Future<T> result = executor.submit(() -> {
        extension.enter(world.universe);
        try {
          return invocation.proceed();
        } catch (Throwable error) {
          throw SweepRuns.<Exception>as(error);
        }
      });
      while (true) {
        try {
          return result.get(limit - System.nanoTime(), TimeUnit.NANOSECONDS);
        } catch (ExecutionException error) {
          throw error.getCause();
        } catch (InterruptedException error) {
          // Another limit than ours, as that of @Timeout: what it interrupts is the test.
          thread.interrupt();
        } catch (TimeoutException error) {
          if (isHung) throw leftBehind();
          hangs();
        }
      }
    }

    private void hangs() {
      isHung = true;
      limit += TimeUnit.SECONDS.toNanos(runSeconds);
      if (failure == null) {
        AssertionFailedError error = new AssertionFailedError("still running after " + runSeconds + " s" + place());
        error.setStackTrace(thread.getStackTrace());
        fails(error);
      }
      thread.interrupt();
    }

    private TestAbortedException leftBehind() {
      System.err.println("minikeeper: " + title + ", " + getDisplayName(0) + ": still running" + place() + ", " + runSeconds
          + " s after it was interrupted; its thread is left behind, and its methods @AfterEach are not called");
      isLeftBehind = true;
      thread.interrupt();
      return aborted();
    }

    @Override
    public void handleTestExecutionException(ExtensionContext run, Throwable error) throws Throwable {
      throw counted(error);
    }

    @Override
    public void handleBeforeEachMethodExecutionException(ExtensionContext run, Throwable error) throws Throwable {
      throw counted(error);
    }

    @Override
    public void handleAfterEachMethodExecutionException(ExtensionContext run, Throwable error) throws Throwable {
      throw counted(error);
    }

    /** Counts what other extensions have thrown; that JUnit shows, too. */
    @Override
    public void afterEach(ExtensionContext run) {
      run.getExecutionException().ifPresent(this::counted);
      if (isHung && run.getExecutionException().isEmpty()) throw aborted();
    }

    /** Takes a failure, and returns what JUnit gets instead. */
    private Throwable counted(Throwable error) {
      // An assumption of the test that does not hold: then it skips itself, unless that is what the fault has done.
      if (error instanceof TestAbortedException && failure == null && step.points().isEmpty()) {
        skipped = (TestAbortedException) error;
        return error;
      }
      // A failure while the clients are still connected: the first one is the cause of others.
      if (failure == null) fails(error);
      return aborted();
    }

    private TestAbortedException aborted() {
      return new TestAbortedException((isHung ? "hangs: " : "fails: ") + failure);
    }

    private void fails(Throwable error) {
      failure = error;
      if (first == null) first = error;
      String name = title + " " + getDisplayName(0);
      story = Stories.save(name, context.getConfigurationParameter(Stories.PARAMETER), world.universe, error);
    }

    /** Where the thread is in the class of the test. */
    private String place() {
      String type = context.getRequiredTestClass().getName();
      return Arrays.stream(thread.getStackTrace())
          .filter(frame -> frame.getClassName().equals(type))
          .findFirst()
          // Without the name of the class loader, which the text of a frame begins with.
          .map(frame -> String.format(
              " in %s.%s(%s:%d)", type, frame.getMethodName(), frame.getFileName(), frame.getLineNumber()))
          .orElse("");
    }

    void end() {
      executor.shutdown();
      Map<String, Object> fields = new LinkedHashMap<>();
      fields.put("sweep", sweep);
      fields.put("outcome", isHung ? "hung" : failure == null ? "passed" : "failed");
      if (failure != null) fields.put("message", Stories.cut(failure.toString(), Stories.FAILURE_CHARS_MAX));
      story.ifPresent(page -> fields.put("story", page.toString()));
      server.sweepEnd(fields);
      if (!step.points().isEmpty() || failure != null) {
        try {
          // The sweep's fault may have kept a fault of the test from acting.
          world.universe.resetFaults();
        } catch (MinikeeperException error) {
          // The test has dropped its universe.
          if (error.status() != 404) throw error;
        }
      }
      world.close();
    }
  }

  /** The last invocation, which calls no method of the test, and fails if the sweep has found anything. */
  private final class Report implements TestTemplateInvocationContext, InvocationInterceptor {
    @Override
    public String getDisplayName(int index) {
      return "report";
    }

    @Override
    public List<Extension> getAdditionalExtensions() {
      return List.of(this);
    }

    @Override
    public void interceptBeforeEachMethod(
        Invocation<Void> invocation, ReflectiveInvocationContext<Method> method, ExtensionContext report) {
      invocation.skip();
    }

    @Override
    public void interceptAfterEachMethod(
        Invocation<Void> invocation, ReflectiveInvocationContext<Method> method, ExtensionContext report) {
      invocation.skip();
    }

    @Override
    public void interceptTestTemplateMethod(
        Invocation<Void> invocation, ReflectiveInvocationContext<Method> method, ExtensionContext report) {
      invocation.skip();
      if (skipped != null) throw skipped;
      Map<String, Object> found = server.sweepFindings(
          Map.of("sweep", sweep, "title", title, "repeat", "-D" + ONLY + "='{}'"));
      if (Boolean.TRUE.equals(found.get("is_clean"))) {
        System.err.println("minikeeper: sweep of " + title + ": " + found.get("summary"));
        return;
      }
      throw new AssertionFailedError(found.get("text") + saved((String) found.get("html")), first);
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
  }
}
