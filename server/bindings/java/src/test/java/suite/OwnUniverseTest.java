package suite;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.platform.engine.discovery.DiscoverySelectors.selectClass;

import io.github.minikeeper.Universe;
import io.github.minikeeper.junit.Minikeeper;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Collectors;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.imps.CuratorFrameworkState;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;
import org.junit.platform.launcher.listeners.SummaryGeneratingListener;
import org.junit.platform.launcher.listeners.TestExecutionSummary;

/**
 * No test sees what another one has left, wherever its parameters are: a constructor and {@code @BeforeAll} used to create one
 * universe for all tests of a class.
 */
class OwnUniverseTest {
  private static final Set<String> SEEN = ConcurrentHashMap.newKeySet();

  /** Each test of these leaves a znode, which the next one would see, and uses the universe in all ways. */
  @Minikeeper(options = {"--tick-time", "700"})
  static class Injected {
    final Universe universe;
    final CuratorFramework client;

    Injected(Universe universe, CuratorFramework client) {
      this.universe = universe;
      this.client = client;
    }

    @BeforeEach
    void setUp(Universe same) throws Exception {
      assertSame(universe, same);
      client.create().forPath("/left-behind");
    }

    @Test
    void testHasWhatItsConstructorGot(CuratorFramework same) {
      use(universe, universe);
      assertSame(client, same);
      assertEquals(CuratorFrameworkState.STARTED, client.getState());
    }

    @RepeatedTest(2)
    void eachTestHasItsOwn(Universe same) {
      use(universe, same);
    }

    @Nested
    class Inner {
      final Universe inner;

      Inner(Universe inner) {
        this.inner = inner;
      }

      @RepeatedTest(2)
      void nestedTestHasThatOfAllItsConstructors(Universe same) {
        assertSame(universe, inner);
        use(inner, same);
      }
    }

    @Nested
    class InnerWithoutConstructor {
      @RepeatedTest(2)
      void nestedTestHasThatOfTheOuterConstructor(Universe same) {
        use(universe, same);
      }
    }

    private static void use(Universe universe, Universe same) {
      assertSame(universe, same);
      assertTrue(SEEN.add(universe.connectString()), "another test has this universe");
      universe.get("/left-behind");
      // Nested classes have the options of the outer one.
      assertEquals(14_000, universe.sessions().get(0).timeout().toMillis());
    }
  }

  /** Half of the tests fail in the constructor, and none sees the universe of such a one. */
  @Minikeeper
  static class FailsAtTimes {
    private static int constructed;

    FailsAtTimes(Universe universe) {
      universe.create("/left-behind");
      if (constructed++ % 2 == 0) throw new IllegalStateException("on purpose");
    }

    @RepeatedTest(4)
    void test(Universe universe) {
      assertTrue(SEEN.add(universe.connectString()));
    }

    @Nested
    class Inner {
      @RepeatedTest(4)
      void test(Universe universe) {
        assertTrue(SEEN.add(universe.connectString()));
      }
    }
  }

  @Minikeeper
  static class BeforeAllWithUniverse {
    @BeforeAll
    static void setUp(Universe universe) {}

    @Test
    void test(Universe universe) {}
  }

  @Minikeeper
  static class AfterAllWithClient {
    @Test
    void test(Universe universe) {}

    @AfterAll
    static void tearDown(CuratorFramework client) {}
  }

  @Minikeeper
  @TestInstance(TestInstance.Lifecycle.PER_CLASS)
  static class OneInstance {
    OneInstance(Universe universe) {}

    @Test
    void test() {}
  }

  /** The same, by choice. */
  @Minikeeper(perClass = true)
  static class Shared {
    private static Universe first;

    private final Universe constructed;

    Shared(Universe universe) {
      constructed = universe;
    }

    @BeforeAll
    static void setUp(Universe universe) {
      first = universe;
      universe.create("/counted");
    }

    @RepeatedTest(2)
    void test(Universe universe) {
      assertSame(first, universe);
      assertSame(first, constructed);
      universe.create("/counted/n-" + universe.children("/counted").size());
    }

    @Nested
    class Inner {
      @Test
      void test(Universe universe) {
        assertSame(first, universe);
        universe.create("/counted/inner");
      }
    }

    @AfterAll
    static void tearDown(Universe universe) {
      assertEquals(List.of("inner", "n-0", "n-1"), universe.children("/counted").stream().sorted().collect(Collectors.toList()));
    }
  }

  @Test
  void universeOfAConstructorIsThatOfItsTest() {
    assertEquals(List.of(), run(Injected.class, 7));
  }

  @Test
  void failedConstructorLeavesNothing() {
    List<String> failures = run(FailsAtTimes.class, 4);
    assertEquals(4, failures.size(), failures::toString);
    failures.forEach(failure -> assertEquals("on purpose", failure));
  }

  @Test
  void methodsOfAllTestsHaveNoUniverse() {
    String rest = " has no universe: each test has its own. Move the parameter to @BeforeEach or to the test,"
        + " or let the tests of the class share a universe: @Minikeeper(perClass = true)";
    assertFails(BeforeAllWithUniverse.class, "setUp, which JUnit calls once for all tests," + rest);
    assertFails(AfterAllWithClient.class, "tearDown, which JUnit calls once for all tests," + rest);
    assertFails(OneInstance.class, "the constructor of OneInstance, which JUnit calls once for all tests," + rest);
  }

  @Test
  void testsOfAClassShareAUniverseByChoice() {
    assertEquals(List.of(), run(Shared.class, 3));
  }

  private static void assertFails(Class<?> type, String message) {
    List<String> failures = run(type, type == AfterAllWithClient.class ? 1 : 0);
    assertEquals(1, failures.size(), failures::toString);
    assertTrue(failures.get(0).contains(message), failures::toString);
  }

  /** Runs a class, of which this many tests must pass, and returns the messages of all failures. */
  private static List<String> run(Class<?> type, int passed) {
    SummaryGeneratingListener listener = new SummaryGeneratingListener();
    LauncherFactory.create().execute(
        LauncherDiscoveryRequestBuilder.request()
            .selectors(selectClass(type))
            .configurationParameter("minikeeper.stories", "off")
            .build(),
        listener);
    List<String> failures = new ArrayList<>();
    for (TestExecutionSummary.Failure failure : listener.getSummary().getFailures()) {
      failures.add(String.valueOf(failure.getException().getMessage()));
    }
    assertEquals(passed, listener.getSummary().getTestsSucceededCount(), failures::toString);
    assertFalse(listener.getSummary().getTestsFoundCount() == 0);
    return failures;
  }
}
