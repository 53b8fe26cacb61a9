import com.fasterxml.jackson.databind.MapperFeature;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.SerializationFeature;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.retry.RetryNTimes;
import org.apache.curator.x.discovery.ServiceCache;
import org.apache.curator.x.discovery.ServiceDiscovery;
import org.apache.curator.x.discovery.ServiceDiscoveryBuilder;
import org.apache.curator.x.discovery.ServiceInstance;
import org.apache.curator.x.discovery.ServiceInstanceBuilder;
import org.apache.curator.x.discovery.ServiceProvider;
import org.apache.curator.x.discovery.ServiceType;
import org.apache.curator.x.discovery.UriSpec;
import org.apache.zookeeper.ZooKeeper;

/** Curator's service discovery, beside ours in tests/src/bin/discovery.rs, which does the same. */
public final class Discovery {
  private static final int TIMEOUT_MS = 4_000;
  private static final int PATIENCE_S = 60;
  private static final String NAME = "app";
  private static final ObjectMapper JSON = new ObjectMapper();

  /** A payload of a class of its own. */
  public static final class Meta {
    public String zone = "a";
    public int limit = 7;
  }

  private interface Condition {
    boolean holds() throws Exception;
  }

  public static void main(String[] args) throws Exception {
    String connect = args[0];
    String base = args[1];
    int instances = Integer.parseInt(args[2]);
    Path folder = Path.of(args[3]);
    JSON.configure(MapperFeature.SORT_PROPERTIES_ALPHABETICALLY, true);
    JSON.configure(SerializationFeature.ORDER_MAP_ENTRIES_BY_KEYS, true);
    CuratorFramework client =
        CuratorFrameworkFactory.newClient(connect, TIMEOUT_MS, TIMEOUT_MS, new RetryNTimes(100, 100));
    client.start();
    client.blockUntilConnected(PATIENCE_S, TimeUnit.SECONDS);
    ServiceDiscovery<Object> discovery =
        ServiceDiscoveryBuilder.builder(Object.class).client(client).basePath(base).build();
    discovery.start();
    ServiceCache<Object> cache = discovery.serviceCacheBuilder().name(NAME).build();
    cache.start();
    ServiceProvider<Object> provider = discovery.serviceProviderBuilder().serviceName(NAME).build();
    provider.start();

    int kept = 0;
    for (int number = 0; number < instances; number++) {
      ServiceInstanceBuilder<Object> builder =
          ServiceInstance.builder()
              .name(NAME)
              .id("java-" + number)
              .address("10.0.0." + number)
              .port(number)
              .serviceType(number % 5 == 4 ? ServiceType.PERMANENT : ServiceType.DYNAMIC)
              .uriSpec(new UriSpec("{scheme}://{address}:{port}/{[}"));
      Object payload = payload(number);
      if (payload != null) {
        builder.payload(payload);
      }
      ServiceInstance<Object> instance = builder.build();
      discovery.registerService(instance);
      if (number % 2 == 0) {
        discovery.updateService(builder.sslPort(1_000 + number).build());
      }
      if (number % 3 == 2) {
        discovery.unregisterService(instance);
      } else {
        kept++;
      }
    }
    meet(client, base, "registered");
    // Another connection ends the session.
    ZooKeeper ours = client.getZookeeperClient().getZooKeeper();
    long session = ours.getSessionId();
    ZooKeeper same = new ZooKeeper(connect, TIMEOUT_MS, event -> {}, session, ours.getSessionPasswd());
    await("the second connection", () -> same.getState().isConnected());
    same.close();
    await("another session", () -> client.getZookeeperClient().getZooKeeper().getSessionId() != session);
    meet(client, base, "expired");
    int expected = 2 * kept;
    await(
        expected + " instances everywhere",
        () ->
            discovery.queryForInstances(NAME).size() == expected
                && view(discovery.queryForInstances(NAME)).equals(view(cache.getInstances()))
                && view(cache.getInstances()).equals(view(provider.getAllInstances())));
    Files.writeString(folder.resolve("java-query"), view(discovery.queryForInstances(NAME)));
    Files.writeString(folder.resolve("java-cache"), view(cache.getInstances()));
    Files.writeString(folder.resolve("java-provider"), view(provider.getAllInstances()));
    meet(client, base, "seen");
    discovery.close();
    meet(client, base, "closed");
    await("no instance", () -> cache.getInstances().isEmpty());
    System.out.println("java: " + expected + " instances in query, cache and provider, none after closing");
    cache.close();
    client.close();
  }

  private static Object payload(int number) {
    switch (number % 7) {
      case 0:
        return "t\u00e4xt \"" + number;
      case 1:
        return number;
      case 2:
        return new ArrayList<>(List.of("a", number));
      case 3:
        return new LinkedHashMap<>(Map.of("zone", "a", "limit", number));
      case 4:
        return new Meta();
      case 5:
        return 5_000_000_000L + number;
      default:
        return null;
    }
  }

  /** One line for each instance, sorted. */
  private static String view(Collection<ServiceInstance<Object>> instances) throws Exception {
    TreeSet<String> lines = new TreeSet<>();
    for (ServiceInstance<Object> one : instances) {
      int number = Integer.parseInt(one.getId().substring(5));
      if (number % 7 == 4 && !(one.getPayload() instanceof Meta)) {
        throw new IllegalStateException(one + " has not the payload of its class");
      }
      lines.add(
          String.join(
              "|",
              one.getId(),
              one.getAddress(),
              String.valueOf(one.getPort()),
              String.valueOf(one.getSslPort()),
              JSON.writeValueAsString(one.getPayload()),
              String.valueOf(one.getRegistrationTimeUTC()),
              one.getServiceType().name(),
              one.buildUriSpec(),
              String.valueOf(one.isEnabled())));
    }
    return String.join("\n", lines) + "\n";
  }

  /** Waits until the other program is here, too. */
  private static void meet(CuratorFramework client, String base, String where) throws Exception {
    client.create().creatingParentsIfNeeded().forPath(base + "-" + where + "/java");
    await("rust at " + where, () -> client.checkExists().forPath(base + "-" + where + "/rust") != null);
  }

  private static void await(String what, Condition condition) throws Exception {
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(PATIENCE_S);
    while (!condition.holds()) {
      if (System.nanoTime() > end) {
        throw new IllegalStateException("not within " + PATIENCE_S + " s: " + what);
      }
      Thread.sleep(20);
    }
  }
}
