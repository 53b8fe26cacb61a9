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
import java.util.Random;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
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
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.ZooKeeper;

/** Curator's service discovery, beside ours in tests/src/bin/partner/discovery.rs, which does the same. */
public final class Discovery {
  private static final int TIMEOUT_MS = 4_000;
  private static final int CHANGES_A_SECOND = 1_000;
  private static final String NAME = "app";
  private static final ObjectMapper JSON = new ObjectMapper();

  /** A payload of a class of its own. */
  public static final class Meta {
    public String zone = "a";
    public int limit = 7;
  }

  public static void main(String[] args) throws Exception {
    String connect = args[0];
    String base = args[1];
    int instances = Integer.parseInt(args[2]);
    int changes = Integer.parseInt(args[3]);
    Path folder = Path.of(args[4]);
    JSON.configure(MapperFeature.SORT_PROPERTIES_ALPHABETICALLY, true);
    JSON.configure(SerializationFeature.ORDER_MAP_ENTRIES_BY_KEYS, true);
    CuratorFramework client =
        CuratorFrameworkFactory.newClient(connect, TIMEOUT_MS, TIMEOUT_MS, new RetryNTimes(100, 100));
    Set<Long> sessions = ConcurrentHashMap.newKeySet();
    AtomicInteger connections = new AtomicInteger();
    client
        .getConnectionStateListenable()
        .addListener(
            (from, state) -> {
              if (state.isConnected()) {
                connections.incrementAndGet();
                try {
                  sessions.add(from.getZookeeperClient().getZooKeeper().getSessionId());
                } catch (Exception e) {
                  System.out.println("java: " + e);
                }
              }
            });
    client.start();
    client.blockUntilConnected(Pair.PATIENCE_S, TimeUnit.SECONDS);
    ServiceDiscovery<Object> discovery =
        ServiceDiscoveryBuilder.builder(Object.class).client(client).basePath(base).build();
    discovery.start();
    ServiceCache<Object> cache = discovery.serviceCacheBuilder().name(NAME).build();
    cache.start();
    ServiceProvider<Object> provider = discovery.serviceProviderBuilder().serviceName(NAME).build();
    provider.start();

    int kept = 0;
    for (int number = 0; number < instances; number++) {
      ServiceInstanceBuilder<Object> builder = builder(number);
      ServiceInstance<Object> instance = builder.build();
      discovery.registerService(instance);
      if (number % 2 == 0) {
        discovery.updateService(builder.sslPort(1_000 + number).build());
      }
      if (isKept(number)) {
        kept++;
      } else {
        discovery.unregisterService(instance);
      }
    }
    Pair.meet(client, base, "registered", "");
    if (changes == 0) {
      expire(client, connect);
    } else {
      change(discovery, instances, changes);
    }
    Pair.meet(client, base, "changed", "");
    int expected = 2 * kept;
    Map<String, String> views = new LinkedHashMap<>();
    try {
      Pair.await(
          expected + " instances everywhere",
          () -> {
            Collection<ServiceInstance<Object>> found = discovery.queryForInstances(NAME);
            views.put("query", view(found));
            views.put("cache", view(cache.getInstances()));
            views.put("provider", view(provider.getAllInstances()));
            return found.size() == expected && new TreeSet<>(views.values()).size() == 1;
          });
    } finally {
      for (Map.Entry<String, String> view : views.entrySet()) {
        Files.writeString(folder.resolve("java-" + view.getKey()), view.getValue());
      }
    }
    Pair.meet(client, base, "seen", "");
    discovery.close();
    Pair.meet(client, base, "closed", "");
    Pair.await("no instance", () -> cache.getInstances().isEmpty());
    System.out.println(
        "java: "
            + expected
            + " instances in query, cache and provider, none after closing; connections="
            + connections
            + " sessions="
            + sessions.size());
    cache.close();
    client.close();
  }

  /** Ends the session from another connection. */
  private static void expire(CuratorFramework client, String connect) throws Exception {
    ZooKeeper ours = client.getZookeeperClient().getZooKeeper();
    long session = ours.getSessionId();
    ZooKeeper same = new ZooKeeper(connect, TIMEOUT_MS, event -> {}, session, ours.getSessionPasswd());
    Pair.await("the second connection", () -> same.getState().isConnected());
    same.close();
    Pair.await("another session", () -> client.getZookeeperClient().getZooKeeper().getSessionId() != session);
  }

  private static ServiceInstanceBuilder<Object> builder(int number) throws Exception {
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
    return builder;
  }

  /** Makes changes at random, then leaves the instances that were kept before, each with an SSL port of its own. */
  private static void change(ServiceDiscovery<Object> discovery, int instances, int changes) throws Exception {
    Random random = new Random();
    List<ServiceInstanceBuilder<Object>> builders = new ArrayList<>();
    boolean[] registered = new boolean[instances];
    for (int number = 0; number < instances; number++) {
      builders.add(builder(number));
      registered[number] = isKept(number);
    }
    long begin = System.nanoTime();
    for (int change = 0; change < changes; change++) {
      long early = begin + TimeUnit.SECONDS.toNanos(1) * change / CHANGES_A_SECOND - System.nanoTime();
      if (early > 1_000_000) {
        TimeUnit.NANOSECONDS.sleep(early);
      }
      int number = random.nextInt(instances);
      ServiceInstance<Object> instance = builders.get(number).sslPort(change % 50_000).build();
      if (!registered[number]) {
        discovery.registerService(instance);
        registered[number] = true;
      } else if (random.nextInt(4) == 0) {
        discovery.unregisterService(instance);
        registered[number] = false;
      } else {
        update(discovery, instance);
      }
    }
    for (int number = 0; number < instances; number++) {
      ServiceInstance<Object> last = builders.get(number).sslPort(50_000 + number).build();
      if (!isKept(number)) {
        discovery.unregisterService(last);
      } else if (registered[number]) {
        update(discovery, last);
      } else {
        discovery.registerService(last);
      }
    }
    System.out.println(
        "java: changes=" + changes + " seconds=" + TimeUnit.NANOSECONDS.toSeconds(System.nanoTime() - begin));
  }

  /** Updates an instance whose znode may be missing: another session has begun, and does not have it yet. */
  private static void update(ServiceDiscovery<Object> discovery, ServiceInstance<Object> instance) throws Exception {
    Pair.await(
        "an update of " + instance.getId(),
        () -> {
          try {
            discovery.updateService(instance);
            return true;
          } catch (KeeperException.NoNodeException e) {
            return false;
          }
        });
  }

  private static boolean isKept(int number) {
    return number % 3 != 2;
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
}
