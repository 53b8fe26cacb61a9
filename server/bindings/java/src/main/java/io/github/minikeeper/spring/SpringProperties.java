package io.github.minikeeper.spring;

import io.github.minikeeper.MinikeeperServer;
import io.github.minikeeper.Universe;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BiConsumer;
import java.util.function.Supplier;

/**
 * Properties for Spring tests. Needs no class of Spring: pass {@code registry::add}.
 *
 * <pre>{@code
 * @SpringBootTest
 * class ApplicationTest {
 *   static Universe universe;
 *
 *   @DynamicPropertySource
 *   static void zookeeper(DynamicPropertyRegistry registry) {
 *     universe = SpringProperties.register(registry::add);
 *   }
 * }
 * }</pre>
 *
 * <p>Spring calls the method once for each application context, which may serve several test classes. So each call creates a
 * universe, which remains until this process exits, on one server for the process.
 */
public final class SpringProperties {
  /** The property of Spring Cloud Zookeeper. */
  public static final String CONNECT_STRING = "spring.cloud.zookeeper.connect-string";

  private static final AtomicInteger NUMBER = new AtomicInteger();

  private SpringProperties() {}

  /** Sets {@link #CONNECT_STRING} to the connect string of a new universe, and returns that. */
  public static Universe register(BiConsumer<String, Supplier<Object>> add) {
    return register(add, CONNECT_STRING);
  }

  /** Sets these properties to the connect string of a new universe, and returns that. */
  public static Universe register(BiConsumer<String, Supplier<Object>> add, String... names) {
    Universe universe = Shared.SERVER.createUniverse("spring-" + NUMBER.incrementAndGet());
    for (String name : names) add.accept(name, universe::connectString);
    return universe;
  }

  /** Starts the server with the first call. */
  private static final class Shared {
    static final MinikeeperServer SERVER = MinikeeperServer.builder().start();
  }
}
