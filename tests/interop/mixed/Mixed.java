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
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreMutex;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.retry.RetryNTimes;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.data.Stat;

/** Curator's contenders for a lock that others stand in the queue of: see tests/src/bin/contender.rs. */
public final class Mixed {
  private static final int TIMEOUT_MS = 4_000;
  private static final int PATIENCE_S = 180;
  private static final int LEASES = 3;

  private final CuratorFramework client;
  private final String ledger;
  private int violations;

  private Mixed(CuratorFramework client, String ledger) {
    this.client = client;
    this.ledger = ledger;
  }

  public static void main(String[] args) throws Exception {
    String connect = args[0];
    String kind = args[1];
    String path = args[2];
    int contenders = Integer.parseInt(args[3]);
    int rounds = Integer.parseInt(args[4]);
    ExecutorService threads = Executors.newFixedThreadPool(contenders);
    CountDownLatch connected = new CountDownLatch(contenders);
    List<Future<Integer>> results = new ArrayList<>();
    for (int number = 0; number < contenders; number++) {
      results.add(threads.submit(contender(connect, kind, path, number, rounds, connected)));
    }
    int violations = 0;
    for (Future<Integer> result : results) {
      violations += result.get(PATIENCE_S, TimeUnit.SECONDS);
    }
    threads.shutdown();
    System.out.println("curator: acquisitions=" + contenders * rounds + " violations=" + violations);
    System.exit(violations == 0 ? 0 : 1);
  }

  private static Callable<Integer> contender(
      String connect, String kind, String path, int number, int rounds, CountDownLatch connected) {
    return () -> {
      try (CuratorFramework client =
          CuratorFrameworkFactory.newClient(connect, TIMEOUT_MS, 10_000, new RetryNTimes(3, 100))) {
        client.start();
        client.blockUntilConnected();
        connected.countDown();
        connected.await();
        if (number == 0) {
          client.create().forPath(path + "-ready");
        }
        Mixed mixed = new Mixed(client, path + "-ledger");
        switch (kind) {
          case "mutex":
            mixed.mutex(path, rounds);
            break;
          case "semaphore-mutex":
            mixed.semaphoreMutex(path, rounds);
            break;
          case "semaphore":
            mixed.semaphore(path, rounds);
            break;
          default:
            mixed.readWrite(path, number, rounds);
        }
        return mixed.violations;
      }
    };
  }

  private void mutex(String path, int rounds) throws Exception {
    InterProcessMutex lock = new InterProcessMutex(client, path);
    for (int round = 0; round < rounds; round++) {
      lock.acquire();
      try {
        // The first participant is the holder.
        write(lock.getParticipantNodes().iterator().next());
      } finally {
        lock.release();
      }
    }
  }

  private void semaphoreMutex(String path, int rounds) throws Exception {
    InterProcessSemaphoreMutex lock = new InterProcessSemaphoreMutex(client, path);
    for (int round = 0; round < rounds; round++) {
      lock.acquire();
      try {
        // The next one may have its lease there already; the holder's is the older one.
        String oldest = null;
        for (String name : client.getChildren().forPath(path + "/leases")) {
          String digits = name.substring(name.length() - 10);
          if (oldest == null || digits.compareTo(oldest.substring(oldest.length() - 10)) < 0) {
            oldest = name;
          }
        }
        write(path + "/leases/" + oldest);
      } finally {
        lock.release();
      }
    }
  }

  private void semaphore(String path, int rounds) throws Exception {
    InterProcessSemaphoreV2 semaphore = new InterProcessSemaphoreV2(client, path, LEASES);
    String gauge = path + "-ready";
    for (int round = 0; round < rounds; round++) {
      Lease lease = semaphore.acquire();
      try {
        String mark = client.create().withMode(CreateMode.EPHEMERAL_SEQUENTIAL).forPath(gauge + "/");
        if (client.getChildren().forPath(gauge).size() > LEASES) {
          violations++;
        }
        client.delete().forPath(mark);
      } finally {
        semaphore.returnLease(lease);
      }
    }
  }

  private void readWrite(String path, int number, int rounds) throws Exception {
    InterProcessReadWriteLock lock = new InterProcessReadWriteLock(client, path);
    for (int round = 0; round < rounds; round++) {
      if ((round + number) % 4 == 0) {
        lock.writeLock().acquire();
        try {
          write(lock.writeLock().getParticipantNodes().iterator().next());
        } finally {
          lock.writeLock().release();
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

  private void write(String holder) throws Exception {
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
    } catch (KeeperException.BadVersionException shared) {
      violations++;
    }
    if (before >= token) {
      violations++;
    }
  }

  private void read() throws Exception {
    Stat before = new Stat();
    Stat after = new Stat();
    client.getData().storingStatIn(before).forPath(ledger);
    Thread.yield();
    client.getData().storingStatIn(after).forPath(ledger);
    if (before.getVersion() != after.getVersion()) {
      violations++;
    }
  }
}
