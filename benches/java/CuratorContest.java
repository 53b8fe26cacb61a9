import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.RetryOneTime;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.data.Stat;

/**
 * Contends for locks with Curator's InterProcessMutex, and tells what happened.
 *
 * <p>Arguments: HOST:PORT, the session timeout in milliseconds. Orders come on standard input, a
 * line each; times are those of System.nanoTime().
 *
 * <pre>
 * clock                                       clock AT_NS
 * contest PATH CONTENDERS HOLD_NS GRANTS LIMIT_MS ORDER   a history; with ORDER turn, who gave the
 *                                             lock back asks again when another has it; else again
 * cycle PATH COUNT LIMIT_MS                         the same of one contender that holds for 0
 * hold PATH LIMIT_MS                          held SESSION AT_NS (kept until the order release)
 * wait PATH LIMIT_MS                          asked SESSION AT_NS, then granted AT_NS or refused AT_NS
 * release                                     released AT_NS
 * </pre>
 *
 * <p>A history is a line "history N", a line "session I HEX" for each contender, N lines "I AT_NS
 * CODE" (a asked, g granted, r releasing, R released, f refused, u failed so that nobody can say
 * what the server did), and "end CPU_NS", the CPU time of this process from the start to the last
 * event, without the thread that only waits for it. An order that cannot be carried out is answered
 * with "error TEXT".
 *
 * <p>Contender I has a client and with it a session of its own, which it keeps from order to order.
 */
public final class CuratorContest {
    private static final int CONNECTION_TIMEOUT_MS = 10_000;
    /** How long clients may take to connect, all of them together. */
    private static final int CONNECT_LIMIT_MS = 30_000;
    /** Shorter holds than this are waited for awake: sleeping is not that exact. */
    private static final long AWAKE_BELOW_NS = 100_000;
    /** How long the first holder waits at most until everybody stands in the queue. */
    private static final long QUEUE_LIMIT_NS = TimeUnit.SECONDS.toNanos(5);

    /** How long sessions may take to end. */
    private static final long END_LIMIT_NS = TimeUnit.SECONDS.toNanos(1);

    private final String address;
    private final int sessionTimeoutMs;
    private final PrintStream answers;
    private final List<CuratorFramework> clients = new ArrayList<>();
    private InterProcessMutex held;

    private CuratorContest(String address, int sessionTimeoutMs, PrintStream answers) {
        this.address = address;
        this.sessionTimeoutMs = sessionTimeoutMs;
        this.answers = answers;
    }

    public static void main(String[] args) throws Exception {
        // Not flushed with every line: a history has many.
        PrintStream answers = new PrintStream(new FileOutputStream(FileDescriptor.out), false);
        CuratorContest contest = new CuratorContest(args[0], Integer.parseInt(args[1]), answers);
        BufferedReader orders = new BufferedReader(new InputStreamReader(System.in));
        for (String line = orders.readLine(); line != null; line = orders.readLine()) {
            try {
                contest.obey(line.split(" "));
            } catch (Exception e) {
                contest.answer("error " + e.toString().replace('\n', ' '));
            }
        }
        // No more orders.
        contest.endSessions();
        System.exit(0);
    }

    private void obey(String[] order) throws Exception {
        switch (order[0]) {
            case "clock" -> answer("clock " + System.nanoTime());
            case "contest" -> contest(order[1], Integer.parseInt(order[2]), Long.parseLong(order[3]),
                    Integer.parseInt(order[4]), Long.parseLong(order[5]), order[6].equals("turn"));
            case "cycle" ->
                contest(order[1], 1, 0, Integer.parseInt(order[2]), Long.parseLong(order[3]), false);
            case "hold" -> hold(order[1], Long.parseLong(order[2]));
            case "wait" -> await(order[1], Long.parseLong(order[2]));
            case "release" -> release();
            default -> throw new IllegalArgumentException("no order is called " + order[0]);
        }
    }

    private synchronized void answer(String line) {
        answers.println(line);
        answers.flush();
    }

    /** Sees to it that so many clients are connected. */
    private void connect(int count) throws Exception {
        while (clients.size() < count) {
            CuratorFramework client = CuratorFrameworkFactory.newClient(address, sessionTimeoutMs,
                    CONNECTION_TIMEOUT_MS, new RetryOneTime(100));
            clients.add(client);
            client.start();
        }
        long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(CONNECT_LIMIT_MS);
        for (CuratorFramework client : clients.subList(0, count)) {
            int leftMs = (int) Math.max(1, TimeUnit.NANOSECONDS.toMillis(end - System.nanoTime()));
            if (!client.blockUntilConnected(leftMs, TimeUnit.MILLISECONDS)) {
                throw new IllegalStateException(
                        "client not connected to " + address + " within " + CONNECT_LIMIT_MS + " ms");
            }
        }
    }

    /**
     * Ends sessions now and not with their timeout. A client that is closed goes on to sleep for 100
     * ms under a lock that all clients share, and which the others need to say that they close. So
     * all are closed at once, and of more than a hundred one or two may be left to their timeout.
     */
    private void endSessions() throws InterruptedException {
        List<ZooKeeper> open = new ArrayList<>();
        for (CuratorFramework client : clients) {
            try {
                open.add(client.getZookeeperClient().getZooKeeper());
            } catch (Exception e) {
                // Without a connection the session cannot be ended.
                continue;
            }
            new Thread(client::close).start();
        }
        long endNs = System.nanoTime() + END_LIMIT_NS;
        while (open.stream().anyMatch(one -> one.getState().isAlive()) && System.nanoTime() < endNs) {
            Thread.sleep(1);
        }
    }

    private String session(int index) throws Exception {
        return Long.toHexString(clients.get(index).getZookeeperClient().getZooKeeper().getSessionId());
    }

    /** How often one who waits for another's grant looks whether any can come. */
    private static final long LOOK_MS = 20;

    /** What is shared by the contenders of one contest. */
    private static final class Field {
        final String path;
        final long holdNs;
        final long limitNs;
        /** How many stand behind the first holder before it lets go. */
        final int queue;
        /** Who takes one of these may ask; so there are exactly as many grants. */
        final AtomicInteger tickets;
        /** Whether who gave the lock back asks again only when another has it. */
        final boolean inTurn;
        private int granted;
        final AtomicBoolean isFirst = new AtomicBoolean(true);
        final CountDownLatch ready;
        final CountDownLatch start = new CountDownLatch(1);
        final CountDownLatch done;
        /** Contenders stay until their CPU time has been read: it goes with them. */
        final CountDownLatch end = new CountDownLatch(1);
        volatile long endNs;

        Field(String path, int contenders, long holdNs, int grants, long limitMs, boolean inTurn) {
            this.inTurn = inTurn;
            this.path = path;
            this.holdNs = holdNs;
            this.limitNs = TimeUnit.MILLISECONDS.toNanos(limitMs);
            this.queue = Math.min(contenders, grants);
            this.tickets = new AtomicInteger(grants);
            this.ready = new CountDownLatch(contenders);
            this.done = new CountDownLatch(contenders);
        }

        /** Counts a grant, and returns which it is. */
        synchronized int count() {
            notifyAll();
            return ++granted;
        }

        /** Waits until there was a grant after this one, or none can come any more. */
        synchronized void awaitAfter(int grant) throws InterruptedException {
            while (granted <= grant && tickets.get() > 0 && System.nanoTime() < endNs) {
                wait(LOOK_MS);
            }
        }
    }

    private void contest(
            String path, int contenders, long holdNs, int grants, long limitMs, boolean inTurn) throws Exception {
        connect(contenders);
        Field field = new Field(path, contenders, holdNs, grants, limitMs, inTurn);
        List<Contender> all = new ArrayList<>();
        String[] sessions = new String[contenders];
        for (int i = 0; i < contenders; i++) {
            sessions[i] = session(i);
            all.add(new Contender(clients.get(i), field));
        }
        all.forEach(Contender::start);
        field.ready.await();
        long cpu = cpuNs();
        field.endNs = System.nanoTime() + field.limitNs;
        field.start.countDown();
        field.done.await();
        cpu = cpuNs() - cpu;
        field.end.countDown();
        for (Contender one : all) {
            one.join();
        }
        for (int i = 0; i < contenders; i++) {
            if (!sessions[i].equals(session(i))) {
                throw new IllegalStateException("session 0x" + sessions[i] + " ended in the contest");
            }
        }
        tell(sessions, all, cpu);
        for (int i = contenders - 1; i >= 0; i--) {
            // What its session may have left behind goes with it.
            if (all.get(i).isBroken) {
                clients.remove(i).close();
            }
        }
    }

    private synchronized void tell(String[] sessions, List<Contender> all, long cpu) {
        answers.println("history " + all.stream().mapToInt(one -> one.count).sum());
        for (int i = 0; i < sessions.length; i++) {
            answers.println("session " + i + " " + sessions[i]);
        }
        for (int i = 0; i < all.size(); i++) {
            Contender one = all.get(i);
            for (int at = 0; at < one.count; at++) {
                answers.println(i + " " + one.times[at] + " " + (char) one.codes[at]);
            }
        }
        answer("end " + cpu);
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

    /** One who takes the lock again and again, and writes down when. */
    private static final class Contender extends Thread {
        final CuratorFramework client;
        final Field field;
        long[] times = new long[4096];
        byte[] codes = new byte[4096];
        int count;
        /** An operation failed: nobody can say what the server still has of it. */
        boolean isBroken;

        Contender(CuratorFramework client, Field field) {
            this.client = client;
            this.field = field;
        }

        private void add(char code) {
            if (count == times.length) {
                times = Arrays.copyOf(times, 2 * count);
                codes = Arrays.copyOf(codes, 2 * count);
            }
            codes[count] = (byte) code;
            times[count++] = System.nanoTime();
        }

        @Override
        public void run() {
            try {
                contend();
            } finally {
                field.done.countDown();
            }
            try {
                field.end.await();
            } catch (InterruptedException e) {
                // Nobody interrupts it; it would end a little earlier.
            }
        }

        private void contend() {
            InterProcessMutex lock = new InterProcessMutex(client, field.path);
            field.ready.countDown();
            try {
                field.start.await();
                while (field.tickets.getAndDecrement() > 0) {
                    long leftNs = field.endNs - System.nanoTime();
                    if (leftNs <= 0) {
                        return;
                    }
                    add('a');
                    if (!lock.acquire(Math.max(1, TimeUnit.NANOSECONDS.toMillis(leftNs)), TimeUnit.MILLISECONDS)) {
                        add('f');
                        return;
                    }
                    add('g');
                    int grant = field.count();
                    if (field.isFirst.compareAndSet(true, false)) {
                        awaitQueue();
                    }
                    pass(field.holdNs);
                    add('r');
                    lock.release();
                    add('R');
                    if (field.inTurn) {
                        field.awaitAfter(grant);
                    }
                }
            } catch (Exception e) {
                isBroken = true;
                add('u');
                System.err.println("contender failed: " + e);
            }
        }

        /** Everybody is to wait before the lock goes from hand to hand. */
        private void awaitQueue() {
            long endNs = Math.min(field.endNs, System.nanoTime() + QUEUE_LIMIT_NS);
            try {
                while (field.queue > 1 && System.nanoTime() < endNs) {
                    Stat stat = client.checkExists().forPath(field.path);
                    if (stat != null && stat.getNumChildren() >= field.queue) {
                        return;
                    }
                    LockSupport.parkNanos(1_000_000);
                }
            } catch (Exception e) {
                // Nothing has become of the lock by it; if the server is gone, the release will say so.
                System.err.println("cannot see the queue: " + e);
            }
        }
    }

    private static void pass(long holdNs) {
        if (holdNs == 0) {
            return;
        }
        long endNs = System.nanoTime() + holdNs;
        for (long left = holdNs; left > 0; left = endNs - System.nanoTime()) {
            if (holdNs < AWAKE_BELOW_NS) {
                Thread.onSpinWait();
            } else {
                LockSupport.parkNanos(left);
            }
        }
    }

    /** Curator's locks belong to threads: this one and release() are called in the same. */
    private void hold(String path, long limitMs) throws Exception {
        if (held != null) {
            throw new IllegalStateException("a lock is held already");
        }
        connect(1);
        InterProcessMutex lock = new InterProcessMutex(clients.get(0), path);
        if (!lock.acquire(limitMs, TimeUnit.MILLISECONDS)) {
            throw new IllegalStateException("lock " + path + " not got within " + limitMs + " ms");
        }
        long atNs = System.nanoTime();
        held = lock;
        answer("held " + session(0) + " " + atNs);
    }

    private void release() throws Exception {
        if (held == null) {
            throw new IllegalStateException("no lock is held");
        }
        held.release();
        held = null;
        answer("released " + System.nanoTime());
    }

    /** In a thread of its own, so that the holder can be told to release meanwhile. */
    private void await(String path, long limitMs) throws Exception {
        connect(2);
        CuratorFramework client = clients.get(1);
        answer("asked " + session(1) + " " + System.nanoTime());
        new Thread(() -> {
            try {
                InterProcessMutex lock = new InterProcessMutex(client, path);
                boolean isHeld = lock.acquire(limitMs, TimeUnit.MILLISECONDS);
                long atNs = System.nanoTime();
                if (isHeld) {
                    lock.release();
                }
                answer((isHeld ? "granted " : "refused ") + atNs);
            } catch (Exception e) {
                answer("error " + e.toString().replace('\n', ' '));
            }
        }).start();
    }
}
