package io.github.minikeeper.junit;

import io.github.minikeeper.MinikeeperException;
import io.github.minikeeper.MinikeeperServer;
import io.github.minikeeper.Universe;
import java.lang.reflect.Constructor;
import java.lang.reflect.Executable;
import java.lang.reflect.Method;
import java.lang.reflect.Parameter;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.junit.jupiter.api.TestInstance.Lifecycle;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.AfterTestExecutionCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.InvocationInterceptor;
import org.junit.jupiter.api.extension.ParameterContext;
import org.junit.jupiter.api.extension.ParameterResolutionException;
import org.junit.jupiter.api.extension.ParameterResolver;
import org.junit.jupiter.api.extension.ReflectiveInvocationContext;
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
 * and {@link #universe()} in the test.
 *
 * <p>A parameter of type {@code CuratorFramework} gets a client of the universe, connected, with sessions of 30 s; a second
 * parameter gets a second client. A test, its constructor, and its methods {@code @BeforeEach} and {@code @AfterEach} get the
 * same ones. They are closed after the test, when its story was told.
 *
 * <p>Methods {@code @BeforeAll} and {@code @AfterAll}, and the constructor of a class with one instance for all tests, belong
 * to no test: a parameter of theirs is an error, unless the tests share a universe by {@link Minikeeper#perClass}.
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
        InvocationInterceptor,
        TestTemplateInvocationContextProvider {
  private static final ExtensionContext.Namespace NAMESPACE =
      ExtensionContext.Namespace.create(MinikeeperExtension.class);
  private static final String SWEEP = "sweep";

  private final List<String> options;
  private final ThreadLocal<Universe> current = new ThreadLocal<>();
  /** What the constructors of the next test on this thread got. */
  private final ThreadLocal<Constructed> constructed = new ThreadLocal<>();

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
    begin(context);
    Constructed made = constructed.get();
    constructed.remove();
    ExtensionContext.Store store = context.getStore(NAMESPACE);
    if (made != null && made.world.isOfSweep) {
      store.put(keyOfRun(context), new OfRun(made.world));
    } else if (made != null && made.isOf(context)) {
      made.store.remove(made);
      store.put(key(context), made.world);
    }
    if (sweepsAlone(context)) context.getStore(NAMESPACE).put(SWEEP, newSweep(context));
    if (isSweep(context)) return;
    enter(world(context).universe);
  }

  /** Begins the run that the launch is for, if it is for one and has not begun. What JUnit calls first differs from test to test. */
  private void begin(ExtensionContext context) {
    SweepRuns.run(context).ifPresent(run -> run.begin(this));
  }

  /** Whether a test that is not marked is swept. One with a server or universe of its own runs as it is. */
  private boolean sweepsAlone(ExtensionContext context) {
    return annotated(context).isPresent() && !isPerClass(context) && options(context).isEmpty() && !SweptRun.isOne()
        && SuiteExtension.sweeps(context);
  }

  private SweepRuns newSweep(ExtensionContext context) {
    Optional<Universe> suite = SweepSuite.server();
    boolean isOfSuite = suite.isPresent() && options(context).isEmpty() && !SweepRuns.hasOrders(context);
    if (isOfSuite) return new SweepRuns(context, suite.get(), true);
    MinikeeperServer server = server(context);
    server.ensureReady();
    return new SweepRuns(context, server, false);
  }

  /** The sweep that a test without a mark is, as JUnit reports it. */
  static Optional<SweepRuns> sweep(ExtensionContext context) {
    return Optional.ofNullable(context.getStore(NAMESPACE).get(SWEEP))
        .filter(SweepRuns.class::isInstance)
        .map(SweepRuns.class::cast);
  }

  /** Makes this the universe of the test on this thread. */
  void enter(Universe universe) {
    current.set(universe);
  }

  /** Begins a run of a sweep on this thread, which calls its constructor and then {@link #beforeEach}. */
  void begin(World world) {
    constructed.set(new Constructed(world, null));
  }

  /** Ends that run, whose constructor may have failed. */
  void end() {
    constructed.remove();
  }

  /** The runs of a sweep use what the methods {@code @BeforeAll} have done before it. */
  @Override
  public void interceptBeforeAllMethod(
      Invocation<Void> invocation, ReflectiveInvocationContext<Method> method, ExtensionContext context) throws Throwable {
    skipInSweep(invocation, context);
  }

  @Override
  public void interceptAfterAllMethod(
      Invocation<Void> invocation, ReflectiveInvocationContext<Method> method, ExtensionContext context) throws Throwable {
    skipInSweep(invocation, context);
  }

  private static void skipInSweep(Invocation<Void> invocation, ExtensionContext context) throws Throwable {
    if (SweepRuns.of(context).isPresent()) {
      invocation.skip();
    } else {
      invocation.proceed();
    }
  }

  /** The runs of a sweep use the instance that all tests of a class have in common. */
  @Override
  public <T> T interceptTestClassConstructor(
      Invocation<T> invocation, ReflectiveInvocationContext<Constructor<T>> constructor, ExtensionContext context)
      throws Throwable {
    begin(context);
    Optional<SweepRuns> sweep = SweepRuns.of(context);
    boolean isShared = context.getTestInstanceLifecycle().filter(Lifecycle.PER_CLASS::equals).isPresent();
    if (!isShared || sweep.isEmpty()) return invocation.proceed();
    invocation.skip();
    Class<T> type = constructor.getExecutable().getDeclaringClass();
    return type.cast(sweep.get().sharedInstance(type));
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
    current.remove();
  }

  private void tell(ExtensionContext context) {
    ExtensionContext.Store store = context.getStore(NAMESPACE);
    World world = known(context);
    Throwable failure = context.getExecutionException().orElse(null);
    // A sweep saves the stories of its runs itself.
    if (world == null || world.isOfSweep || isSweep(context)) return;
    if (failure == null || failure instanceof TestAbortedException) return;
    String told = "told " + context.getUniqueId();
    if (store.get(told) != null) return;
    store.put(told, true);
    tell(context, world.universe, failure);
  }

  /** Whether a test has {@link MinikeeperSweep}. */
  @Override
  public boolean supportsTestTemplate(ExtensionContext context) {
    return AnnotationSupport.isAnnotated(context.getTestMethod(), MinikeeperSweep.class);
  }

  /** Returns the sweep as one invocation; in the launch of its runs, the runs, each of which is created when it is due. */
  @Override
  public Stream<TestTemplateInvocationContext> provideTestTemplateInvocationContexts(ExtensionContext context) {
    Optional<SweepRuns> launched = SweepRuns.of(context);
    if (launched.isPresent()) return launched.get().begin(this);
    if (SweptRun.isOne()) throw SweptRun.refused("the test is a sweep itself");
    if (isPerClass(context)) {
      throw new IllegalArgumentException("@MinikeeperSweep gives each run a universe of its own, and the tests of "
          + context.getRequiredTestClass().getSimpleName() + " share one: move the sweep to a class without perClass = true");
    }
    // Its invocation looks for this in the stores of its parents, too.
    context.getStore(NAMESPACE).put(SWEEP, true);
    return Stream.of(new SweepInvocation(newSweep(context)));
  }

  /** Whether it is a sweep as JUnit reports it, which calls no method of the test: the runs do, in another launch. */
  private static boolean isSweep(ExtensionContext context) {
    return context.getStore(NAMESPACE).get(SWEEP) != null;
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
    return isSupported(parameter.getParameter());
  }

  static boolean isSupported(Parameter parameter) {
    return isUniverse(parameter) || isClient(parameter);
  }

  /** Returns the universe, or the client with the number that the parameter has among those of its method. */
  @Override
  public Object resolveParameter(ParameterContext parameter, ExtensionContext context) {
    begin(context);
    Executable called = parameter.getDeclaringExecutable();
    boolean isOfTest = called instanceof Constructor
        ? context.getTestInstanceLifecycle().orElse(Lifecycle.PER_METHOD) == Lifecycle.PER_METHOD
        : context.getTestMethod().isPresent();
    if (!isOfTest && !isPerClass(context)) throw new ParameterResolutionException(noTest(called));
    if (!(called instanceof Constructor) && isSweep(context)) return null;
    World world = called instanceof Constructor && !isPerClass(context)
        ? worldOfConstructor(parameter, context)
        : world(context);
    if (isUniverse(parameter.getParameter())) return world.universe;
    int number = (int) Arrays.stream(called.getParameters())
        .limit(parameter.getIndex())
        .filter(MinikeeperExtension::isClient)
        .count();
    return world.client(number);
  }

  private static String noTest(Executable called) {
    String what = called instanceof Constructor
        ? "the constructor of " + called.getDeclaringClass().getSimpleName() + ", which JUnit calls once for all tests,"
        : called.getName() + ", which JUnit calls once for all tests,";
    return what + " has no universe: each test has its own. Move the parameter to @BeforeEach or to the test,"
        + " or let the tests of the class share a universe: @Minikeeper(perClass = true)";
  }

  /** The universe of the test whose instance is being created on this thread. */
  private World worldOfConstructor(ParameterContext parameter, ExtensionContext context) {
    Constructed made = constructed.get();
    if (made == null || !made.takes(parameter)) {
      // If there is a former one, a constructor has failed, and JUnit closes its universe with the class.
      made = new Constructed(newWorld(context), context.getStore(NAMESPACE));
      made.takes(parameter);
      made.store.put(made, made.world);
      constructed.set(made);
    }
    return made.world;
  }

  private static boolean isUniverse(Parameter parameter) {
    return parameter.getType() == Universe.class;
  }

  private static boolean isClient(Parameter parameter) {
    return parameter.getType().getName().equals(CuratorClients.TYPE);
  }

  private World world(ExtensionContext context) {
    World known = known(context);
    if (known != null) return known;
    ExtensionContext owner = isPerClass(context) ? annotated(context).orElseThrow() : context;
    ExtensionContext.Store store = owner.getStore(NAMESPACE);
    return store.getOrComputeIfAbsent(key(owner), key -> newWorld(owner), World.class);
  }

  /** The universe of a test, if it has one already. A store also has what the stores of its parents have. */
  private World known(ExtensionContext context) {
    ExtensionContext.Store store = context.getStore(NAMESPACE);
    OfRun run = store.get(keyOfRun(context), OfRun.class);
    if (run != null) return run.world;
    return store.get(key(isPerClass(context) ? annotated(context).orElseThrow() : context), World.class);
  }

  /** Names the context, so that no other one finds the universe. */
  private String key(ExtensionContext context) {
    return "world " + options + " " + context.getUniqueId();
  }

  private String keyOfRun(ExtensionContext context) {
    return "run " + key(context);
  }

  /** The context of the nearest class with {@link Minikeeper}: that of the test, or one that this is nested in. */
  private static Optional<ExtensionContext> annotated(ExtensionContext context) {
    Optional<ExtensionContext> at = Optional.of(context);
    while (at.isPresent() && (at.get().getTestMethod().isPresent() || annotation(at.get()).isEmpty())) {
      at = at.get().getParent();
    }
    return at;
  }

  private static Optional<Minikeeper> annotation(ExtensionContext context) {
    return context.getTestClass().flatMap(type -> AnnotationSupport.findAnnotation(type, Minikeeper.class));
  }

  private static boolean isPerClass(ExtensionContext context) {
    return annotated(context).flatMap(MinikeeperExtension::annotation).map(Minikeeper::perClass).orElse(false);
  }

  private List<String> options(ExtensionContext context) {
    return annotated(context)
        .flatMap(MinikeeperExtension::annotation)
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
    if (SweptRun.isOne()) {
      SweptRun run = SweptRun.begin(options(context));
      return new World(run.universe(), clients -> run.end(failure -> tell(context, run.universe(), failure), clients));
    }
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
        own.stop();
      });
    }
  }

  /** The universe of a test of which only constructors were called yet: its own, and those of classes that it is nested in. */
  private static final class Constructed {
    final World world;
    /** JUnit calls a constructor with the context of the class, whose store has the universe until the test takes it. */
    final ExtensionContext.Store store;
    private final Set<Parameter> taken = new HashSet<>();

    /** A run of a sweep has its universe already, and needs no store. */
    Constructed(World world, ExtensionContext.Store store) {
      this.world = world;
      this.store = store;
    }

    /** Whether a parameter is of the same test: JUnit goes from the outer class to the inner one, and asks for each once. */
    boolean takes(ParameterContext parameter) {
      Class<?> type = parameter.getDeclaringExecutable().getDeclaringClass();
      boolean isSame = taken.stream().map(other -> other.getDeclaringExecutable().getDeclaringClass())
          .allMatch(other -> isIn(type, other));
      return isSame && taken.add(parameter.getParameter());
    }

    /** Whether a test takes the universe, because it has instances of all these classes. */
    boolean isOf(ExtensionContext context) {
      if (store == null) return false;
      List<Object> instances = context.getRequiredTestInstances().getAllInstances();
      return taken.stream().map(parameter -> parameter.getDeclaringExecutable().getDeclaringClass())
          .allMatch(type -> instances.stream().anyMatch(instance -> instance.getClass() == type));
    }

    private static boolean isIn(Class<?> type, Class<?> other) {
      for (Class<?> at = type; at != null; at = at.getEnclosingClass()) {
        if (at == other) return true;
      }
      return false;
    }
  }

  /** A universe with its clients, which JUnit closes with the context that requested it. */
  static final class World implements ExtensionContext.Store.CloseableResource {
    final Universe universe;
    final boolean isOfSweep;
    private final Consumer<Runnable> end;
    /** A {@link CuratorClients}, when a test has asked for a client: without Curator, that class cannot be loaded. */
    private Runnable clients;
    private boolean isClosed;

    /** What ends it gets what closes its clients. */
    World(Universe universe, Consumer<Runnable> end) {
      this(universe, false, end);
    }

    World(Universe universe, boolean isOfSweep, Consumer<Runnable> end) {
      this.universe = universe;
      this.isOfSweep = isOfSweep;
      this.end = end;
    }

    synchronized Object client(int number) {
      if (clients == null) clients = new CuratorClients(universe, isOfSweep);
      return ((CuratorClients) clients).client(number);
    }

    /** Returns what closes its clients, and forgets them: a test that asks for clients now gets others. */
    synchronized Runnable takeClients() {
      Runnable taken = clients == null ? () -> {} : clients;
      clients = null;
      return taken;
    }

    @Override
    public void close() {
      synchronized (this) {
        if (isClosed) return;
        isClosed = true;
      }
      end.accept(takeClients());
    }
  }

  /** The universe of a run of a sweep, which JUnit does not close: that takes time, and the sweep does it in the background. */
  private static final class OfRun {
    final World world;

    OfRun(World world) {
      this.world = world;
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
      server.stop();
    }
  }
}
