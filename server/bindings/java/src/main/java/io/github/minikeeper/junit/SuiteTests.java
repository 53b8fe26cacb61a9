package io.github.minikeeper.junit;

import java.util.Optional;
import org.junit.platform.commons.support.AnnotationSupport;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.engine.support.descriptor.MethodSource;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.TestPlan;

/**
 * Counts the tests that are still to come under {@code minikeeper sweep --suite}, among which the server divides the time. JUnit's
 * launcher registers it, for every launch except those of runs.
 */
public final class SuiteTests implements TestExecutionListener {
  /** For JUnit's launcher. */
  public SuiteTests() {}

  @Override
  public void testPlanExecutionStarted(TestPlan plan) {
    if (SweepSuite.server().isEmpty()) return;
    plan.getRoots().stream()
        .flatMap(root -> plan.getDescendants(root).stream())
        .filter(SuiteTests::isOfSuite)
        .forEach(test -> SweepSuite.LEFT.add(test.getUniqueId()));
  }

  private static boolean isOfSuite(TestIdentifier test) {
    Optional<MethodSource> method = test.getSource().filter(MethodSource.class::isInstance).map(MethodSource.class::cast);
    if (method.isEmpty()) return false;
    for (Class<?> type = method.get().getJavaClass(); type != null; type = type.getEnclosingClass()) {
      if (AnnotationSupport.isAnnotated(type, Minikeeper.class)) return true;
    }
    return false;
  }

  @Override
  public void executionFinished(TestIdentifier test, TestExecutionResult result) {
    SweepSuite.LEFT.remove(test.getUniqueId());
  }

  @Override
  public void executionSkipped(TestIdentifier test, String reason) {
    // Without the tests of a class that is skipped.
    SweepSuite.LEFT.removeIf(id -> id.startsWith(test.getUniqueId()));
  }
}
