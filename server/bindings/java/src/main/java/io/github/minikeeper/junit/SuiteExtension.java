package io.github.minikeeper.junit;

import java.lang.reflect.Constructor;
import java.lang.reflect.Executable;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.BeforeTestExecutionCallback;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.InvocationInterceptor;
import org.junit.jupiter.api.extension.LifecycleMethodExecutionExceptionHandler;
import org.junit.jupiter.api.extension.ReflectiveInvocationContext;
import org.junit.jupiter.api.extension.TestExecutionExceptionHandler;
import org.junit.platform.commons.support.AnnotationSupport;
import org.junit.platform.commons.support.HierarchyTraversalMode;

/**
 * Sweeps tests without {@link MinikeeperSweep}: those of classes with {@link Minikeeper} that {@code minikeeper sweep --suite}
 * runs, or all with the configuration parameter {@code minikeeper.sweep.unmarked}, which repeats a run of one.
 *
 * <p>In the report of JUnit the test calls none of its own methods, and does all runs in a callback, which {@code @Timeout} does
 * not limit: that is for each run. Each run is a launch of JUnit with this one test, because JUnit calls it once a launch.
 */
final class SuiteExtension
    implements BeforeTestExecutionCallback,
        AfterEachCallback,
        InvocationInterceptor,
        TestExecutionExceptionHandler,
        LifecycleMethodExecutionExceptionHandler {
  /** The configuration parameter that sweeps tests without a suite. */
  static final String UNMARKED = "minikeeper.sweep.unmarked";

  /** Whether a test is to be swept, by what it and its class use. */
  static boolean sweeps(ExtensionContext context) {
    if (SweepRuns.of(context).isPresent() || AnnotationSupport.isAnnotated(context.getTestMethod(), MinikeeperSweep.class)) {
      return false;
    }
    // Also a system property.
    if (SweepSuite.server().isEmpty() && !context.getConfigurationParameter(UNMARKED).map(Boolean::valueOf).orElse(false)) return false;
    Class<?> type = context.getRequiredTestClass();
    List<Executable> called = new ArrayList<>(Arrays.asList(type.getDeclaredConstructors()));
    called.add(context.getRequiredTestMethod());
    called.addAll(AnnotationSupport.findAnnotatedMethods(type, BeforeEach.class, HierarchyTraversalMode.TOP_DOWN));
    return called.stream().flatMap(each -> Arrays.stream(each.getParameters())).anyMatch(MinikeeperExtension::isSupported);
  }

  @Override
  public void beforeTestExecution(ExtensionContext context) {
    MinikeeperExtension.sweep(context).ifPresent(sweep -> sweep.run(context.getRequiredTestInstances()));
  }

  @Override
  public <T> T interceptTestClassConstructor(
      Invocation<T> invocation, ReflectiveInvocationContext<Constructor<T>> constructor, ExtensionContext context)
      throws Throwable {
    Optional<SweepRun> run = SweepRuns.run(context);
    return run.isPresent() ? run.get().interceptTestClassConstructor(invocation, constructor, context) : invocation.proceed();
  }

  @Override
  public void interceptBeforeEachMethod(
      Invocation<Void> invocation, ReflectiveInvocationContext<Method> method, ExtensionContext context) throws Throwable {
    call(invocation, context);
  }

  @Override
  public void interceptTestMethod(
      Invocation<Void> invocation, ReflectiveInvocationContext<Method> method, ExtensionContext context) throws Throwable {
    call(invocation, context);
  }

  @Override
  public void interceptTestTemplateMethod(
      Invocation<Void> invocation, ReflectiveInvocationContext<Method> method, ExtensionContext context) throws Throwable {
    call(invocation, context);
  }

  @Override
  public void interceptAfterEachMethod(
      Invocation<Void> invocation, ReflectiveInvocationContext<Method> method, ExtensionContext context) throws Throwable {
    call(invocation, context);
  }

  private static void call(Invocation<Void> invocation, ExtensionContext context) throws Throwable {
    Optional<SweepRun> run = SweepRuns.run(context);
    if (run.isPresent()) {
      run.get().call(invocation);
    } else if (MinikeeperExtension.sweep(context).isPresent()) {
      invocation.skip();
    } else {
      invocation.proceed();
    }
  }

  @Override
  public void handleTestExecutionException(ExtensionContext context, Throwable error) throws Throwable {
    throw counted(context, error);
  }

  @Override
  public void handleBeforeEachMethodExecutionException(ExtensionContext context, Throwable error) throws Throwable {
    throw counted(context, error);
  }

  @Override
  public void handleAfterEachMethodExecutionException(ExtensionContext context, Throwable error) throws Throwable {
    throw counted(context, error);
  }

  private static Throwable counted(ExtensionContext context, Throwable error) {
    return SweepRuns.run(context).map(run -> run.counted(error)).orElse(error);
  }

  @Override
  public void afterEach(ExtensionContext context) {
    SweepRuns.run(context).ifPresent(run -> run.afterEach(context));
  }
}
