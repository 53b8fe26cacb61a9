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
 * A world of its own for each test: empty, without sessions and faults, with a clock that goes; gone with the test, and its
 * clients' connections with it. Tests may run in parallel.
 *
 * <p>Either {@link Minikeeper} on the class and a parameter of type {@link Universe} on the test, or
 *
 * <pre>{@code
 * @RegisterExtension
 * final MinikeeperExtension minikeeper = new MinikeeperExtension("--tick-time", "200");
 * }</pre>
 *
 * and {@link #universe()} in the test. A call in {@code @BeforeAll} makes one for the whole class, which its tests
 * share.
 */
public final class MinikeeperExtension implements ParameterResolver, BeforeEachCallback {
  private static final ExtensionContext.Namespace NAMESPACE =
      ExtensionContext.Namespace.create(MinikeeperExtension.class);
  private static final AtomicInteger WORLDS = new AtomicInteger();

  private final List<String> options;
  private final ThreadLocal<Universe> current = new ThreadLocal<>();

  /** For the annotation. */
  public MinikeeperExtension() {
    this.options = List.of();
  }

  /** With options of the program, as on its command line. */
  public MinikeeperExtension(String... options) {
    this.options = List.of(options);
  }

  /** The world of the test that runs on this thread. */
  public Universe universe() {
    Universe universe = current.get();
    if (universe == null) throw new IllegalStateException("no test runs on this thread");
    return universe;
  }

  /** What its clients connect to. */
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
    // Whatever another test did to the server itself.
    server.ensureReady();
    String name = "junit-" + WORLDS.incrementAndGet();
    try {
      Universe universe = server.createUniverse(name);
      return new World(universe, () -> end(server, universe, name));
    } catch (MinikeeperException error) {
      if (error.status() != 404) throw error;
      // A program without universes: it starts within milliseconds.
      MinikeeperServer own = start(all);
      return new World(own, own::close);
    }
  }

  /** Ends a world; that a fault is left there which has never acted is an error, unless it is optional. */
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
      // It has ended already.
      return;
    }
    if (!never.isEmpty()) throw new AssertionError("faults that have never acted, and are not optional: " + never);
  }

  private static MinikeeperServer start(List<String> options) {
    return MinikeeperServer.builder().options(options.toArray(new String[0])).start();
  }

  /** Closed by JUnit with the context in which it was asked for. */
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

  /** One server for all tests with the same options, until all are over. */
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
