import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.atomic.AtomicValue;
import org.apache.curator.framework.recipes.atomic.CachedAtomicLong;
import org.apache.curator.framework.recipes.atomic.DistributedAtomicInteger;
import org.apache.curator.framework.recipes.atomic.DistributedAtomicLong;
import org.apache.curator.framework.recipes.atomic.DistributedAtomicValue;
import org.apache.curator.framework.recipes.nodes.GroupMember;
import org.apache.curator.framework.recipes.nodes.PersistentNode;
import org.apache.curator.framework.recipes.nodes.PersistentTtlNode;
import org.apache.curator.framework.recipes.shared.SharedCount;
import org.apache.curator.framework.recipes.shared.VersionedValue;
import org.apache.curator.retry.RetryNTimes;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.data.Stat;

/** Curator's counters, values, groups and kept znodes, beside ours in tests/src/bin/values.rs, which does the same. */
public final class Values {
  private static final int TIMEOUT_MS = 4_000;
  private static final int PATIENCE_S = 120;
  private static final byte[] NOTHING = {};
  private static final String OTHER = "rust";
  private static final String OWN = "java";

  private interface Condition {
    boolean holds() throws Exception;
  }

  private final CuratorFramework client;
  private final String base;
  private final int rounds;

  private Values(CuratorFramework client, String base, int rounds) {
    this.client = client;
    this.base = base;
    this.rounds = rounds;
  }

  public static void main(String[] args) throws Exception {
    CuratorFramework client =
        CuratorFrameworkFactory.newClient(args[0], TIMEOUT_MS, TIMEOUT_MS, new RetryNTimes(100, 100));
    client.start();
    client.blockUntilConnected(PATIENCE_S, TimeUnit.SECONDS);
    Values values = new Values(client, args[1], Integer.parseInt(args[2]));
    values.atomics();
    values.numbers();
    values.count();
    values.group();
    values.nodes();
    values.ttl();
    client.close();
  }

  /** Both add to one long and one integer, and append to the same bytes. */
  private void atomics() throws Exception {
    RetryNTimes retries = new RetryNTimes(1_000, 1);
    DistributedAtomicLong number = new DistributedAtomicLong(client, base + "/long", retries);
    DistributedAtomicInteger integer = new DistributedAtomicInteger(client, base + "/integer", retries);
    DistributedAtomicValue bytes = new DistributedAtomicValue(client, base + "/bytes", retries);
    meet("atomics", "");
    for (int changed = 0; changed < rounds; ) {
      changed += number.increment().succeeded() ? 1 : 0;
    }
    for (int changed = 0; changed < rounds; ) {
      changed += integer.subtract(3).succeeded() ? 1 : 0;
    }
    bytes.initialize(NOTHING);
    for (int changed = 0; changed < rounds / 10; ) {
      byte[] old = bytes.get().postValue();
      byte[] appended = Arrays.copyOf(old, old.length + OWN.length());
      System.arraycopy(OWN.getBytes(StandardCharsets.UTF_8), 0, appended, old.length, OWN.length());
      changed += bytes.compareAndSet(old, appended).succeeded() ? 1 : 0;
    }
    meet("counted", rounds + " 0 " + rounds + " 0 " + rounds / 10 + " 0");
    equal("long", number.get().postValue(), 2L * rounds);
    equal("integer", integer.get().postValue(), -6 * rounds);
    equal("bytes", bytes.get().postValue().length, 2 * (rounds / 10) * OWN.length());
    System.out.println(
        "java: long, integer and bytes are ["
            + number.get().postValue()
            + ", "
            + integer.get().postValue()
            + ", "
            + bytes.get().postValue().length
            + "]: the sum of all changes");
  }

  /** No number is handed out twice. */
  private void numbers() throws Exception {
    DistributedAtomicLong counter = new DistributedAtomicLong(client, base + "/numbers", new RetryNTimes(1_000, 1));
    CachedAtomicLong numbers = new CachedAtomicLong(counter, 7);
    TreeSet<Long> ours = new TreeSet<>();
    while (ours.size() < 1_000) {
      AtomicValue<Long> number = numbers.next();
      if (number.succeeded()) {
        ours.add(number.preValue());
      }
    }
    List<String> says = new ArrayList<>();
    ours.forEach(number -> says.add(String.valueOf(number)));
    for (String theirs : meet("numbers", String.join(" ", says)).split(" ")) {
      if (ours.contains(Long.valueOf(theirs))) {
        throw new IllegalStateException("both have taken the number " + theirs);
      }
    }
    System.out.println("java: " + ours.size() + " numbers, all different");
  }

  /** Both add to a shared count. */
  private void count() throws Exception {
    SharedCount count = new SharedCount(client, base + "/count", 0);
    count.start();
    for (int changed = 0; changed < rounds / 10; ) {
      VersionedValue<Integer> seen = count.getVersionedValue();
      changed += count.trySetCount(seen, seen.getValue() + 1) ? 1 : 0;
    }
    meet("count", rounds / 10 + " 0");
    await("the count is the sum", () -> count.getCount() == 2 * (rounds / 10));
    System.out.println("java: the count is " + count.getCount() + ", the sum of all changes");
    count.close();
  }

  /** Both are in one group, and see each other come, change and go. */
  private void group() throws Exception {
    GroupMember member = new GroupMember(client, base + "/group", OWN, new byte[] {'1'});
    member.start();
    await("the other member joins", () -> is(member, '1'));
    meet("joined", "");
    member.setThisData(new byte[] {'2'});
    await("its payload changes", () -> is(member, '2'));
    meet("changed", "");
    member.close();
    meet("left", "");
    System.out.println("java: saw rust join and change");
  }

  private static boolean is(GroupMember member, char payload) {
    Map<String, byte[]> members = member.getCurrentMembers();
    byte[] theirs = members.get(OTHER);
    return members.size() == 2 && theirs != null && theirs.length == 1 && theirs[0] == payload;
  }

  /** Each deletes the znode that the other keeps, which comes back. */
  private void nodes() throws Exception {
    PersistentNode node =
        new PersistentNode(
            client, CreateMode.EPHEMERAL, false, base + "/node-" + OWN, "kept".getBytes(StandardCharsets.UTF_8));
    node.start();
    node.waitForInitialCreate(PATIENCE_S, TimeUnit.SECONDS);
    meet("kept", "");
    String theirs = base + "/node-" + OTHER;
    long before = client.checkExists().forPath(theirs).getCzxid();
    client.delete().forPath(theirs);
    await(
        "its return",
        () -> {
          Stat stat = client.checkExists().forPath(theirs);
          return stat != null && stat.getCzxid() > before;
        });
    meet("back", "");
    node.close();
    System.out.println("java: the znode of rust came back");
  }

  /** Both keep one znode, which exists as long as one of them does so. */
  private void ttl() throws Exception {
    String path = base + "/ttl";
    PersistentTtlNode node = new PersistentTtlNode(client, path, 2_000, "ttl".getBytes(StandardCharsets.UTF_8));
    node.start();
    node.waitForInitialCreate(PATIENCE_S, TimeUnit.SECONDS);
    await("the touch", () -> client.checkExists().forPath(path + "/touch") != null);
    meet("ttl", "");
    node.close();
    meet("alone", "");
    meet("untouched", "");
    await("the end of the znode", () -> client.checkExists().forPath(path) == null);
    System.out.println("java: the znode lived as long as it was kept");
  }

  private static void equal(String what, Object found, Object expected) {
    if (!found.equals(expected)) {
      throw new IllegalStateException(what + " is " + found + ", not " + expected);
    }
  }

  /** Waits until the other program is at this place, too, and returns what it says there. */
  private String meet(String place, String says) throws Exception {
    String directory = base + "-" + place;
    client.create().creatingParentsIfNeeded().forPath(directory + "/" + OWN, says.getBytes(StandardCharsets.UTF_8));
    String theirs = directory + "/" + OTHER;
    await(OTHER + " at " + place, () -> client.checkExists().forPath(theirs) != null);
    return new String(client.getData().forPath(theirs), StandardCharsets.UTF_8);
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
