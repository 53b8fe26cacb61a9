package suite;

import static org.junit.jupiter.api.Assertions.assertThrows;

import java.util.Map;
import org.apache.curator.test.InstanceSpec;
import org.apache.curator.test.TestingServer;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Isolated;

/** System properties that TestingServer passes on. Isolated, since they are those of the process. */
@Isolated
class SystemPropertiesTest {
  private static final String CHECK = "znode.container.checkIntervalMs";
  private static final String TYPES = "zookeeper.extendedTypesEnabled";

  @AfterEach
  void clear() {
    System.clearProperty(CHECK);
    System.clearProperty(TYPES);
  }

  /** Curator's tests of TTLs set this property, which had no effect: the server checked once a minute. */
  @Test
  void intervalOfContainerChecksIsThatOfTheProperty() throws Exception {
    System.setProperty(CHECK, "1");
    try (TestingServer server = new TestingServer();
        Client client = new Client(server.getConnectString()).connected()) {
      client.curator.create().withTtl(1).withMode(CreateMode.PERSISTENT_WITH_TTL).forPath("/short");
      Await.until("the znode is deleted", () -> !client.exists("/short"));
    }
  }

  @Test
  void prefixIsNotPartOfTheKey() throws Exception {
    System.setProperty(TYPES, "false");
    try (TestingServer server = new TestingServer();
        Client client = new Client(server.getConnectString()).connected()) {
      assertThrows(KeeperException.UnimplementedException.class, () -> createTtl(client));
    }
  }

  @Test
  void propertyOfTheSpecWins() throws Exception {
    System.setProperty(TYPES, "false");
    InstanceSpec spec = new InstanceSpec(null, 0, -1, -1, true, -1, -1, -1, Map.of("extendedTypesEnabled", "true"));
    try (TestingServer server = new TestingServer(spec, true);
        Client client = new Client(server.getConnectString()).connected()) {
      createTtl(client);
    }
  }

  private static void createTtl(Client client) throws Exception {
    client.curator.create().withTtl(1_000).withMode(CreateMode.PERSISTENT_WITH_TTL).forPath("/ttl");
  }
}
