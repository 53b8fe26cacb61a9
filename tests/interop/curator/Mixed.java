import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessMultiLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreMutex;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.retry.RetryNTimes;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.data.Stat;

/** Curator's contenders, in one queue with those of tests/src/bin/partner/contenders. */
public final class Mixed {
  private static final int TIMEOUT_MS = 4_000;
  private static final int WARM_ROUNDS = 20;
  private static final int LEASES = 3;
  /** Before Curator 5.5 the next writer does not wait for a reader that has downgraded. */
  private static final boolean DOWNGRADES = Boolean.getBoolean("mixed.downgrades");
  private static final String[] MEMBERS = {"a", "b", "c"};

  private final CuratorFramework client;
  private final String path;
  private final int number;
  private final int rounds;
  private int violations;
  private int writes;
  private int marks;

  private Mixed(CuratorFramework client, String path, int number, int rounds) {
    this.client = client;
    this.path = path;
    this.number = number;
    this.rounds = rounds;
  }

  /** A mutex that exposes the path of its znode. */
  private static final class OwnMutex extends InterProcessMutex {
    OwnMutex(CuratorFramework client, String path) {
      super(client, path);
    }

    String ownPath() {
      return getLockPath();
    }
  }

  public static void main(String[] args) throws Exception {
    String connect = args[0];
    String kind = args[1];
    String path = args[2];
    int contenders = Integer.parseInt(args[3]);
    int rounds = Integer.parseInt(args[4]);
    int patience = Integer.parseInt(args[5]);
    ExecutorService threads = Executors.newFixedThreadPool(contenders);
    CountDownLatch connected = new CountDownLatch(contenders);
    List<Future<Mixed>> results = new ArrayList<>();
    for (int number = 0; number < contenders; number++) {
      results.add(threads.submit(contender(connect, kind, path, number, rounds, connected)));
    }
    int violations = 0;
    int writes = 0;
    int marks = 0;
    for (Future<Mixed> result : results) {
      Mixed done = result.get(patience, TimeUnit.SECONDS);
      violations += done.violations;
      writes += done.writes;
      marks += done.marks;
    }
    threads.shutdown();
    System.out.println("curator: acquisitions=" + contenders * rounds + " writes=" + writes + " marks=" + marks
        + " violations=" + violations);
    System.exit(violations == 0 ? 0 : 1);
  }

  private static Callable<Mixed> contender(
      String connect, String kind, String path, int number, int rounds, CountDownLatch connected) {
    return () -> {
      try (CuratorFramework client =
          CuratorFrameworkFactory.newClient(connect, TIMEOUT_MS, 10_000, new RetryNTimes(3, 100))) {
        client.start();
        client.blockUntilConnected();
        // The first calls in a JVM are so slow that the other contenders would finish first.
        Mixed warm = new Mixed(client, path + "-warm-" + number, 0, WARM_ROUNDS);
        warm.prepare();
        warm.run(kind);
        connected.countDown();
        connected.await();
        if (number == 0) {
          client.create().forPath(path + "-ready");
        }
        Mixed mixed = new Mixed(client, path, number, rounds);
        mixed.run(kind);
        return mixed;
      }
    };
  }

  private void prepare() throws Exception {
    byte[] empty = "0 0 - 0".getBytes(StandardCharsets.UTF_8);
    client.create().forPath(path + "-ledger", empty);
    for (String member : MEMBERS) {
      client.create().forPath(path + "-ledger" + member, empty);
    }
    client.create().forPath(path + "-gauge");
  }

  private void run(String kind) throws Exception {
    switch (kind) {
      case "mutex":
        mutex();
        break;
      case "semaphore-mutex":
        semaphoreMutex();
        break;
      case "semaphore":
        semaphore();
        break;
      case "multi-lock":
        multiLock();
        break;
      case "leader-latch":
        leaderLatch();
        break;
      case "read-write":
        readWrite();
        break;
      default:
        throw new IllegalArgumentException("unknown kind: " + kind);
    }
  }

  private void mutex() throws Exception {
    OwnMutex lock = new OwnMutex(client, path);
    for (int round = 0; round < rounds; round++) {
      lock.acquire();
      try {
        write(lock.ownPath(), "");
      } finally {
        lock.release();
      }
    }
  }

  private void multiLock() throws Exception {
    List<OwnMutex> members = new ArrayList<>();
    for (String member : MEMBERS) {
      members.add(new OwnMutex(client, path + "/" + member));
    }
    InterProcessMultiLock all = new InterProcessMultiLock(new ArrayList<InterProcessLock>(members));
    for (int round = 0; round < rounds; round++) {
      if (number % 4 == 3) {
        int at = round % MEMBERS.length;
        members.get(at).acquire();
        try {
          write(members.get(at).ownPath(), MEMBERS[at]);
        } finally {
          members.get(at).release();
        }
      } else {
        all.acquire();
        try {
          for (int at = 0; at < MEMBERS.length; at++) {
            write(members.get(at).ownPath(), MEMBERS[at]);
          }
        } finally {
          all.release();
        }
      }
    }
  }

  private void leaderLatch() throws Exception {
    for (int round = 0; round < rounds; round++) {
      try (LeaderLatch latch = new LeaderLatch(client, path, "java-" + number)) {
        latch.start();
        latch.await();
        write(latch.getOurPath(), "");
      }
    }
  }

  private void semaphoreMutex() throws Exception {
    InterProcessSemaphoreMutex lock = new InterProcessSemaphoreMutex(client, path);
    for (int round = 0; round < rounds; round++) {
      lock.acquire();
      try {
        // The next contender may have a lease already; the holder has the older one.
        String oldest = null;
        for (String name : client.getChildren().forPath(path + "/leases")) {
          String digits = name.substring(name.length() - 10);
          if (oldest == null || digits.compareTo(oldest.substring(oldest.length() - 10)) < 0) {
            oldest = name;
          }
        }
        write(path + "/leases/" + oldest, "");
      } finally {
        lock.release();
      }
    }
  }

  private void semaphore() throws Exception {
    InterProcessSemaphoreV2 semaphore = new InterProcessSemaphoreV2(client, path, LEASES);
    for (int round = 0; round < rounds; round++) {
      Lease lease = semaphore.acquire();
      try {
        mark();
        if (client.getChildren().forPath(path + "-gauge").size() > LEASES) {
          violations++;
        }
        unmark();
      } finally {
        semaphore.returnLease(lease);
      }
    }
  }

  private void readWrite() throws Exception {
    InterProcessReadWriteLock lock = new InterProcessReadWriteLock(client, path);
    for (int round = 0; round < rounds; round++) {
      if ((round + number) % 4 == 0) {
        boolean isReader = false;
        lock.writeLock().acquire();
        try {
          // The first participant is the holder.
          write(lock.writeLock().getParticipantNodes().iterator().next(), "");
          if (DOWNGRADES && round % 8 == 0) {
            lock.readLock().acquire();
            isReader = true;
          }
        } finally {
          lock.writeLock().release();
        }
        if (isReader) {
          try {
            read();
          } finally {
            lock.readLock().release();
          }
        }
      } else {
        lock.readLock().acquire();
        try {
          read();
        } finally {
          lock.readLock().release();
        }
      }
    }
  }

  private void write(String holder, String member) throws Exception {
    String ledger = path + "-ledger" + member;
    long token = client.checkExists().forPath(holder).getCzxid();
    Stat stat = new Stat();
    byte[] data = client.getData().storingStatIn(stat).forPath(ledger);
    String[] words = new String(data, StandardCharsets.UTF_8).split(" ");
    long before = Long.parseLong(words[0]);
    long count = Long.parseLong(words[1]) + 1;
    long switches = Long.parseLong(words[3]) + (words[2].equals("java") ? 0 : 1);
    byte[] entry = (token + " " + count + " java " + switches).getBytes(StandardCharsets.UTF_8);
    try {
      client.setData().withVersion(stat.getVersion()).forPath(ledger, entry);
      writes++;
    } catch (KeeperException.BadVersionException shared) {
      violations++;
    }
    if (before >= token) {
      violations++;
    }
  }

  private void read() throws Exception {
    String ledger = path + "-ledger";
    Stat before = new Stat();
    Stat after = new Stat();
    mark();
    client.getData().storingStatIn(before).forPath(ledger);
    Thread.yield();
    client.getData().storingStatIn(after).forPath(ledger);
    unmark();
    if (before.getVersion() != after.getVersion()) {
      violations++;
    }
  }

  private void mark() throws Exception {
    client.create().withMode(CreateMode.EPHEMERAL).forPath(path + "-gauge/java-" + number);
    marks++;
  }

  private void unmark() throws Exception {
    client.delete().forPath(path + "-gauge/java-" + number);
  }
}
