package io.github.minikeeper.junit;

import io.github.minikeeper.MinikeeperServer;
import io.github.minikeeper.Universe;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import org.junit.internal.AssumptionViolatedException;
import org.junit.rules.ExternalResource;
import org.junit.runner.Description;
import org.junit.runners.model.Statement;

/**
 * For JUnit 4: a universe for each test, empty, without sessions and faults, with a running clock. After the test it is
 * dropped, and the connections of its clients close.
 *
 * <pre>{@code
 * @Rule
 * public final MinikeeperRule minikeeper = new MinikeeperRule();
 *
 * @Test
 * public void test() {
 *   ... minikeeper.connectString() ... minikeeper.universe().expire(session) ...
 * }
 * }</pre>
 *
 * <p>With {@code @ClassRule}, the tests of the class share one universe. Rules with the same options share a server, which
 * runs until this process exits.
 *
 * <p>When a test fails, prints the story of its universe to stderr and saves it, as {@link MinikeeperExtension} does; here the
 * system property {@code minikeeper.stories} names the folder. JUnit 4 calls methods {@code @After} before that, so a story
 * shows clients that they close as disconnected.
 */
public final class MinikeeperRule extends ExternalResource {
  private static final Map<List<String>, MinikeeperServer> SERVERS = new ConcurrentHashMap<>();

  private final List<String> options;
  private MinikeeperServer server;
  private String name;
  private String title = "";
  private volatile Universe universe;
  /** If this process is a run of {@code minikeeper sweep}. */
  private SweptRun run;

  /** With options of the program, as on its command line. */
  public MinikeeperRule(String... options) {
    this.options = List.of(options);
  }

  /** The universe of the running test. */
  public Universe universe() {
    Universe current = universe;
    if (current == null) throw new IllegalStateException("no test runs");
    return current;
  }

  /** The connect string of that universe. */
  public String connectString() {
    return universe().connectString();
  }

  @Override
  public Statement apply(Statement base, Description test) {
    title = test.getMethodName() == null ? test.getClassName() : test.getClassName() + "." + test.getMethodName();
    Statement telling = new Statement() {
      @Override
      public void evaluate() throws Throwable {
        try {
          base.evaluate();
        } catch (AssumptionViolatedException skipped) {
          throw skipped;
        } catch (Throwable failure) {
          tell(failure);
          throw failure;
        }
      }
    };
    return super.apply(telling, test);
  }

  @Override
  protected void before() {
    if (SweptRun.isOne()) {
      run = SweptRun.begin(options);
      universe = run.universe();
      return;
    }
    server = SERVERS.computeIfAbsent(options, Worlds::start);
    // Another test may have left the server down.
    server.ensureReady();
    name = Worlds.newName();
    universe = server.createUniverse(name);
  }

  /** Drops the universe. Fails the test if a fault remains that has never acted and is not optional. */
  @Override
  protected void after() {
    Universe ended = universe;
    if (ended == null) return;
    try {
      if (run != null) {
        run.end(this::tell, () -> {});
      } else {
        Worlds.end(server, ended, name, this::tell, () -> {});
      }
    } finally {
      universe = null;
    }
  }

  private void tell(Throwable failure) {
    Stories.tell(title, Optional.ofNullable(System.getProperty(Stories.PARAMETER)), universe, failure);
  }
}
