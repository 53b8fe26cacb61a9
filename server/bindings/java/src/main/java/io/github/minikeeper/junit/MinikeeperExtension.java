package io.github.minikeeper.junit;

import io.github.minikeeper.MinikeeperException;
import io.github.minikeeper.MinikeeperServer;
import io.github.minikeeper.Universe;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.AfterTestExecutionCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ParameterContext;
import org.junit.jupiter.api.extension.ParameterResolver;
import org.junit.platform.commons.support.AnnotationSupport;
import org.opentest4j.TestAbortedException;

/**
 * A universe for each test: empty, without sessions and faults, with a running clock. After the test it is dropped, and
 * the connections of its clients close. Tests may run in parallel.
 *
 * <p>Use either {@link Minikeeper} on the class and a parameter of type {@link Universe} on the test, or
 *
 * <pre>{@code
 * @RegisterExtension
 * final MinikeeperExtension minikeeper = new MinikeeperExtension("--tick-time", "200");
 * }</pre>
 *
 * and {@link #universe()} in the test. A parameter of {@code @BeforeAll} creates one for the whole class, which its
 * tests share.
 *
 * <p>When a test fails, prints the story of its universe to stderr and saves it as a page and as JSON: in the folder of the
 * configuration parameter or system property {@code minikeeper.stories}, else of the environment variable
 * MINIKEEPER_STORIES, else in {@code minikeeper-stories} below {@code target} or {@code build}. {@code off} saves nothing.
 */
public final class MinikeeperExtension
    implements ParameterResolver, BeforeEachCallback, AfterTestExecutionCallback, AfterEachCallback {
  private static final ExtensionContext.Namespace NAMESPACE =
      ExtensionContext.Namespace.create(MinikeeperExtension.class);
  private static final AtomicInteger WORLDS = new AtomicInteger();

  private final List<String> options;
  private final ThreadLocal<Universe> current = new ThreadLocal<>();

  /** Without options; also for the annotation. */
  public MinikeeperExtension() {
    this.options = List.of();
  }

  /** With options of the program, as on its command line. */
  public MinikeeperExtension(String... options) {
    this.options = List.of(options);
  }

  /** The universe of the test that runs on this thread. */
  public Universe universe() {
    Universe universe = current.get();
    if (universe == null) throw new IllegalStateException("no test runs on this thread");
    return universe;
  }

  /** The connect string of that universe. */
  public String connectString() {
    return universe().connectString();
  }

  @Override
  public void beforeEach(ExtensionContext context) {
    current.set(world(context));
  }

  /** Tells the story of a failed test before its methods {@code @AfterEach}, which may close its clients. */
  @Override
  public void afterTestExecution(ExtensionContext context) {
    tell(context);
  }

  /** Tells the story of a test if one of its methods {@code @BeforeEach} or {@code @AfterEach} has failed. */
  @Override
  public void afterEach(ExtensionContext context) {
    tell(context);
  }

  private void tell(ExtensionContext context) {
    ExtensionContext.Store store = context.getStore(NAMESPACE);
    World world = store.get("world " + options, World.class);
    Throwable failure = context.getExecutionException().orElse(null);
    if (world == null || failure == null || failure instanceof TestAbortedException) return;
    if (store.get("told") != null) return;
    store.put("told", true);
    Stories.tell(context, world.universe, failure);
  }

  @Override
  public boolean supportsParameter(ParameterContext parameter, ExtensionContext context) {
    return parameter.getParameter().getType() == Universe.class;
  }

  @Override
  public Object resolveParameter(ParameterContext parameter, ExtensionContext context) {
    return world(context);
  }

  private Universe world(ExtensionContext context) {
    ExtensionContext.Store store = context.getStore(NAMESPACE);
    return store.getOrComputeIfAbsent("world " + options, key -> newWorld(context), World.class).universe;
  }

  private World newWorld(ExtensionContext context) {
    List<String> all = context.getTestClass()
        .flatMap(type -> AnnotationSupport.findAnnotation(type, Minikeeper.class))
        .map(annotation -> Arrays.asList(annotation.options()))
        .filter(given -> !given.isEmpty())
        .orElse(options);
    ExtensionContext.Store root = context.getRoot().getStore(NAMESPACE);
    MinikeeperServer server =
        root.getOrComputeIfAbsent("server " + all, key -> new Shared(start(all)), Shared.class).server;
    // Another test may have left the server down.
    server.ensureReady();
    String name = "junit-" + WORLDS.incrementAndGet();
    try {
      Universe universe = server.createUniverse(name);
      return new World(universe, () -> end(context, server, universe, name));
    } catch (MinikeeperException error) {
      if (error.status() != 404) throw error;
      // An old program without universes: starts a server for each test, which takes milliseconds.
      MinikeeperServer own = start(all);
      return new World(own, own::close);
    }
  }

  /** Drops a universe. A remaining fault that has never acted is an error, unless it is optional. */
  private static void end(ExtensionContext context, MinikeeperServer server, Universe universe, String name) {
    server.ensureReady();
    AssertionError failure = null;
    try {
      List<Object> never = new ArrayList<>();
      for (Map<String, Object> fault : universe.faults()) {
        boolean isFine = ((Number) fault.get("hits")).longValue() > 0 || Boolean.TRUE.equals(fault.get("optional"));
        if (!isFine) never.add(fault);
      }
      if (!never.isEmpty()) {
        failure = new AssertionError("faults that have never acted and are not optional: " + never);
        Stories.tell(context, universe, failure);
      }
      server.dropUniverse(name);
    } catch (MinikeeperException error) {
      if (error.status() != 404) throw error;
      // The test has dropped it.
      return;
    }
    if (failure != null) throw failure;
  }

  private static MinikeeperServer start(List<String> options) {
    return MinikeeperServer.builder().options(options.toArray(new String[0])).start();
  }

  /** A universe that JUnit closes with the context that requested it. */
  private static final class World implements ExtensionContext.Store.CloseableResource {
    private final Universe universe;
    private final Runnable end;

    World(Universe universe, Runnable end) {
      this.universe = universe;
      this.end = end;
    }

    @Override
    public void close() {
      end.run();
    }
  }

  /** A server for all tests with the same options, which JUnit closes after the last test. */
  private static final class Shared implements ExtensionContext.Store.CloseableResource {
    private final MinikeeperServer server;

    Shared(MinikeeperServer server) {
      this.server = server;
    }

    @Override
    public void close() {
      server.close();
    }
  }
}
