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
 * So many contenders who want one lock, again and again, and what they share.
 *
 * <p>Options: path=P, contenders=N, hold_ns=N, grants=N (there are exactly as many, unless the limit
 * passes first), limit_ms=N; order=turn: who gave the lock back asks again when another has it;
 * readers=N: a read-write lock, of 100 asks N to read; leases=N: a semaphore; due_ns=N,N,...: an open
 * loop, in which a contender that is free asks when an ask is due, so long after the start.
 */
final class Contest {
    /** How often one who waits for another's grant looks whether any can come. */
    private static final long LOOK_MS = 20;

    final String path;
    final long holdNs;
    final long limitNs;
    /** Of 100 asks. */
    final int readers;
    /** When asks are due after the start; null in a closed loop. */
    final long[] dueNs;
    /** How many stand behind the first holder before it lets go; 0: it does not wait. */
    final int queue;
    final AtomicBoolean isFirst = new AtomicBoolean(true);
    final CountDownLatch ready;
    final CountDownLatch start = new CountDownLatch(1);
    final CountDownLatch done;
    /** Contenders stay until their CPU time has been read: it goes with them. */
    final CountDownLatch end = new CountDownLatch(1);
    volatile long startNs;
    volatile long endNs;
    private final int grants;
    /** Who takes one of these may ask; so there are exactly as many grants. */
    private final AtomicInteger tickets = new AtomicInteger();
    /** Whether who gave the lock back asks again only when another has it. */
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

    /** The history, line by line. */
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
        // What its session may have left behind goes with it.
        all.stream().filter(one -> one.isBroken).forEach(one -> clients.replace(one.client));
        return lines;
    }

    /** Which ask comes next, counted from 0; -1 if none does. */
    int take() {
        int ask = tickets.getAndIncrement();
        return ask < grants ? ask : -1;
    }

    /** Counts a grant, and returns which it is. */
    synchronized int count() {
        notifyAll();
        return ++granted;
    }

    /** Where they take turns: waits until there was a grant after this one, or none can come any more. */
    synchronized void awaitAfter(int grant) throws InterruptedException {
        while (inTurn && granted <= grant && tickets.get() < grants && System.nanoTime() < endNs) {
            wait(LOOK_MS);
        }
    }

    /**
     * The CPU time of all threads but the calling one, which does nothing but read it. Java's own
     * figure is one of hundredths of a second.
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
                    // It has ended since it was listed.
                }
            }
        }
        return sum;
    }
}
