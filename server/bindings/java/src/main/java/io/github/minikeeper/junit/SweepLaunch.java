package io.github.minikeeper.junit;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.platform.engine.ConfigurationParameters;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.engine.UniqueId;
import org.junit.platform.engine.discovery.DiscoverySelectors;
import org.junit.platform.launcher.EngineFilter;
import org.junit.platform.launcher.LauncherDiscoveryRequest;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.core.LauncherConfig;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;
import org.opentest4j.TestAbortedException;

/**
 * A launch of JUnit within a test, which runs the method of a sweep and of which no report knows. Needs JUnit's launcher, so
 * nothing else may load this class first.
 */
final class SweepLaunch implements TestExecutionListener {
  private static final String ENGINE = "junit-jupiter";

  /** What is notified of the test, or of the invocations of its method. */
  interface Listener {
    /** The test or invocation with this last part of its id is over; what it has thrown may be null. */
    void ended(String segment, Throwable thrown);
  }

  private final Listener listener;
  /** What the class has thrown, before or after its tests. */
  private Throwable thrown;

  private SweepLaunch(Listener listener) {
    this.listener = listener;
  }

  /**
   * Runs the method of a context, with these configuration parameters in addition to those of the context. Throws what is
   * thrown outside of its invocations.
   */
  static void execute(ExtensionContext method, Map<String, String> parameters, Listener listener) throws Throwable {
    // What is registered for every launch, such as a writer of reports, is not for this one.
    LauncherConfig config = LauncherConfig.builder()
        .enableLauncherSessionListenerAutoRegistration(false)
        .enableLauncherDiscoveryListenerAutoRegistration(false)
        .enablePostDiscoveryFilterAutoRegistration(false)
        .enableTestExecutionListenerAutoRegistration(false)
        .build();
    LauncherDiscoveryRequest request = LauncherDiscoveryRequestBuilder.request()
        .selectors(DiscoverySelectors.selectUniqueId(idInEngine(method.getUniqueId())))
        .filters(EngineFilter.includeEngines(ENGINE))
        .build();
    SweepLaunch launch = new SweepLaunch(listener);
    LauncherFactory.create(config).execute(with(new Parameters(method, parameters), request), launch);
    if (launch.thrown != null) throw launch.thrown;
  }

  /** The part of an id below JUnit's own engine, which another engine may have run. */
  private static UniqueId idInEngine(String text) {
    UniqueId id = UniqueId.forEngine(ENGINE);
    for (UniqueId.Segment segment : UniqueId.parse(text).getSegments()) {
      boolean isEngine = segment.getType().equals("engine");
      id = isEngine ? UniqueId.forEngine(ENGINE) : id.append(segment.getType(), segment.getValue());
    }
    return id;
  }

  /** A request with these parameters. A copy could not have them: a context tells one only by its name. */
  private static LauncherDiscoveryRequest with(ConfigurationParameters parameters, LauncherDiscoveryRequest request) {
    return (LauncherDiscoveryRequest) Proxy.newProxyInstance(
        SweepLaunch.class.getClassLoader(),
        new Class<?>[] {LauncherDiscoveryRequest.class},
        (proxy, method, arguments) -> {
          if (method.getName().equals("getConfigurationParameters")) return parameters;
          try {
            return method.invoke(request, arguments);
          } catch (InvocationTargetException error) {
            throw error.getCause();
          }
        });
  }

  @Override
  public void executionFinished(TestIdentifier test, TestExecutionResult result) {
    ended(test, result.getThrowable().orElse(null));
  }

  @Override
  public void executionSkipped(TestIdentifier test, String reason) {
    ended(test, new TestAbortedException(reason));
  }

  private void ended(TestIdentifier test, Throwable error) {
    if (test.isTest()) {
      listener.ended(UniqueId.parse(test.getUniqueId()).getLastSegment().getValue(), error);
    } else if (thrown == null) {
      thrown = error;
    }
  }

  /** The configuration parameters of a context, and others that come before them. */
  private static final class Parameters implements ConfigurationParameters {
    private final ExtensionContext context;
    private final Map<String, String> first;

    Parameters(ExtensionContext context, Map<String, String> first) {
      this.context = context;
      this.first = first;
    }

    @Override
    public Optional<String> get(String key) {
      String value = first.get(key);
      return value != null ? Optional.of(value) : context.getConfigurationParameter(key);
    }

    @Override
    public Optional<Boolean> getBoolean(String key) {
      return get(key).map(Boolean::valueOf);
    }

    @Override
    @SuppressWarnings("deprecation") // JUnit declares it until version 6.
    public int size() {
      return first.size();
    }

    /** Those that are known: a context does not list its own. */
    @Override
    public Set<String> keySet() {
      return first.keySet();
    }
  }
}
