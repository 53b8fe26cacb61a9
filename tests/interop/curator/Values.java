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

/** Curator's atomic values, SharedCount, GroupMember and persistent nodes, beside ours in tests/src/bin/partner/values.rs, which does the same. */
public final class Values {
  private static final int TIMEOUT_MS = 4_000;
  private static final byte[] NOTHING = {};

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
    client.blockUntilConnected(Pair.PATIENCE_S, TimeUnit.SECONDS);
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
    Pair.meet(client, base, "atomics", "");
    for (int changed = 0; changed < rounds; ) {
      changed += number.increment().succeeded() ? 1 : 0;
    }
    for (int changed = 0; changed < rounds; ) {
      changed += integer.subtract(3).succeeded() ? 1 : 0;
    }
    bytes.initialize(NOTHING);
    for (int changed = 0; changed < rounds / 10; ) {
      byte[] old = bytes.get().postValue();
      byte[] appended = Arrays.copyOf(old, old.length + Pair.OWN.length());
      System.arraycopy(Pair.OWN.getBytes(StandardCharsets.UTF_8), 0, appended, old.length, Pair.OWN.length());
      changed += bytes.compareAndSet(old, appended).succeeded() ? 1 : 0;
    }
    Pair.meet(client, base, "counted", rounds + " 0 " + rounds + " 0 " + rounds / 10 + " 0");
    equal("long", number.get().postValue(), 2L * rounds);
    equal("integer", integer.get().postValue(), -6 * rounds);
    equal("bytes", bytes.get().postValue().length, 2 * (rounds / 10) * Pair.OWN.length());
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
    for (String theirs : Pair.meet(client, base, "numbers", String.join(" ", says)).split(" ")) {
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
    Pair.meet(client, base, "count", rounds / 10 + " 0");
    Pair.await("the count is the sum", () -> count.getCount() == 2 * (rounds / 10));
    System.out.println("java: the count is " + count.getCount() + ", the sum of all changes");
    count.close();
  }

  /** Both are in one group, and see each other come, change and go. */
  private void group() throws Exception {
    GroupMember member = new GroupMember(client, base + "/group", Pair.OWN, new byte[] {'1'});
    member.start();
    Pair.await("the other member joins", () -> is(member, '1'));
    Pair.meet(client, base, "joined", "");
    member.setThisData(new byte[] {'2'});
    Pair.await("its payload changes", () -> is(member, '2'));
    Pair.meet(client, base, "changed", "");
    member.close();
    Pair.meet(client, base, "left", "");
    System.out.println("java: saw rust join and change");
  }

  private static boolean is(GroupMember member, char payload) {
    Map<String, byte[]> members = member.getCurrentMembers();
    byte[] theirs = members.get(Pair.OTHER);
    return members.size() == 2 && theirs != null && theirs.length == 1 && theirs[0] == payload;
  }

  /** Each deletes the znode that the other keeps, which comes back. */
  private void nodes() throws Exception {
    PersistentNode node =
        new PersistentNode(
            client, CreateMode.EPHEMERAL, false, base + "/node-" + Pair.OWN, "kept".getBytes(StandardCharsets.UTF_8));
    node.start();
    node.waitForInitialCreate(Pair.PATIENCE_S, TimeUnit.SECONDS);
    Pair.meet(client, base, "kept", "");
    String theirs = base + "/node-" + Pair.OTHER;
    long before = client.checkExists().forPath(theirs).getCzxid();
    client.delete().forPath(theirs);
    Pair.await(
        "its return",
        () -> {
          Stat stat = client.checkExists().forPath(theirs);
          return stat != null && stat.getCzxid() > before;
        });
    Pair.meet(client, base, "back", "");
    node.close();
    System.out.println("java: the znode of rust came back");
  }

  /** Both keep one znode, which exists as long as one of them does so. */
  private void ttl() throws Exception {
    String path = base + "/ttl";
    PersistentTtlNode node = new PersistentTtlNode(client, path, 2_000, "ttl".getBytes(StandardCharsets.UTF_8));
    node.start();
    node.waitForInitialCreate(Pair.PATIENCE_S, TimeUnit.SECONDS);
    Pair.await("the touch", () -> client.checkExists().forPath(path + "/touch") != null);
    Pair.meet(client, base, "ttl", "");
    node.close();
    Pair.meet(client, base, "alone", "");
    Pair.meet(client, base, "untouched", "");
    Pair.await("the end of the znode", () -> client.checkExists().forPath(path) == null);
    System.out.println("java: the znode lived as long as it was kept");
  }

  private static void equal(String what, Object found, Object expected) {
    if (!found.equals(expected)) {
      throw new IllegalStateException(what + " is " + found + ", not " + expected);
    }
  }
}
