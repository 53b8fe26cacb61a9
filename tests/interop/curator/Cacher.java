import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Supplier;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.cache.ChildData;
import org.apache.curator.framework.recipes.cache.CuratorCache;
import org.apache.curator.framework.recipes.cache.CuratorCacheListener;
import org.apache.curator.framework.recipes.cache.NodeCache;
import org.apache.curator.framework.recipes.cache.PathChildrenCache;
import org.apache.curator.framework.recipes.cache.TreeCache;
import org.apache.curator.framework.recipes.cache.TreeCacheEvent;
import org.apache.curator.retry.RetryForever;

/** Curator's caches, on one tree with those of tests/src/bin/partner/cacher.rs. */
@SuppressWarnings("deprecation")
public final class Cacher {
  private static final int TIMEOUT_MS = 4_000;

  public static void main(String[] args) throws Exception {
    CuratorFramework client =
        CuratorFrameworkFactory.newClient(args[1], TIMEOUT_MS, TIMEOUT_MS, new RetryForever(100));
    client.start();
    client.blockUntilConnected();
    if (args[0].equals("measure")) {
      measure(client, args[2]);
    } else {
      System.exit(follow(client, args[2], Paths.get(args[3])) ? 0 : 1);
    }
    System.exit(0);
  }

  /** Writes entries as the truth is written: path, mzxid and data, sorted. */
  private static String lines(Collection<ChildData> entries) {
    TreeMap<String, String> lines = new TreeMap<>();
    for (ChildData entry : entries) {
      StringBuilder line = new StringBuilder();
      line.append(entry.getPath()).append(' ').append(entry.getStat().getMzxid()).append(' ');
      byte[] data = entry.getData();
      for (byte one : data == null ? new byte[0] : data) {
        line.append(String.format("%02x", one));
      }
      lines.put(entry.getPath(), line.toString());
    }
    return join(lines);
  }

  private static String join(Map<String, String> lines) {
    StringBuilder text = new StringBuilder();
    lines.values().forEach(line -> text.append(line).append('\n'));
    return text.toString();
  }

  private static void collect(TreeCache cache, String path, List<ChildData> found) {
    ChildData data = cache.getCurrentData(path);
    if (data != null) {
      found.add(data);
    }
    Map<String, ChildData> children = cache.getCurrentChildren(path);
    if (children != null) {
      children.keySet().forEach(name -> collect(cache, path + "/" + name, found));
    }
  }

  private static List<ChildData> all(CuratorCache cache) {
    List<ChildData> all = new ArrayList<>();
    cache.stream().forEach(all::add);
    return all;
  }

  private static boolean follow(CuratorFramework client, String path, Path file) throws Exception {
    AtomicLong events = new AtomicLong();
    CountDownLatch initialized = new CountDownLatch(2);
    CuratorCache cache = CuratorCache.build(client, path);
    cache.listenable().addListener((type, old, data) -> events.incrementAndGet());
    cache
        .listenable()
        .addListener(CuratorCacheListener.builder().forInitialized(initialized::countDown).build());
    CuratorCache single = CuratorCache.build(client, path, CuratorCache.Options.SINGLE_NODE_CACHE);
    PathChildrenCache children = new PathChildrenCache(client, path, true);
    NodeCache node = new NodeCache(client, path);
    TreeCache tree = new TreeCache(client, path);
    tree.getListenable()
        .addListener(
            (from, event) -> {
              if (event.getType() == TreeCacheEvent.Type.INITIALIZED) {
                initialized.countDown();
              }
            });
    cache.start();
    single.start();
    children.start(PathChildrenCache.StartMode.BUILD_INITIAL_CACHE);
    node.start(true);
    tree.start();
    initialized.await(60, TimeUnit.SECONDS);
    System.out.println("curator: initialized znodes=" + cache.size());
    while (!Files.exists(file)) {
      Thread.sleep(50);
    }
    String truth = new String(Files.readAllBytes(file), StandardCharsets.UTF_8);
    Map<String, String> root = new TreeMap<>();
    Map<String, String> first = new TreeMap<>();
    for (String line : truth.split("\n")) {
      String of = line.split(" ")[0];
      if (of.equals(path)) {
        root.put(of, line);
      } else if (of.lastIndexOf('/') == path.length()) {
        first.put(of, line);
      }
    }
    Map<String, Supplier<Boolean>> views = new TreeMap<>();
    views.put("CuratorCache", () -> lines(all(cache)).equals(truth));
    views.put("single node", () -> lines(all(single)).equals(join(root)));
    views.put("PathChildrenCache", () -> lines(children.getCurrentData()).equals(join(first)));
    views.put(
        "NodeCache",
        () ->
            lines(
                    Optional.ofNullable(node.getCurrentData())
                        .map(Collections::singletonList)
                        .orElse(Collections.emptyList()))
                .equals(join(root)));
    views.put(
        "TreeCache",
        () -> {
          List<ChildData> found = new ArrayList<>();
          collect(tree, path, found);
          return lines(found).equals(truth);
        });
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
    List<String> differ = new ArrayList<>();
    do {
      Thread.sleep(200);
      differ.clear();
      views.forEach((name, equal) -> { if (!equal.get()) differ.add(name); });
    } while (!differ.isEmpty() && System.nanoTime() < end);
    int znodes = truth.split("\n").length;
    if (differ.isEmpty()) {
      System.out.println("curator: views=5 equal znodes=" + znodes + " changes=" + events.get());
    } else {
      System.out.println("curator: these views differ from the server: " + differ);
      TreeMap<String, String> known = new TreeMap<>();
      for (String line : lines(all(cache)).split("\n")) known.put(line, "CuratorCache only: ");
      for (String line : truth.split("\n")) if (known.remove(line) == null) known.put(line, "server only: ");
      known.entrySet().stream().limit(20).forEach(it -> System.out.println(it.getValue() + it.getKey()));
    }
    return differ.isEmpty();
  }

  private static long usedBytes() throws Exception {
    for (int round = 0; round < 4; round++) {
      System.gc();
      Thread.sleep(100);
    }
    Runtime runtime = Runtime.getRuntime();
    return runtime.totalMemory() - runtime.freeMemory();
  }

  private static long residentBytes() throws Exception {
    for (String line : Files.readAllLines(Paths.get("/proc/self/status"))) {
      if (line.startsWith("VmRSS:")) {
        return Long.parseLong(line.split("\\s+")[1]) * 1024;
      }
    }
    return 0;
  }

  private static void measure(CuratorFramework client, String path) throws Exception {
    long before = usedBytes();
    long residentBefore = residentBytes();
    AtomicLong events = new AtomicLong();
    CountDownLatch initialized = new CountDownLatch(1);
    CountDownLatch ended = new CountDownLatch(1);
    AtomicLong endedAtMs = new AtomicLong();
    String end = path + "/end";
    CuratorCache cache = CuratorCache.build(client, path);
    cache
        .listenable()
        .addListener(
            CuratorCacheListener.builder()
                .forInitialized(initialized::countDown)
                .forAll(
                    (type, old, data) -> {
                      events.incrementAndGet();
                      if (data != null && data.getPath().equals(end)) {
                        endedAtMs.set(System.currentTimeMillis());
                        ended.countDown();
                      }
                    })
                .build());
    long begin = System.nanoTime();
    cache.start();
    initialized.await();
    long loadMs = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - begin);
    int znodes = cache.size();
    long resident = (residentBytes() - residentBefore) / znodes;
    long bytes = (usedBytes() - before) / znodes;
    long loaded = events.get();
    System.out.println(
        "curator: load_ms="
            + loadMs
            + " znodes="
            + znodes
            + " resident_per_znode="
            + resident
            + " heap_per_znode="
            + bytes);
    ended.await();
    long begunMs = Long.parseLong(new String(cache.get(end).get().getData(), StandardCharsets.UTF_8));
    System.out.println(
        "curator: followed_ms=" + (endedAtMs.get() - begunMs) + " events=" + (events.get() - loaded));
  }
}
