import java.time.Duration;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.atomic.AtomicValue;
import org.apache.curator.framework.recipes.atomic.DistributedAtomicLong;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.retry.RetryNTimes;
import org.apache.zookeeper.KeeperException;

/**
 * Two clients that use a recipe of Curator as its documentation asks for: a lock counts as lost while its client is not
 * connected, and what fails is tried again. Fails if two hold a lock together, if a lock cannot be acquired though nobody holds
 * it, if znodes of the recipe are left at the end, or if a sum is wrong.
 */
final class Recipes {
    private static final String PATH = "/recipe";
    private static final Duration PATIENCE = Duration.ofSeconds(8);

    public static void main(String[] arguments) {
        int code = 0;
        try (CuratorFramework first = connect();
                CuratorFramework second = connect()) {
            switch (arguments[0]) {
                case "mutex":
                    contend(first, new InterProcessMutex(first, PATH), second, new InterProcessMutex(second, PATH));
                    break;
                case "read-write":
                    InterProcessReadWriteLock one = new InterProcessReadWriteLock(first, PATH);
                    InterProcessReadWriteLock other = new InterProcessReadWriteLock(second, PATH);
                    contend(first, one.writeLock(), second, other.readLock());
                    contend(first, one.readLock(), second, other.writeLock());
                    break;
                case "semaphore":
                    contend(first, new OneLease(first), second, new OneLease(second));
                    break;
                case "latch":
                    lead(first, second);
                    break;
                case "counter":
                    add(first, second);
                    break;
                default:
                    throw new IllegalArgumentException(arguments[0] + ": no recipe");
            }
            expectNothingLeft(first);
        } catch (Throwable problem) {
            problem.printStackTrace();
            code = 1;
        }
        // Threads of a contender that waits must not keep the program.
        System.exit(code);
    }

    private static CuratorFramework connect() throws Exception {
        String address = System.getenv("MINIKEEPER_CONNECT");
        CuratorFramework client = CuratorFrameworkFactory.builder()
                // Twice: ZooKeeper's client waits a second before it connects to its only server again.
                .connectString(address + "," + address)
                .sessionTimeoutMs(5000)
                .connectionTimeoutMs(3000)
                .retryPolicy(new RetryNTimes(100, 50))
                .ensembleTracker(false)
                .build();
        client.start();
        require(client.blockUntilConnected(10, TimeUnit.SECONDS), "not connected within 10 s");
        // Clients are numbered in the order of their first requests.
        client.checkExists().forPath("/");
        return client;
    }

    /** The first holds the lock while the second waits for it, and then the second holds it. */
    private static void contend(
            CuratorFramework first, InterProcessLock ofFirst, CuratorFramework second, InterProcessLock ofSecond)
            throws Exception {
        Contender one = new Contender(first, ofFirst);
        Contender other = new Contender(second, ofSecond);
        one.enter(other);
        CompletableFuture<Void> done = new CompletableFuture<>();
        Thread waits = new Thread(() -> {
            try {
                other.enter(one);
                other.leave();
                done.complete(null);
            } catch (Throwable problem) {
                done.completeExceptionally(problem);
            }
        });
        waits.start();
        until(() -> done.isDone() || isBlocked(waits), "the second contender neither waits nor ends");
        one.leave();
        done.get();
    }

    /** Returns whether a thread waits for something else than the reply to a request. */
    private static boolean isBlocked(Thread thread) {
        Thread.State state = thread.getState();
        if (state != Thread.State.WAITING && state != Thread.State.TIMED_WAITING) {
            return false;
        }
        for (StackTraceElement frame : thread.getStackTrace()) {
            String name = frame.getClassName();
            if (name.startsWith("org.apache.zookeeper.") || name.startsWith("org.apache.curator.retry.")) {
                return false;
            }
        }
        return true;
    }

    /** A client with a lock that it holds or not, as far as it can know. */
    private static final class Contender {
        private final CuratorFramework client;
        private final InterProcessLock lock;
        private final AtomicInteger lost = new AtomicInteger();
        private volatile boolean holds;

        Contender(CuratorFramework client, InterProcessLock lock) {
            this.client = client;
            this.lock = lock;
            client.getConnectionStateListenable().addListener((ignored, state) -> {
                if (!state.isConnected()) {
                    holds = false;
                }
                if (state == ConnectionState.LOST) {
                    lost.incrementAndGet();
                }
            });
        }

        /** Acquires the lock and works with it. */
        void enter(Contender other) throws Exception {
            long deadline = System.nanoTime() + PATIENCE.toNanos();
            while (!holds) {
                require(System.nanoTime() < deadline, "the lock cannot be acquired, and nobody holds it");
                int before = lost.get();
                try {
                    require(lock.acquire(PATIENCE.toMillis(), TimeUnit.MILLISECONDS),
                            "not acquired, and nobody holds the lock");
                } catch (KeeperException again) {
                    continue;
                }
                holds = true;
                if (lost.get() != before || !client.getZookeeperClient().isConnected()) {
                    leave();
                }
            }
            // The session of the other can have expired just now, which its client learns from the server.
            until(() -> !(holds && other.holds), "two hold the lock");
            work(client);
        }

        void leave() throws Exception {
            holds = false;
            try {
                lock.release();
            } catch (KeeperException goesOn) {
                // Curator deletes the znode in the background.
            }
        }
    }

    /** A semaphore with one lease, as a lock. */
    private static final class OneLease implements InterProcessLock {
        private final InterProcessSemaphoreV2 semaphore;
        private Lease lease;

        OneLease(CuratorFramework client) {
            semaphore = new InterProcessSemaphoreV2(client, PATH, 1);
        }

        @Override
        public void acquire() throws Exception {
            lease = semaphore.acquire();
        }

        @Override
        public boolean acquire(long time, TimeUnit unit) throws Exception {
            lease = semaphore.acquire(time, unit);
            return lease != null;
        }

        @Override
        public void release() throws Exception {
            semaphore.returnLease(lease);
            lease = null;
        }

        @Override
        public boolean isAcquiredInThisProcess() {
            return lease != null;
        }
    }

    /** The first leads, and after it the second. */
    private static void lead(CuratorFramework first, CuratorFramework second) throws Exception {
        LeaderLatch one = new LeaderLatch(first, PATH);
        LeaderLatch other = new LeaderLatch(second, PATH);
        one.start();
        require(one.await(PATIENCE.toMillis(), TimeUnit.MILLISECONDS), "the first does not lead");
        other.start();
        work(first);
        work(second);
        until(() -> !(one.hasLeadership() && other.hasLeadership()), "two lead");
        one.close();
        require(other.await(PATIENCE.toMillis(), TimeUnit.MILLISECONDS), "the second does not lead");
        work(second);
        other.close();
    }

    /** Each adds 1. */
    private static void add(CuratorFramework first, CuratorFramework second) throws Exception {
        long sum = 0;
        for (CuratorFramework client : List.of(first, second)) {
            DistributedAtomicLong counter = new DistributedAtomicLong(client, "/counter", new RetryNTimes(100, 20));
            AtomicValue<Long> result = counter.increment();
            sum += result.succeeded() ? 1 : 0;
        }
        long value = new DistributedAtomicLong(first, "/counter", new RetryNTimes(100, 20)).get().postValue();
        require(value == sum, sum + " increments succeeded, and the counter is " + value);
    }

    /** A round trip during which a session can expire. */
    private static void work(CuratorFramework client) throws Exception {
        client.checkExists().forPath("/work");
    }

    /** Curator deletes in the background what it could not delete at once. */
    private static void expectNothingLeft(CuratorFramework client) throws Exception {
        for (String path : List.of(PATH, PATH + "/locks", PATH + "/leases")) {
            until(() -> children(client, path).stream().allMatch(List.of("locks", "leases")::contains),
                    "znodes are left below " + path);
        }
    }

    private static List<String> children(CuratorFramework client, String path) throws Exception {
        try {
            return client.getChildren().forPath(path);
        } catch (KeeperException.NoNodeException none) {
            return List.of();
        }
    }

    private static void until(Callable<Boolean> condition, String otherwise) throws Exception {
        long deadline = System.nanoTime() + PATIENCE.toNanos();
        while (!condition.call()) {
            require(System.nanoTime() < deadline, otherwise);
            Thread.sleep(10);
        }
    }

    private static void require(boolean holds, String otherwise) {
        if (!holds) {
            throw new IllegalStateException(otherwise);
        }
    }
}
