package io.github.minikeeper.junit;

import io.github.minikeeper.MinikeeperException;
import io.github.minikeeper.MinikeeperServer;
import io.github.minikeeper.Universe;
import java.lang.reflect.Parameter;
import java.util.Arrays;
import java.util.List;
import java.util.Spliterator;
import java.util.Spliterators;
import java.util.function.Consumer;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.AfterTestExecutionCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ParameterContext;
import org.junit.jupiter.api.extension.ParameterResolver;
import org.junit.jupiter.api.extension.TestTemplateInvocationContext;
import org.junit.jupiter.api.extension.TestTemplateInvocationContextProvider;
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
 * <p>A parameter of type {@code CuratorFramework} gets a client of the universe, connected, with sessions of 30 s; a second
 * parameter gets a second client. A test and its methods {@code @BeforeEach} and {@code @AfterEach} get the same ones. They
 * are closed after the test, when its story was told.
 *
 * <p>When a test fails, prints the story of its universe to stderr and saves it as a page and as JSON: in the folder of the
 * configuration parameter or system property {@code minikeeper.stories}, else of the environment variable
 * MINIKEEPER_STORIES, else in {@code minikeeper-stories} below {@code target} or {@code build}. {@code off} saves nothing.
 */
public final class MinikeeperExtension
    implements ParameterResolver,
        BeforeEachCallback,
        AfterTestExecutionCallback,
        AfterEachCallback,
        TestTemplateInvocationContextProvider {
  private static final ExtensionContext.Namespace NAMESPACE =
      ExtensionContext.Namespace.create(MinikeeperExtension.class);

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
    current.set(world(context).universe);
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
    World world = store.get(key(), World.class);
    Throwable failure = context.getExecutionException().orElse(null);
    // A sweep saves the stories of its runs itself.
    if (world == null || world.isOfSweep || failure == null || failure instanceof TestAbortedException) return;
    if (store.get("told") != null) return;
    store.put("told", true);
    tell(context, world.universe, failure);
  }

  /** Whether a test has {@link MinikeeperSweep}. */
  @Override
  public boolean supportsTestTemplate(ExtensionContext context) {
    return AnnotationSupport.isAnnotated(context.getTestMethod(), MinikeeperSweep.class);
  }

  /** Returns the runs of a sweep. What the next one does depends on the previous one, so each is created when that is over. */
  @Override
  public Stream<TestTemplateInvocationContext> provideTestTemplateInvocationContexts(ExtensionContext context) {
    SweepRuns runs = new SweepRuns(this, context, server(context));
    return StreamSupport.stream(Spliterators.spliteratorUnknownSize(runs, Spliterator.ORDERED), false);
  }

  /** Gives the next run of a sweep a universe. */
  World nextWorld(ExtensionContext sweep) {
    World world = newWorld(sweep);
    world.isOfSweep = true;
    // Each run looks for its universe in the stores of its parents, too.
    sweep.getStore(NAMESPACE).put(key(), world);
    return world;
  }

  private static void tell(ExtensionContext context, Universe universe, Throwable failure) {
    // Also a system property.
    Stories.tell(title(context), context.getConfigurationParameter(Stories.PARAMETER), universe, failure);
  }

  /** The class and method of a test, and its display name if that says more. */
  static String title(ExtensionContext context) {
    String type = context.getTestClass().map(Class::getName).orElse("");
    String name = context.getDisplayName();
    return context.getTestMethod()
        .map(method -> type + "." + method.getName() + (name.startsWith(method.getName() + "(") ? "" : " " + name))
        .orElse(type);
  }

  @Override
  public boolean supportsParameter(ParameterContext parameter, ExtensionContext context) {
    return isUniverse(parameter.getParameter()) || isClient(parameter.getParameter());
  }

  /** Returns the universe, or the client with the number that the parameter has among those of its method. */
  @Override
  public Object resolveParameter(ParameterContext parameter, ExtensionContext context) {
    World world = world(context);
    if (isUniverse(parameter.getParameter())) return world.universe;
    // The report of a sweep calls no method of the test.
    if (world.isOfReport) return null;
    Parameter[] all = parameter.getDeclaringExecutable().getParameters();
    int number = (int) Arrays.stream(all).limit(parameter.getIndex()).filter(MinikeeperExtension::isClient).count();
    return world.client(number);
  }

  private static boolean isUniverse(Parameter parameter) {
    return parameter.getType() == Universe.class;
  }

  private static boolean isClient(Parameter parameter) {
    return parameter.getType().getName().equals(CuratorClients.TYPE);
  }

  private World world(ExtensionContext context) {
    ExtensionContext.Store store = context.getStore(NAMESPACE);
    return store.getOrComputeIfAbsent(key(), key -> newWorld(context), World.class);
  }

  private String key() {
    return "world " + options;
  }

  private List<String> options(ExtensionContext context) {
    return context.getTestClass()
        .flatMap(type -> AnnotationSupport.findAnnotation(type, Minikeeper.class))
        .map(annotation -> Arrays.asList(annotation.options()))
        .filter(given -> !given.isEmpty())
        .orElse(options);
  }

  private MinikeeperServer server(ExtensionContext context) {
    List<String> all = options(context);
    ExtensionContext.Store root = context.getRoot().getStore(NAMESPACE);
    return root.getOrComputeIfAbsent("server " + all, key -> new Shared(Worlds.start(all)), Shared.class).server;
  }

  private World newWorld(ExtensionContext context) {
    MinikeeperServer server = server(context);
    // Another test may have left the server down.
    server.ensureReady();
    String name = Worlds.newName();
    try {
      Universe universe = server.createUniverse(name);
      return new World(
          universe,
          clients -> Worlds.end(server, universe, name, failure -> tell(context, universe, failure), clients));
    } catch (MinikeeperException error) {
      if (error.status() != 404) throw error;
      // An old program without universes: starts a server for each test, which takes milliseconds.
      MinikeeperServer own = Worlds.start(options(context));
      return new World(own, clients -> {
        clients.run();
        own.close();
      });
    }
  }

  /** A universe with its clients, which JUnit closes with the context that requested it. */
  static final class World implements ExtensionContext.Store.CloseableResource {
    final Universe universe;
    private boolean isOfSweep;
    /** Whether it is of the last invocation of a sweep, which is the report. */
    boolean isOfReport;
    private final Consumer<Runnable> end;
    /** A {@link CuratorClients}, when a test has asked for a client: without Curator, that class cannot be loaded. */
    private Runnable clients;

    /** What ends it gets what closes its clients. */
    World(Universe universe, Consumer<Runnable> end) {
      this.universe = universe;
      this.end = end;
    }

    synchronized Object client(int number) {
      if (clients == null) clients = new CuratorClients(universe, isOfSweep);
      return ((CuratorClients) clients).client(number);
    }

    @Override
    public synchronized void close() {
      end.accept(clients == null ? () -> {} : clients);
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
