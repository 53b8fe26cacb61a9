package io.github.minikeeper.junit;

import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.AfterTestExecutionCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.opentest4j.TestAbortedException;

/**
 * Tells the stories of failed tests that use {@code org.apache.curator.test.TestingServer} or {@code TestingCluster}: those of the
 * servers that run when a test fails, and of those that it has stopped. Prints and saves them as {@link MinikeeperExtension} does.
 *
 * <p>{@code BaseClassForTests} has it. Other classes get it by {@code @ExtendWith(TestingServerExtension.class)}, or all classes
 * by the line {@code junit.jupiter.extensions.autodetection.enabled=true} in {@code junit-platform.properties}.
 *
 * <p>Of tests that run in parallel, a failed one tells the stories of the servers of all.
 */
public final class TestingServerExtension implements BeforeEachCallback, AfterTestExecutionCallback, AfterEachCallback {
  /** For JUnit. */
  public TestingServerExtension() {}

  @Override
  public void beforeEach(ExtensionContext context) {
    RunningServers.begin(MinikeeperExtension.title(context));
  }

  /** Tells them before methods {@code @AfterEach}, which stop servers. */
  @Override
  public void afterTestExecution(ExtensionContext context) {
    tell(context);
  }

  /** Tells them if a method {@code @BeforeEach} or {@code @AfterEach} has failed. */
  @Override
  public void afterEach(ExtensionContext context) {
    tell(context);
    RunningServers.end();
  }

  private static void tell(ExtensionContext context) {
    Throwable failure = context.getExecutionException().orElse(null);
    if (failure == null || failure instanceof TestAbortedException) return;
    RunningServers.tell(context.getConfigurationParameter(Stories.PARAMETER), failure);
  }
}
