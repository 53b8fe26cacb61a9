package io.github.minikeeper.junit;

import io.github.minikeeper.MinikeeperException;
import io.github.minikeeper.MinikeeperServer;
import io.github.minikeeper.Universe;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ParameterContext;
import org.junit.jupiter.api.extension.ParameterResolver;
import org.junit.platform.commons.support.AnnotationSupport;

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
 */
public final class MinikeeperExtension implements ParameterResolver, BeforeEachCallback {
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
      return new World(universe, () -> end(server, universe, name));
    } catch (MinikeeperException error) {
      if (error.status() != 404) throw error;
      // An old program without universes: starts a server for each test, which takes milliseconds.
      MinikeeperServer own = start(all);
      return new World(own, own::close);
    }
  }

  /** Drops a universe. A remaining fault that has never acted is an error, unless it is optional. */
  private static void end(MinikeeperServer server, Universe universe, String name) {
    server.ensureReady();
    List<Object> never = new ArrayList<>();
    try {
      for (Map<String, Object> fault : universe.faults()) {
        boolean isFine = ((Number) fault.get("hits")).longValue() > 0 || Boolean.TRUE.equals(fault.get("optional"));
        if (!isFine) never.add(fault);
      }
      server.dropUniverse(name);
    } catch (MinikeeperException error) {
      if (error.status() != 404) throw error;
      // The test has dropped it.
      return;
    }
    if (!never.isEmpty()) throw new AssertionError("faults that have never acted and are not optional: " + never);
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
