import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.apache.curator.framework.CuratorFramework;
import org.apache.zookeeper.data.Stat;

/** A contender that acquires the lock again and again and records the times. */
final class Contender extends Thread {
    /** For shorter waits than this it spins: sleeping is not that exact. */
    private static final long AWAKE_BELOW_NS = 100_000;
    /** The longest wait of the first holder until all contenders are in the queue. */
    private static final long QUEUE_LIMIT_NS = TimeUnit.SECONDS.toNanos(5);

    final int number;
    final CuratorFramework client;
    int count;
    /** An operation failed with an unknown outcome: the server may still have its znode. */
    boolean isBroken;
    private final Lock lock;
    private final Contest contest;
    private long[] times = new long[4096];
    private byte[] codes = new byte[4096];

    Contender(int number, CuratorFramework client, Lock lock, Contest contest) {
        this.number = number;
        this.client = client;
        this.lock = lock;
        this.contest = contest;
    }

    /** Adds its events. */
    void tell(List<String> lines) {
        for (int at = 0; at < count; at++) {
            lines.add(number + " " + times[at] + " " + (char) codes[at]);
        }
    }

    private void add(char code, long atNs) {
        if (count == times.length) {
            times = Arrays.copyOf(times, 2 * count);
            codes = Arrays.copyOf(codes, 2 * count);
        }
        codes[count] = (byte) code;
        times[count++] = atNs;
    }

    private void add(char code) {
        add(code, System.nanoTime());
    }

    @Override
    public void run() {
        try {
            contend();
        } finally {
            contest.done.countDown();
        }
        try {
            contest.end.await();
        } catch (InterruptedException e) {
            // Never interrupted; otherwise it would end a little earlier.
        }
    }

    private void contend() {
        contest.ready.countDown();
        try {
            contest.start.await();
            int turn = 0;
            for (int request = contest.take(); request >= 0; request = contest.take()) {
                long dueNs = contest.dueNs == null ? 0 : contest.startNs + contest.dueNs[request];
                pass(dueNs - System.nanoTime());
                long leftNs = contest.endNs - System.nanoTime();
                if (leftNs <= 0) {
                    return;
                }
                if (contest.dueNs != null) {
                    add('d', dueNs);
                }
                boolean toRead = isToRead(turn++);
                add(toRead ? 's' : 'a');
                if (!lock.acquire(toRead, Math.max(1, TimeUnit.NANOSECONDS.toMillis(leftNs)))) {
                    add('f');
                    return;
                }
                add('g');
                int grant = contest.count();
                if (contest.isFirst.compareAndSet(true, false)) {
                    awaitQueue();
                }
                pass(contest.holdNs);
                add('r');
                lock.release();
                add('R');
                contest.awaitAfter(grant);
            }
        } catch (Exception e) {
            isBroken = true;
            add('u');
            System.err.println("contender failed: " + e);
        }
    }

    /** Chooses readers evenly, and not always the same contenders, as in contest.rs. */
    private boolean isToRead(int turn) {
        return (number * 61 + turn * 37) % 100 < contest.readers;
    }

    /** Waits until all contenders are in the queue, before the first hand-over. */
    private void awaitQueue() {
        long endNs = Math.min(contest.endNs, System.nanoTime() + QUEUE_LIMIT_NS);
        try {
            while (contest.queue > 1 && System.nanoTime() < endNs) {
                Stat stat = client.checkExists().forPath(contest.path);
                if (stat != null && stat.getNumChildren() >= contest.queue) {
                    return;
                }
                LockSupport.parkNanos(1_000_000);
            }
        } catch (Exception e) {
            // This does not affect the lock; if the server is gone, the release will fail.
            System.err.println("cannot see the queue: " + e);
        }
    }

    private static void pass(long ns) {
        long endNs = System.nanoTime() + ns;
        for (long left = ns; left > 0; left = endNs - System.nanoTime()) {
            if (ns < AWAKE_BELOW_NS) {
                Thread.onSpinWait();
            } else {
                LockSupport.parkNanos(left);
            }
        }
    }
}
