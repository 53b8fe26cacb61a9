package suite;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;

import io.github.minikeeper.Universe;
import io.github.minikeeper.spring.SpringProperties;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.Supplier;
import org.junit.jupiter.api.Test;

class SpringPropertiesTest {
  /** The method that Spring's interface of this name has. */
  private static final class DynamicPropertyRegistry {
    final TreeMap<String, Supplier<Object>> properties = new TreeMap<>();

    void add(String name, Supplier<Object> value) {
      properties.put(name, value);
    }
  }

  @Test
  void propertyIsTheConnectStringOfAUniverse() throws Exception {
    DynamicPropertyRegistry registry = new DynamicPropertyRegistry();
    Universe universe = SpringProperties.register(registry::add);
    assertEquals(Set.of("spring.cloud.zookeeper.connect-string"), registry.properties.keySet());
    String connectString = (String) registry.properties.get(SpringProperties.CONNECT_STRING).get();
    assertEquals(universe.connectString(), connectString);
    try (Client client = new Client(connectString).connected()) {
      client.curator.create().forPath("/mine");
      assertEquals(1, universe.sessions().size());
    }
  }

  @Test
  void everyContextHasItsOwnUniverse() {
    DynamicPropertyRegistry one = new DynamicPropertyRegistry();
    DynamicPropertyRegistry two = new DynamicPropertyRegistry();
    Universe first = SpringProperties.register(one::add, "zk.servers", "zk.backup");
    Universe second = SpringProperties.register(two::add, "zk.servers");
    assertEquals(one.properties.get("zk.servers").get(), one.properties.get("zk.backup").get());
    assertNotEquals(first.connectString(), second.connectString());
    first.create("/a");
    assertFalse(second.children("/").contains("a"));
  }
}
