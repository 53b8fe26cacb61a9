package suite;

import static org.junit.platform.engine.discovery.DiscoverySelectors.selectClass;

import io.github.minikeeper.ControlTest;
import io.github.minikeeper.JsonTest;
import io.github.minikeeper.UnpackedTest;
import io.github.minikeeper.junit.StoriesTest;
import io.github.minikeeper.junit.SweepRulesTest;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.engine.discovery.DiscoverySelectors;
import org.junit.platform.engine.support.descriptor.MethodSource;
import org.junit.platform.launcher.LauncherDiscoveryRequest;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;

/** Runs all tests and prints a line for each, like the other suites of the repository. */
public final class Suite {
  private Suite() {}

  public static void main(String[] args) {
    AtomicInteger passed = new AtomicInteger();
    AtomicInteger failed = new AtomicInteger();
    TestExecutionListener listener = new TestExecutionListener() {
      @Override
      public void executionFinished(TestIdentifier test, TestExecutionResult result) {
        String name = "java " + words(test.getDisplayName());
        String reason = result.getThrowable().map(Throwable::getMessage).orElse("").replace('\n', ' ');
        if (test.isTest() && result.getStatus() != TestExecutionResult.Status.ABORTED) {
          test.getSource().filter(MethodSource.class::isInstance).ifPresent(
              source -> System.out.println("ran " + ((MethodSource) source).getClassName() + ".java"));
        }
        if (result.getStatus() == TestExecutionResult.Status.ABORTED) {
          System.out.println("skip " + name + ": " + reason.replace("Assumption failed: ", ""));
        } else if (result.getStatus() == TestExecutionResult.Status.FAILED) {
          failed.incrementAndGet();
          System.out.println("FAIL " + name + ": " + reason);
          result.getThrowable().ifPresent(error -> error.printStackTrace(System.err));
        } else if (test.isTest()) {
          passed.incrementAndGet();
          System.out.println("ok " + name);
        }
      }
    };
    LauncherDiscoveryRequest request = LauncherDiscoveryRequestBuilder.request()
        .selectors(
            selectClass(JsonTest.class),
            selectClass(ControlTest.class),
            selectClass(UnpackedTest.class),
            selectClass(StoriesTest.class),
            selectClass(SweepRulesTest.class),
            selectClass(OwnUniverseTest.class),
            selectClass(UniverseTest.class),
            selectClass(ResourceTest.class),
            selectClass(SessionVerbsTest.class),
            selectClass(StateVerbsTest.class),
            selectClass(AnswersTest.class),
            selectClass(MainTest.class),
            selectClass(ExtensionTest.class),
            selectClass(CuratorParameterTest.class),
            selectClass(RuleTest.class),
            selectClass(StoryTest.class),
            selectClass(SweepTest.class),
            selectClass(SweepTest.WithExtensionAsField.class),
            selectClass(SweepRunsTest.class),
            selectClass(SweepSuiteTest.class),
            selectClass(SweepNamesTest.class),
            selectClass(SweptRunTest.class),
            selectClass(TestingServerTest.class),
            selectClass(CuratorTestBaseTest.class),
            selectClass(TestingServerClientsTest.class),
            selectClass(TestingClusterTest.class),
            selectClass(KillSessionTest.class),
            selectClass(KillSessionAloneTest.class),
            selectClass(SystemPropertiesTest.class),
            selectClass(FaultSpecTest.class),
            selectClass(SpringPropertiesTest.class),
            selectClass(LostReplyTest.class))
        // The code of the pages, which tests/interop/bindings/run compiles with this class.
        .selectors(Stream.of(System.getProperty("pages").split(",")).map(DiscoverySelectors::selectClass).collect(Collectors.toList()))
        // Most of the time, clients pause before they reconnect.
        .configurationParameter("junit.jupiter.execution.parallel.enabled", "true")
        .configurationParameter("junit.jupiter.execution.parallel.mode.default", "concurrent")
        .configurationParameter("junit.jupiter.execution.parallel.config.strategy", "fixed")
        .configurationParameter("junit.jupiter.execution.parallel.config.fixed.parallelism", "6")
        .build();
    LauncherFactory.create().execute(request, listener);
    System.out.println("java: " + passed + " passed, " + failed + " failed");
    // Exits explicitly: a failed test may leave a client that tries to connect forever.
    System.exit(failed.get() == 0 ? 0 : 1);
  }

  /** Splits {@code restartKeepsData()} into words. */
  private static String words(String name) {
    return name.replaceAll("\\(.*\\)$", "").replaceAll("(?<=[a-zA-Z])(?=[A-Z])", " ").toLowerCase();
  }
}
