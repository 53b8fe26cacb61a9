import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.io.PrintStream;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.zookeeper.AsyncCallback;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.Op;
import org.apache.zookeeper.WatchedEvent;
import org.apache.zookeeper.Watcher.Event.KeeperState;
import org.apache.zookeeper.ZooDefs.Ids;
import org.apache.zookeeper.ZooDefs.Perms;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.data.ACL;
import org.apache.zookeeper.data.Id;
import org.apache.zookeeper.data.Stat;

/**
 * Fills a server with znodes of every kind, and prints all znodes of a server.
 *
 *   Data fill HOST:PORT ROUNDS     leaves its sessions open, as a killed client does
 *   Data many HOST:PORT COUNT      znodes of 100 bytes below /many, 1,000 to a parent
 *   Data describe HOST:PORT [EVERY] one line per znode: path, data, access list, stat; then the sessions. Below /many only
 *                                  one in N
 */
final class Data {
  private static final int TIMEOUT_MS = 40_000;
  private static final int PATIENCE_S = 30;
  /** The credentials of the super user, from which the super digest of both servers is computed. */
  private static final String SUPER = "super:secret";
  private static final String BOB = "bob:secret";

  public static void main(String[] args) throws Exception {
    switch (args[0]) {
      case "fill":
        fill(args[1], Integer.parseInt(args[2]));
        break;
      case "many":
        many(args[1], Integer.parseInt(args[2]));
        break;
      case "describe":
        describe(args[1], args.length > 2 ? Integer.parseInt(args[2]) : 1);
        break;
      default:
        throw new IllegalArgumentException(args[0]);
    }
    System.out.flush();
    // Exits without closing the sessions.
    Runtime.getRuntime().halt(0);
  }

  private static ZooKeeper connect(String address) throws Exception {
    CountDownLatch connected = new CountDownLatch(1);
    ZooKeeper client = new ZooKeeper(address, TIMEOUT_MS, (WatchedEvent event) -> {
      if (event.getState() == KeeperState.SyncConnected) {
        connected.countDown();
      }
    });
    if (!connected.await(PATIENCE_S, TimeUnit.SECONDS)) {
      throw new IllegalStateException("not connected to " + address + " within " + PATIENCE_S + " s");
    }
    return client;
  }

  private static byte[] bytes(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  private static void fill(String address, int rounds) throws Exception {
    ZooKeeper client = connect(address);
    client.addAuthInfo("digest", bytes(BOB));
    everyKind(client);
    // Several sessions at once, while the server takes snapshots.
    AtomicReference<Exception> failure = new AtomicReference<>();
    List<Thread> threads = new ArrayList<>();
    for (int number = 0; number < 4; number++) {
      int seed = number;
      Thread thread = new Thread(() -> {
        try {
          traffic(connect(address), seed, rounds);
        } catch (Exception error) {
          failure.set(error);
        }
      });
      thread.start();
      threads.add(thread);
    }
    for (Thread thread : threads) {
      thread.join();
    }
    if (failure.get() != null) {
      throw failure.get();
    }
    // These changes come after the last snapshot: only the log has them.
    everyKindAgain(client);
  }

  private static void everyKind(ZooKeeper client) throws Exception {
    client.create("/plain", bytes("data"), Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
    client.create("/null", null, Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
    client.create("/empty", new byte[0], Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
    client.create("/big", new byte[1_000_000], Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
    client.create("/d\u00e9j\u00e0 vu \u20ac", bytes("\u20ac"), Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
    client.create("/ephemeral", bytes("e"), Ids.OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL);
    client.create("/container", null, Ids.OPEN_ACL_UNSAFE, CreateMode.CONTAINER);
    client.create("/container/child", null, Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
    client.create("/ttl", bytes("t"), Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT_WITH_TTL, null, 3_600_000);
    client.create("/ttl-", bytes("t"), Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT_SEQUENTIAL_WITH_TTL, null, 3_600_000);
    client.create("/sequence", null, Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
    for (int number = 0; number < 5; number++) {
      client.create("/sequence/n-", null, Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT_SEQUENTIAL);
      client.create("/sequence/e-", null, Ids.OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL_SEQUENTIAL);
    }
    client.create("/lists", null, Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
    client.create("/lists/mine", bytes("m"), Ids.CREATOR_ALL_ACL, CreateMode.PERSISTENT);
    client.create("/lists/read", bytes("r"), Ids.READ_ACL_UNSAFE, CreateMode.PERSISTENT);
    List<ACL> two = new ArrayList<>();
    two.add(new ACL(Perms.READ | Perms.WRITE, new Id("ip", "127.0.0.1/8")));
    two.add(new ACL(Perms.ADMIN, new Id("digest", "alice:dGVzdA==")));
    client.create("/lists/two", bytes("t"), two, CreateMode.PERSISTENT);
    client.create("/deep", null, Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
    StringBuilder path = new StringBuilder("/deep");
    for (int depth = 0; depth < 40; depth++) {
      client.create(path.append("/").append(depth).toString(), null, Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
    }
    client.create("/quota", null, Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
    client.create("/zookeeper/quota/quota", null, Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
    client.create("/zookeeper/quota/quota/zookeeper_limits", bytes("count=100,bytes=-1"), Ids.OPEN_ACL_UNSAFE,
        CreateMode.PERSISTENT);
    client.create("/zookeeper/quota/quota/zookeeper_stats", bytes("count=0,bytes=0"), Ids.OPEN_ACL_UNSAFE,
        CreateMode.PERSISTENT);
    client.create("/traffic", null, Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
  }

  private static void everyKindAgain(ZooKeeper client) throws Exception {
    client.setData("/plain", bytes("again"), -1);
    client.setData("/null", null, 0);
    client.setACL("/plain", Ids.READ_ACL_UNSAFE, -1);
    client.delete("/sequence/n-0000000000", -1);
    client.create("/sequence/n-", null, Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT_SEQUENTIAL);
    client.create("/late-ephemeral", null, Ids.CREATOR_ALL_ACL, CreateMode.EPHEMERAL);
    client.create("/late-container", null, Ids.OPEN_ACL_UNSAFE, CreateMode.CONTAINER);
    client.create("/late-ttl", null, Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT_WITH_TTL, null, 7_200_000);
    List<Op> together = new ArrayList<>();
    together.add(Op.create("/together", bytes("1"), Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT));
    together.add(Op.check("/plain", -1));
    together.add(Op.setData("/together", bytes("2"), 0));
    together.add(Op.create("/together/ephemeral", null, Ids.OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL));
    together.add(Op.create("/together/ttl", null, Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT_WITH_TTL, 3_600_000));
    together.add(Op.create("/together/container", null, Ids.OPEN_ACL_UNSAFE, CreateMode.CONTAINER));
    together.add(Op.delete("/empty", -1));
    client.multi(together);
    try {
      client.multi(List.of(Op.create("/never", null, Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT),
          Op.delete("/not-there", -1)));
      throw new IllegalStateException("a multi that must fail did not");
    } catch (KeeperException.NoNodeException expected) {
      // The multi changed nothing.
    }
    client.create("/quota/child", bytes("123"), Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
  }

  /** Creates and deletes znodes under few names, from sessions that end from time to time. */
  private static void traffic(ZooKeeper first, int seed, int rounds) throws Exception {
    ZooKeeper client = first;
    Random random = new Random(seed);
    String address = null;
    for (int round = 0; round < rounds; round++) {
      String path = "/traffic/" + random.nextInt(20);
      String child = path + "/" + random.nextInt(5);
      try {
        switch (random.nextInt(8)) {
          case 0:
            client.create(path, bytes("r" + round), Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
            break;
          case 1:
            client.create(path, null, Ids.CREATOR_ALL_ACL, CreateMode.PERSISTENT, new Stat());
            break;
          case 2:
            client.create(child, bytes("s" + seed), Ids.READ_ACL_UNSAFE, CreateMode.EPHEMERAL);
            break;
          case 3:
            client.create(child, bytes("s" + seed), Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT_SEQUENTIAL);
            break;
          case 4:
            client.delete(child, -1);
            break;
          case 5:
            for (String name : client.getChildren(path, false)) {
              client.delete(path + "/" + name, -1);
            }
            client.delete(path, -1);
            break;
          case 6:
            client.setData(path, new byte[random.nextInt(2_000)], -1);
            break;
          default:
            client.multi(List.of(Op.setData(path, bytes("m" + round), -1),
                Op.create(child, null, Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT)));
        }
      } catch (KeeperException ignored) {
        // Another session was faster: the log has an error entry.
      }
      if (round % 100 == 99) {
        address = address == null ? remote(client) : address;
        client.close();
        client = connect(address);
      }
    }
  }

  private static String remote(ZooKeeper client) {
    String text = client.toString();
    int at = text.indexOf("remoteserver:");
    String server = text.substring(at + "remoteserver:".length()).split(" ")[0];
    return server.substring(server.indexOf('/') + 1);
  }

  private static void many(String address, int count) throws Exception {
    ZooKeeper client = connect(address);
    client.create("/many", null, Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
    int outstanding = 2_000;
    Semaphore free = new Semaphore(outstanding);
    AtomicInteger failed = new AtomicInteger();
    AsyncCallback.StringCallback done = (code, path, context, name) -> {
      if (code != 0) {
        failed.incrementAndGet();
      }
      free.release();
    };
    byte[] data = new byte[100];
    for (int number = 0; number < count; number++) {
      String parent = "/many/" + number / 1_000;
      if (number % 1_000 == 0) {
        client.create(parent, null, Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
      }
      free.acquire();
      client.create(parent + "/" + number, data, Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT, done, null);
    }
    free.acquire(outstanding);
    if (failed.get() > 0) {
      throw new IllegalStateException(failed.get() + " creates failed");
    }
    client.close();
  }

  private static void describe(String address, int every) throws Exception {
    ZooKeeper client = connect(address);
    client.addAuthInfo("digest", bytes(SUPER));
    PrintStream out = new PrintStream(System.out, false, "UTF-8");
    List<String> waiting = new ArrayList<>();
    waiting.add("/");
    while (!waiting.isEmpty()) {
      String path = waiting.remove(waiting.size() - 1);
      Stat stat = new Stat();
      byte[] data = client.getData(path, false, stat);
      String list = client.getACL(path, new Stat()).toString().replace("\n", " ").trim();
      out.println(path + " data " + text(data) + " list " + list + " stat " + stat.toString().trim());
      List<String> names = client.getChildren(path, false);
      Collections.sort(names);
      for (String name : names) {
        if (path.startsWith("/many/") && Integer.parseInt(name) % every != 0) {
          continue;
        }
        waiting.add((path.equals("/") ? "" : path) + "/" + name);
      }
    }
    // The sessions with their ephemerals, without this client's session.
    String own = "0x" + Long.toHexString(client.getSessionId());
    List<String> sessions = new ArrayList<>();
    for (String block : word(address, "dump").split("(?=0x)")) {
      String id = block.trim().split("[\\s:]")[0];
      if (id.startsWith("0x") && !id.equals(own) && block.contains("/")) {
        List<String> lines = new ArrayList<>(List.of(block.trim().split("\\s*\n\\s*")));
        lines.removeIf(line -> !line.startsWith("/"));
        Collections.sort(lines);
        if (!lines.isEmpty()) {
          sessions.add("session " + id + " owns " + lines);
        }
      }
    }
    Collections.sort(sessions);
    sessions.forEach(out::println);
    out.flush();
  }

  private static String text(byte[] data) throws Exception {
    if (data == null) {
      return "null";
    }
    StringBuilder text = new StringBuilder();
    byte[] shown = data.length <= 40 ? data : MessageDigest.getInstance("SHA-256").digest(data);
    for (byte each : shown) {
      text.append(String.format("%02x", each));
    }
    return data.length + ":" + text;
  }

  private static String word(String address, String word) throws Exception {
    int colon = address.lastIndexOf(':');
    try (Socket socket = new Socket(address.substring(0, colon), Integer.parseInt(address.substring(colon + 1)))) {
      socket.setSoTimeout(PATIENCE_S * 1_000);
      socket.getOutputStream().write(bytes(word));
      socket.shutdownOutput();
      ByteArrayOutputStream answer = new ByteArrayOutputStream();
      InputStream in = socket.getInputStream();
      byte[] buffer = new byte[4_096];
      for (int read = in.read(buffer); read >= 0; read = in.read(buffer)) {
        answer.write(buffer, 0, read);
      }
      return new String(answer.toByteArray(), StandardCharsets.UTF_8);
    }
  }
}
