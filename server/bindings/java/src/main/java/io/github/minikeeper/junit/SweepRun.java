package io.github.minikeeper.junit;

import io.github.minikeeper.MinikeeperException;
import io.github.minikeeper.SweepFault;
import io.github.minikeeper.SweepNext;
import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.Extension;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.InvocationInterceptor;
import org.junit.jupiter.api.extension.LifecycleMethodExecutionExceptionHandler;
import org.junit.jupiter.api.extension.ReflectiveInvocationContext;
import org.junit.jupiter.api.extension.TestExecutionExceptionHandler;
import org.junit.jupiter.api.extension.TestTemplateInvocationContext;
import org.opentest4j.AssertionFailedError;
import org.opentest4j.TestAbortedException;

/**
 * A run of a sweep: an invocation of its test. Its failures count for the sweep.
 *
 * <p>It calls the constructor and the methods of the test on a thread of its own, which it leaves behind if they ignore that
 * they are interrupted: otherwise the sweep would not end.
 *
 * <p>If its clients die by the fault {@code client-crash}, the test is stopped where it is, and begins again: a second
 * invocation, with an instance and clients of its own, in the same universe. Only that one counts.
 */
final class SweepRun
    implements TestTemplateInvocationContext,
        InvocationInterceptor,
        TestExecutionExceptionHandler,
        LifecycleMethodExecutionExceptionHandler,
        AfterEachCallback {
  private final SweepRuns sweep;
  private final SweepNext step;
  private final MinikeeperExtension.World world;
  private final boolean isSecondStart;
  private final ExecutorService executor = Executors.newSingleThreadExecutor(this::thread);
  private volatile Thread thread;
  /** Waits for the death of its clients. */
  private Thread watching;
  /** When the run hangs, or has ignored for as long that it does. Unit: nanoseconds. */
  private long limit;
  private Throwable failure;
  private Optional<Path> story = Optional.empty();
  private boolean isHung;
  /** Whether its thread goes on although the run is over. */
  private boolean isLeftBehind;
  /** Whether its clients have died. */
  private volatile boolean isCrashed;
  private boolean isAbandoned;
  /** The extension of the launch of the run. */
  private MinikeeperExtension extension;

  SweepRun(SweepRuns sweep, SweepNext step, MinikeeperExtension.World world) {
    this(sweep, step, world, false);
  }

  private SweepRun(SweepRuns sweep, SweepNext step, MinikeeperExtension.World world, boolean isSecondStart) {
    this.sweep = sweep;
    this.step = step;
    this.world = world;
    this.isSecondStart = isSecondStart;
  }

  private Thread thread(Runnable task) {
    thread = SweepRuns.daemon(task, "minikeeper sweep, run " + step.run());
    return thread;
  }

  @Override
  public String getDisplayName(int index) {
    return "run " + step.run() + ": " + (step.points().isEmpty() ? "no fault" : step.points());
  }

  /** JUnit asks for them on the thread that calls the run, before it creates the instance. */
  @Override
  public List<Extension> getAdditionalExtensions() {
    begin(sweep.extension());
    return List.of(this);
  }

  /** Begins, unless it has begun, on the thread that calls it. Returns whether it is for this extension. */
  boolean begin(MinikeeperExtension asking) {
    if (extension != null) return extension == asking;
    extension = asking;
    extension.begin(world);
    limit = System.nanoTime() + TimeUnit.SECONDS.toNanos(sweep.runSeconds());
    if (mayCrash() && watching == null) {
      watching = SweepRuns.daemon(this::watch, "minikeeper sweep, clients of run " + step.run());
      watching.start();
    }
    return true;
  }

  @Override
  public <T> T interceptTestClassConstructor(
      Invocation<T> invocation, ReflectiveInvocationContext<Constructor<T>> constructor, ExtensionContext context)
      throws Throwable {
    return call(invocation);
  }

  @Override
  public void interceptBeforeEachMethod(
      Invocation<Void> invocation, ReflectiveInvocationContext<Method> method, ExtensionContext context) throws Throwable {
    call(invocation);
  }

  @Override
  public void interceptTestTemplateMethod(
      Invocation<Void> invocation, ReflectiveInvocationContext<Method> method, ExtensionContext context) throws Throwable {
    call(invocation);
  }

  @Override
  public void interceptAfterEachMethod(
      Invocation<Void> invocation, ReflectiveInvocationContext<Method> method, ExtensionContext context) throws Throwable {
    call(invocation);
  }

  /** Calls a constructor or method of the test on the thread of the run. */
  <T> T call(Invocation<T> invocation) throws Throwable {
    if (isLeftBehind || isCrashed) {
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
        if (isHung || isCrashed()) throw leftBehind();
        hangs();
      }
    }
  }

  private void hangs() {
    isHung = true;
    limit += TimeUnit.SECONDS.toNanos(sweep.runSeconds());
    if (failure == null) {
      AssertionFailedError error = new AssertionFailedError("still running after " + sweep.runSeconds() + " s" + place());
      error.setStackTrace(thread.getStackTrace());
      fails(error);
    }
    thread.interrupt();
  }

  private TestAbortedException leftBehind() {
    String since = isHung ? sweep.runSeconds() + " s after it was interrupted" : "after its clients have died";
    System.err.println("minikeeper: " + sweep.title() + ", " + getDisplayName(0) + ": still running" + place() + ", " + since
        + "; its thread is left behind, and its methods @AfterEach are not called");
    isLeftBehind = true;
    thread.interrupt();
    return aborted();
  }

  /** Whether it has the fault after which it begins again. */
  private boolean mayCrash() {
    return !isSecondStart && step.points().contains(SweepFault.CLIENT_CRASH.toString());
  }

  private void watch() {
    if (!hasCrashed(2_000L * sweep.runSeconds())) return;
    isCrashed = true;
    Thread running = thread;
    if (running != null) running.interrupt();
    // What the test calls next fails, should it ignore that it is interrupted.
    abandonClients();
  }

  /** Closes the clients of the first start, which no other one may use. */
  private synchronized void abandonClients() {
    if (isAbandoned) return;
    isAbandoned = true;
    sweep.inBackground(world.takeClients());
  }

  private boolean isCrashed() {
    if (!isCrashed && mayCrash()) isCrashed = hasCrashed(1);
    return isCrashed;
  }

  private boolean hasCrashed(long withinMs) {
    try {
      return sweep.server().sweepCrashed(Map.of("sweep", sweep.number(), "run", step.run(), "within_ms", withinMs));
    } catch (MinikeeperException error) {
      // The run is over.
      if (error.status() != 400) throw error;
      return false;
    }
  }

  @Override
  public void handleTestExecutionException(ExtensionContext context, Throwable error) throws Throwable {
    throw counted(error);
  }

  @Override
  public void handleBeforeEachMethodExecutionException(ExtensionContext context, Throwable error) throws Throwable {
    throw counted(error);
  }

  @Override
  public void handleAfterEachMethodExecutionException(ExtensionContext context, Throwable error) throws Throwable {
    throw counted(error);
  }

  /** Counts what other extensions have thrown, while the story can be told. */
  @Override
  public void afterEach(ExtensionContext context) {
    context.getExecutionException().ifPresent(this::counted);
  }

  /** Takes a failure, and returns what JUnit gets instead. */
  Throwable counted(Throwable error) {
    if (isCrashed()) return aborted();
    // An assumption of the test that does not hold: then it skips itself, unless that is what the fault has done.
    if (error instanceof TestAbortedException && failure == null && step.points().isEmpty()) {
      sweep.skips((TestAbortedException) error);
      return error;
    }
    // A failure while the clients are still connected: the first one is the cause of others.
    if (failure == null) fails(error);
    return aborted();
  }

  private TestAbortedException aborted() {
    return new TestAbortedException(isCrashed ? "its clients have died" : (isHung ? "hangs: " : "fails: ") + failure);
  }

  private void fails(Throwable error) {
    failure = error;
    sweep.failed(error);
    String name = sweep.title() + " " + getDisplayName(0);
    story = Stories.save(name, sweep.context().getConfigurationParameter(Stories.PARAMETER), world.universe, error);
  }

  /** Where the thread is in the class of the test. */
  private String place() {
    String type = sweep.context().getRequiredTestClass().getName();
    return Arrays.stream(thread.getStackTrace())
        .filter(frame -> frame.getClassName().equals(type))
        .findFirst()
        // Without the name of the class loader, which the text of a frame begins with.
        .map(frame -> String.format(
            " in %s.%s(%s:%d)", type, frame.getMethodName(), frame.getFileName(), frame.getLineNumber()))
        .orElse("");
  }

  /** Takes the end of the invocation, with what it has thrown, or null. Returns the run if it begins again. */
  Optional<SweepRun> ended(Throwable thrown) {
    executor.shutdown();
    if (extension != null) extension.end();
    if (thrown != null) counted(thrown);
    if (isCrashed()) {
      abandonClients();
      return Optional.of(new SweepRun(sweep, step, world, true));
    }
    try {
      // The sweep's fault may have kept a fault of the test from acting.
      if (failure == null && step.points().isEmpty()) neverActed();
      Map<String, Object> fields = new LinkedHashMap<>();
      fields.put("sweep", sweep.number());
      fields.put("run", step.run());
      fields.put("outcome", isHung ? "hung" : failure == null ? "passed" : "failed");
      if (failure != null) fields.put("message", Stories.cut(failure.toString(), Stories.FAILURE_CHARS_MAX));
      story.ifPresent(page -> fields.put("story", page.toString()));
      sweep.server().sweepEnd(fields);
    } finally {
      stop();
    }
    return Optional.empty();
  }

  /** A fault of the test that remains and has never acted is an error, unless it is optional. */
  private void neverActed() {
    try {
      AssertionError never = Worlds.neverActed(world.universe, this::fails);
      if (never != null) failure = never;
    } catch (MinikeeperException error) {
      // The test has dropped its universe.
      if (error.status() != 404) throw error;
    }
  }

  /** Ends its clients and its universe, while other runs are done. */
  void stop() {
    executor.shutdown();
    boolean mayHoldBack = !step.points().isEmpty() || failure != null;
    sweep.afterRun(() -> {
      // Closing a client must not wait for what a fault of the test holds back.
      if (mayHoldBack) resetFaults();
      world.close();
    });
  }

  /** Ends it where it is. */
  void breakOff() {
    executor.shutdownNow();
    stop();
  }

  private void resetFaults() {
    try {
      world.universe.resetFaults();
    } catch (MinikeeperException error) {
      // The test has dropped its universe.
      if (error.status() != 404) throw error;
    }
  }
}
