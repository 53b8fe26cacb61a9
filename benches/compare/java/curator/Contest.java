import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.curator.framework.CuratorFramework;

/**
 * Contenders that acquire one lock again and again, and their shared state.
 *
 * <p>Options: path=P, contenders=N, hold_ns=N, grants=N (exactly this number, unless the limit passes
 * first), limit_ms=N; order=turn: a contender asks again only when another one has the lock;
 * readers=N: a read-write lock, N of 100 requests are to read; leases=N: a semaphore; due_ns=N,N,...:
 * an open loop, in which a free contender asks when a request is due, at these times after the start.
 */
final class Contest {
    /** How often a contender that waits for another's grant checks whether one can still come. */
    private static final long CHECK_MS = 20;

    final String path;
    final long holdNs;
    final long limitNs;
    /** Of 100 requests. */
    final int readers;
    /** The due times of requests after the start; null in a closed loop. */
    final long[] dueNs;
    /** The queue for which the first holder waits before it releases; 0: it does not wait. */
    final int queue;
    final AtomicBoolean isFirst = new AtomicBoolean(true);
    final CountDownLatch ready;
    final CountDownLatch start = new CountDownLatch(1);
    final CountDownLatch done;
    /** Contenders stay until their CPU time has been read, which is lost when they end. */
    final CountDownLatch end = new CountDownLatch(1);
    volatile long startNs;
    volatile long endNs;
    private final int grants;
    /** A contender takes one of these before it asks, which limits the number of grants. */
    private final AtomicInteger tickets = new AtomicInteger();
    /** Whether a contender asks again only when another one has the lock. */
    private final boolean inTurn;
    private int granted;

    private Contest(Map<String, String> options) {
        int contenders = Integer.parseInt(options.get("contenders"));
        String due = options.get("due_ns");
        path = options.get("path");
        holdNs = Long.parseLong(options.get("hold_ns"));
        limitNs = TimeUnit.MILLISECONDS.toNanos(Long.parseLong(options.get("limit_ms")));
        readers = Integer.parseInt(options.getOrDefault("readers", "0"));
        dueNs = due == null ? null : Arrays.stream(due.split(",")).mapToLong(Long::parseLong).toArray();
        grants = due == null ? Integer.parseInt(options.get("grants")) : dueNs.length;
        inTurn = "turn".equals(options.get("order"));
        boolean queues = due == null && !options.containsKey("readers") && !options.containsKey("leases");
        queue = queues ? Math.min(contenders, grants) : 0;
        ready = new CountDownLatch(contenders);
        done = new CountDownLatch(contenders);
    }

    /** Runs a contest; returns the history, line by line. */
    static List<String> run(Clients clients, Map<String, String> options) throws Exception {
        Contest contest = new Contest(options);
        List<Contender> all = new ArrayList<>();
        List<String> sessions = new ArrayList<>();
        for (CuratorFramework client : clients.connect(Integer.parseInt(options.get("contenders")))) {
            sessions.add(Clients.session(client));
            all.add(new Contender(all.size(), client, Lock.of(client, options), contest));
        }
        all.forEach(Contender::start);
        contest.ready.await();
        long cpu = cpuNs();
        contest.startNs = System.nanoTime();
        contest.endNs = contest.startNs + contest.limitNs;
        contest.start.countDown();
        contest.done.await();
        cpu = cpuNs() - cpu;
        contest.end.countDown();
        for (Contender one : all) {
            one.join();
        }
        List<String> lines = new ArrayList<>();
        lines.add("history " + all.stream().mapToInt(one -> one.count).sum());
        for (Contender one : all) {
            String session = sessions.get(one.number);
            if (!session.equals(Clients.session(one.client))) {
                throw new IllegalStateException("session 0x" + session + " ended in the contest");
            }
            lines.add("session " + one.number + " " + session);
        }
        all.forEach(one -> one.tell(lines));
        lines.add("end " + cpu);
        // Ending the session removes the znodes it may have left.
        all.stream().filter(one -> one.isBroken).forEach(one -> clients.replace(one.client));
        return lines;
    }

    /** Takes the next request, counted from 0; -1 if there is none. */
    int take() {
        int request = tickets.getAndIncrement();
        return request < grants ? request : -1;
    }

    /** Counts a grant and returns its number. */
    synchronized int count() {
        notifyAll();
        return ++granted;
    }

    /** In turn: waits until another grant follows this one, or none can come any more. */
    synchronized void awaitAfter(int grant) throws InterruptedException {
        while (inTurn && granted <= grant && tickets.get() < grants && System.nanoTime() < endNs) {
            wait(CHECK_MS);
        }
    }

    /**
     * The CPU time of all threads except the calling one, which only reads it. Java's own figure is
     * in hundredths of a second.
     */
    private static long cpuNs() throws IOException {
        Path own = Files.readSymbolicLink(Path.of("/proc/thread-self")).getFileName();
        long sum = 0;
        try (DirectoryStream<Path> tasks = Files.newDirectoryStream(Path.of("/proc/self/task"))) {
            for (Path task : tasks) {
                if (task.getFileName().equals(own)) {
                    continue;
                }
                try {
                    sum += Long.parseLong(Files.readString(task.resolve("schedstat")).split(" ")[0]);
                } catch (IOException e) {
                    // The thread has ended since it was listed.
                }
            }
        }
        return sum;
    }
}
