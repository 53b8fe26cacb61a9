package io.github.minikeeper.junit;

import java.lang.reflect.Method;
import java.util.List;
import org.junit.jupiter.api.extension.BeforeTestExecutionCallback;
import org.junit.jupiter.api.extension.Extension;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.InvocationInterceptor;
import org.junit.jupiter.api.extension.ReflectiveInvocationContext;
import org.junit.jupiter.api.extension.TestTemplateInvocationContext;

/**
 * A sweep as JUnit reports it: one test, which does all runs and calls no method of the class itself. It does them in a callback,
 * which {@code @Timeout} does not limit: that is for each run.
 */
final class SweepInvocation
    implements TestTemplateInvocationContext, BeforeTestExecutionCallback, InvocationInterceptor {
  private final SweepRuns sweep;

  SweepInvocation(SweepRuns sweep) {
    this.sweep = sweep;
  }

  @Override
  public String getDisplayName(int index) {
    return sweep.method().getName();
  }

  @Override
  public List<Extension> getAdditionalExtensions() {
    return List.of(this);
  }

  @Override
  public void interceptBeforeEachMethod(
      Invocation<Void> invocation, ReflectiveInvocationContext<Method> method, ExtensionContext context) {
    invocation.skip();
  }

  @Override
  public void beforeTestExecution(ExtensionContext context) throws Exception {
    sweep.run(context.getRequiredTestInstances());
  }

  @Override
  public void interceptTestTemplateMethod(
      Invocation<Void> invocation, ReflectiveInvocationContext<Method> method, ExtensionContext context) {
    invocation.skip();
  }

  @Override
  public void interceptAfterEachMethod(
      Invocation<Void> invocation, ReflectiveInvocationContext<Method> method, ExtensionContext context) {
    invocation.skip();
  }
}
