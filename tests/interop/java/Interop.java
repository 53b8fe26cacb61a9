import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.Callable;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.retry.RetryNTimes;

/** Curator's lock recipes against the server at the address given as the only argument. */
public final class Interop {
    /** More than the maximum of any server in these tests. */
    static final int SESSION_TIMEOUT_MS = 10_000;

    /** Short enough to wait for, long enough not to expire by accident on a busy machine. */
    static final int VICTIM_TIMEOUT_MS = 1_000;

    /** How much later than its deadline a session may expire: a tick, and the delays of a busy machine. */
    static final int EXPIRY_SLACK_MS = 3_000;

    static final int CONNECT_SECONDS = 20;

    /** The time limit of an acquisition that must fail. */
    static final int REFUSED_MS = 300;

    /** Leaves out every lock, to show that the checks notice. */
    static final boolean PLANT_NOLOCK = "nolock".equals(System.getenv("INTEROP_PLANT"));

    /** Lets the victims close their sessions, to show that the checks of killed holders notice. */
    static final boolean PLANT_GOODBYE = "goodbye".equals(System.getenv("INTEROP_PLANT"));

    private static int passed;
    private static int failed;
    private static String address;

    public static void main(String[] args) {
        address = args[0];
        check("connection", Interop::connection);
        if (failed > 0) {
            // Every other check would fail after the same wait.
            System.out.printf("java: %d passed, %d failed%n", passed, failed);
            System.exit(1);
        }
        check("InterProcessMutex", Interop::mutex);
        check("InterProcessMutex re-entered", Interop::mutexReentered);
        check("InterProcessSemaphoreV2 of 1", () -> semaphore(1));
        check("InterProcessSemaphoreV2 of 3", () -> semaphore(3));
        check("InterProcessSemaphoreV2 full", Interop::semaphoreFull);
        check("InterProcessReadWriteLock", Interop::readWriteLock);
        check("InterProcessReadWriteLock write only", Interop::writeLock);
        check("InterProcessReadWriteLock readers share", Interop::readersShare);
        check("LeaderLatch", Interop::leaderLatch);
        check("LeaderLatch successive closings", Interop::leaderLatchClosings);
        check("holder killed, socket cut", () -> killedHolder(VanishingLink::cut));
        check("holder killed, link frozen", () -> killedHolder(VanishingLink::freeze));
        System.out.printf("java: %d passed, %d failed%n", passed, failed);
        // Clients of cut links have threads that try to reconnect; the program does not wait for them.
        System.exit(failed == 0 ? 0 : 1);
    }

    private static String connection() throws Exception {
        try (CuratorFramework client = connect(address, SESSION_TIMEOUT_MS)) {
            int timeoutMs = client.getZookeeperClient().getZooKeeper().getSessionTimeout();
            return String.format("requested a session of %d ms, granted %d ms", SESSION_TIMEOUT_MS, timeoutMs);
        }
    }

    private static String mutex() throws Exception {
        String path = freshPath();
        try (Contest contest = new Contest(address)) {
            return summary(contest.run(1, (client, index) -> {
                InterProcessMutex mutex = new InterProcessMutex(client, path);
                return guard(() -> acquired(mutex.acquire(Contest.WAIT_SECONDS, TimeUnit.SECONDS), "the mutex"),
                        mutex::release);
            }));
        }
    }

    private static String mutexReentered() throws Exception {
        String path = freshPath();
        try (CuratorFramework one = connect(address, SESSION_TIMEOUT_MS);
                CuratorFramework two = connect(address, SESSION_TIMEOUT_MS)) {
            InterProcessMutex mine = new InterProcessMutex(one, path);
            InterProcessMutex other = new InterProcessMutex(two, path);
            acquired(mine.acquire(Contest.WAIT_SECONDS, TimeUnit.SECONDS), "the mutex");
            acquired(mine.acquire(Contest.WAIT_SECONDS, TimeUnit.SECONDS), "the mutex again");
            int nodes = two.getChildren().forPath(path).size();
            require(nodes == 1, "%d lock nodes for one holder", nodes);
            mine.release();
            require(!other.acquire(REFUSED_MS, TimeUnit.MILLISECONDS), "passed on after one of two releases");
            mine.release();
            acquired(other.acquire(Contest.WAIT_SECONDS, TimeUnit.SECONDS), "the released mutex");
            other.release();
            return "one lock node for two acquisitions, passed on after the second release";
        }
    }

    private static String semaphore(int leases) throws Exception {
        String path = freshPath();
        try (Contest contest = new Contest(address)) {
            return summary(contest.run(leases, (client, index) -> {
                InterProcessSemaphoreV2 semaphore = new InterProcessSemaphoreV2(client, path, leases);
                Lease[] held = new Lease[1];
                return guard(() -> held[0] = acquired(semaphore.acquire(Contest.WAIT_SECONDS, TimeUnit.SECONDS),
                        "a lease"), () -> semaphore.returnLease(held[0]));
            }));
        }
    }

    private static String semaphoreFull() throws Exception {
        String path = freshPath();
        try (Contest contest = new Contest(address)) {
            List<Lease> held = new ArrayList<>();
            for (int i = 0; i < 3; i++) {
                InterProcessSemaphoreV2 semaphore = new InterProcessSemaphoreV2(contest.clients.get(i), path, 3);
                held.add(acquired(semaphore.acquire(Contest.WAIT_SECONDS, TimeUnit.SECONDS), "lease " + (i + 1)));
            }
            InterProcessSemaphoreV2 fourth = new InterProcessSemaphoreV2(contest.clients.get(3), path, 3);
            require(fourth.acquire(REFUSED_MS, TimeUnit.MILLISECONDS) == null, "a fourth lease of three");
            // Closing the client returns its lease: it is an ephemeral of that session.
            contest.clients.get(0).close();
            acquired(fourth.acquire(Contest.WAIT_SECONDS, TimeUnit.SECONDS), "the lease of a closed client");
            return "3 leases held, the fourth refused, the lease of a closed client passed on";
        }
    }

    private static String readWriteLock() throws Exception {
        String path = freshPath();
        AtomicInteger readers = new AtomicInteger();
        AtomicInteger writers = new AtomicInteger();
        AtomicInteger readersMax = new AtomicInteger();
        AtomicInteger reads = new AtomicInteger();
        // Two cells that only writers change, one after the other: a reader that sees them differ read during a write.
        int[] cells = new int[2];
        try (Contest contest = new Contest(address)) {
            contest.together((client, index) -> {
                InterProcessReadWriteLock lock = new InterProcessReadWriteLock(client, path);
                for (int n = 0; n < Contest.ACQUISITIONS; n++) {
                    boolean writes = (n + index) % 5 == 0;
                    InterProcessMutex side = writes ? lock.writeLock() : lock.readLock();
                    if (!PLANT_NOLOCK) {
                        acquired(side.acquire(Contest.WAIT_SECONDS, TimeUnit.SECONDS), writes ? "write" : "read");
                    }
                    int others;
                    if (writes) {
                        others = writers.getAndIncrement() + readers.get();
                        synchronized (cells) {
                            cells[0]++;
                        }
                        client.checkExists().forPath("/");
                        synchronized (cells) {
                            cells[1]++;
                        }
                        writers.decrementAndGet();
                    } else {
                        readersMax.accumulateAndGet(readers.incrementAndGet(), Math::max);
                        others = writers.get();
                        client.checkExists().forPath("/");
                        synchronized (cells) {
                            require(cells[0] == cells[1], "reader saw half a write: %d, %d", cells[0], cells[1]);
                        }
                        reads.incrementAndGet();
                        readers.decrementAndGet();
                    }
                    require(others == 0, "%s with %d others inside", writes ? "writer" : "reader", others);
                    if (!PLANT_NOLOCK) {
                        side.release();
                    }
                }
            }, "all readers and writers to finish");
        }
        int all = cells[0] + reads.get();
        require(all == Contest.CONTENDERS * Contest.ACQUISITIONS, "%d acquisitions", all);
        return String.format("%d contenders x %d acquisitions, %d writes alone, %d reads, max readers %d",
                Contest.CONTENDERS, Contest.ACQUISITIONS, cells[0], reads.get(), readersMax.get());
    }

    private static String writeLock() throws Exception {
        String path = freshPath();
        try (Contest contest = new Contest(address)) {
            return summary(contest.run(1, (client, index) -> {
                InterProcessMutex write = new InterProcessReadWriteLock(client, path).writeLock();
                return guard(() -> acquired(write.acquire(Contest.WAIT_SECONDS, TimeUnit.SECONDS), "write"),
                        write::release);
            }));
        }
    }

    private static String readersShare() throws Exception {
        String path = freshPath();
        try (Contest contest = new Contest(address);
                CuratorFramework writerClient = connect(address, SESSION_TIMEOUT_MS)) {
            InterProcessMutex write = new InterProcessReadWriteLock(writerClient, path).writeLock();
            // The barrier opens only when all readers are inside. Its action then tries to write, in a
            // reader's thread, which is as good as any: the lock belongs to the client and the thread together.
            boolean[] wroteMeanwhile = new boolean[1];
            CyclicBarrier allInside = new CyclicBarrier(Contest.CONTENDERS, () -> {
                try {
                    wroteMeanwhile[0] = write.acquire(REFUSED_MS, TimeUnit.MILLISECONDS);
                } catch (Exception e) {
                    throw new IllegalStateException(e);
                }
            });
            contest.together((client, index) -> {
                InterProcessMutex read = new InterProcessReadWriteLock(client, path).readLock();
                acquired(read.acquire(Contest.WAIT_SECONDS, TimeUnit.SECONDS), "read");
                allInside.await(Contest.WAIT_SECONDS, TimeUnit.SECONDS);
                read.release();
            }, "all readers to be inside together");
            require(!wroteMeanwhile[0], "writer inside with %d readers", Contest.CONTENDERS);
            acquired(write.acquire(Contest.WAIT_SECONDS, TimeUnit.SECONDS), "write after the readers");
            write.release();
            return Contest.CONTENDERS + " readers inside together, writer refused until they left";
        }
    }

    private static String leaderLatch() throws Exception {
        String path = freshPath();
        try (Contest contest = new Contest(address)) {
            return summary(contest.run(1, (client, index) -> {
                LeaderLatch[] latch = new LeaderLatch[1];
                return guard(() -> {
                    latch[0] = new LeaderLatch(client, path, "contender-" + index);
                    latch[0].start();
                    acquired(latch[0].await(Contest.WAIT_SECONDS, TimeUnit.SECONDS), "leadership");
                }, () -> latch[0].close());
            }));
        }
    }

    private static String leaderLatchClosings() throws Exception {
        String path = freshPath();
        try (Contest contest = new Contest(address)) {
            List<LeaderLatch> open = new ArrayList<>();
            for (int i = 0; i < Contest.CONTENDERS; i++) {
                LeaderLatch latch = new LeaderLatch(contest.clients.get(i), path, "contender-" + i);
                latch.start();
                open.add(latch);
            }
            int led = 0;
            while (!open.isEmpty()) {
                LeaderLatch[] leader = new LeaderLatch[1];
                await("one of " + open.size() + " latches to lead", () -> {
                    List<LeaderLatch> leaders = open.stream().filter(LeaderLatch::hasLeadership).toList();
                    require(leaders.size() <= 1, "%d leaders at once", leaders.size());
                    leader[0] = leaders.isEmpty() ? null : leaders.get(0);
                    return leader[0] != null;
                });
                String named = open.get(open.size() - 1).getLeader().getId();
                require(named.equals(leader[0].getId()), "%s leads, another client sees %s", leader[0].getId(), named);
                led++;
                open.remove(leader[0]);
                leader[0].close();
            }
            require(led == Contest.CONTENDERS, "%d latches led", led);
            return led + " latches led, one at a time, each after the closing of the one before";
        }
    }

    private interface Kill {
        void apply(VanishingLink link) throws Exception;
    }

    private static String killedHolder(Kill kill) throws Exception {
        String path = freshPath();
        ExecutorService thread = Executors.newSingleThreadExecutor();
        try (VanishingLink link = new VanishingLink(address);
                CuratorFramework heir = connect(address, SESSION_TIMEOUT_MS)) {
            // Not in the try: closing a client without a connection only waits.
            CuratorFramework holder = connect(link.address(), VICTIM_TIMEOUT_MS);
            int timeoutMs = holder.getZookeeperClient().getZooKeeper().getSessionTimeout();
            require(timeoutMs <= 2 * VICTIM_TIMEOUT_MS, "the server grants no timeout below %d ms", timeoutMs);
            InterProcessMutex held = new InterProcessMutex(holder, path);
            acquired(held.acquire(Contest.WAIT_SECONDS, TimeUnit.SECONDS), "the mutex");

            InterProcessMutex inherited = new InterProcessMutex(heir, path);
            Future<Long> passedOn = thread.submit(() -> {
                if (!PLANT_NOLOCK) {
                    acquired(inherited.acquire(Contest.WAIT_SECONDS, TimeUnit.SECONDS), "the killed holder's mutex");
                }
                return System.nanoTime();
            });
            if (!PLANT_NOLOCK) {
                await("the second contender to queue", () -> heir.getChildren().forPath(path).size() == 2);
            }

            // The last request before the kill. The server counts the timeout from after `before`, so the lock must not
            // pass on within a timeout of `before`.
            long before = System.nanoTime();
            holder.checkExists().forPath("/");
            if (PLANT_GOODBYE) {
                holder.close();
            } else {
                kill.apply(link);
            }

            long after = passedOn.get(Contest.WAIT_SECONDS, TimeUnit.SECONDS);
            long elapsedMs = TimeUnit.NANOSECONDS.toMillis(after - before);
            require(elapsedMs >= timeoutMs, "passed on after %d ms, before the session of %d ms could expire",
                    elapsedMs, timeoutMs);
            require(elapsedMs <= timeoutMs + EXPIRY_SLACK_MS, "passed on only after %d ms, session timeout %d ms",
                    elapsedMs, timeoutMs);
            return String.format("session timeout %d ms, passed on after %d ms", timeoutMs, elapsedMs);
        } finally {
            thread.shutdownNow();
        }
    }

    static CuratorFramework connect(String address, int sessionTimeoutMs) throws Exception {
        CuratorFramework client = CuratorFrameworkFactory.builder()
                .connectString(address)
                .sessionTimeoutMs(sessionTimeoutMs)
                // Above the session timeout Curator only logs a warning.
                .connectionTimeoutMs(sessionTimeoutMs)
                .retryPolicy(new RetryNTimes(3, 100))
                .build();
        client.start();
        require(client.blockUntilConnected(CONNECT_SECONDS, TimeUnit.SECONDS), "waited %d s for a connection",
                CONNECT_SECONDS);
        return client;
    }

    static void require(boolean holds, String format, Object... values) throws CheckFailed {
        if (!holds) {
            throw new CheckFailed(String.format(format, values));
        }
    }

    private static void acquired(boolean got, String what) throws CheckFailed {
        require(got, "waited %d s for %s", Contest.WAIT_SECONDS, what);
    }

    private static Lease acquired(Lease lease, String what) throws CheckFailed {
        acquired(lease != null, what);
        return lease;
    }

    private static void await(String what, Callable<Boolean> condition) throws Exception {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(Contest.WAIT_SECONDS);
        while (!condition.call()) {
            require(System.nanoTime() < deadline, "waited %d s for %s", Contest.WAIT_SECONDS, what);
            Thread.sleep(5);
        }
    }

    private interface Step {
        void run() throws Exception;
    }

    private static Contest.Guard guard(Step enter, Step leave) {
        return new Contest.Guard() {
            @Override
            public void enter() throws Exception {
                enter.run();
            }

            @Override
            public void leave() throws Exception {
                leave.run();
            }
        };
    }

    private static String summary(Contest.Outcome outcome) {
        return String.format("%d contenders x %d acquisitions, counter %d, max holders %d", Contest.CONTENDERS,
                Contest.ACQUISITIONS, outcome.holdersMax() == 1 ? outcome.counter() : outcome.entries(),
                outcome.holdersMax());
    }

    /** Returns a path that no other check and no earlier run against the same server has used. */
    private static String freshPath() {
        return "/interop/java/" + UUID.randomUUID();
    }

    private static void check(String name, Callable<String> body) {
        try {
            String detail = body.call();
            passed++;
            System.out.printf("ok java %s: %s%n", name, detail);
        } catch (Exception e) {
            failed++;
            String reason = e instanceof CheckFailed ? e.getMessage() : e.toString();
            System.out.printf("FAIL java %s: %s%n", name, reason);
        }
    }

    private Interop() {}
}
