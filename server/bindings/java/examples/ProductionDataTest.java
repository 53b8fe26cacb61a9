package examples;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.github.minikeeper.MinikeeperServer;
import io.github.minikeeper.Universe;
import io.github.minikeeper.Who;
import io.github.minikeeper.junit.Minikeeper;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.retry.RetryOneTime;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.data.Stat;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Start from production data. {@code docs/testing/production-data.md} explains it. */
@Minikeeper
class ProductionDataTest {
  @TempDir
  static Path production;

  /** The code under test: converts /config/limit from requests per second to requests per minute. */
  private static void migrate(CuratorFramework client) throws Exception {
    Stat stat = new Stat();
    int limit = Integer.parseInt(new String(client.getData().storingStatIn(stat).forPath("/config/limit")));
    client.setData().withVersion(stat.getVersion()).forPath("/config/limit", String.valueOf(limit * 60).getBytes());
    client.create().forPath("/config/unit", "minute".getBytes());
  }

  /** Imitates production: a directory as ZooKeeper 3.8 and 3.9 write it, with a session in it. */
  @BeforeAll
  static void exportProduction() throws Exception {
    try (MinikeeperServer server = MinikeeperServer.builder().start();
        CuratorFramework web = CuratorFrameworkFactory.newClient(server.connectString(), new RetryOneTime(100))) {
      server.seed(Map.of("/config/limit", "100"));
      web.start();
      web.create().creatingParentsIfNeeded().withMode(CreateMode.EPHEMERAL).forPath("/services/web");
      server.exportData(production);
    }
  }

  /** Each test starts with production's data again; the directory is only read. */
  @BeforeEach
  void importProduction(Universe universe) {
    universe.importData(production);
  }

  @Test
  void limitIsMigrated(Universe universe, CuratorFramework client) throws Exception {
    migrate(client);

    assertEquals("6000", universe.get("/config/limit").text());
    assertEquals("minute", universe.get("/config/unit").text());
  }

  @Test
  void limitIsNotMigratedTwice(Universe universe, CuratorFramework client) throws Exception {
    assertEquals("100", universe.get("/config/limit").text());
    migrate(client);
    assertThrows(KeeperException.NodeExistsException.class, () -> migrate(client));
  }

  /** Their ephemerals remain until they end, as in production. */
  @Test
  void sessionsOfProductionCanBeEnded(Universe universe, CuratorFramework client) throws Exception {
    assertEquals(List.of("web"), universe.children("/services"));

    assertEquals(1, universe.expire(Who.owner("/services/web")));

    assertEquals(List.of(), client.getChildren().forPath("/services"));
  }
}
