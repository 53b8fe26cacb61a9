import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.curator.framework.CuratorFramework;

/** Contenders, each with its own session, that enter one critical section in rounds. */
final class Contest implements AutoCloseable {
    static final int CONTENDERS = 8;
    static final int ACQUISITIONS = 50;
    static final int WAIT_SECONDS = 60;

    /** Enters and leaves the critical section for one contender. */
    interface Guard {
        void enter() throws Exception;

        void leave() throws Exception;
    }

    /** Creates the guard of contender {@code index}. */
    interface Recipe {
        Guard guard(CuratorFramework client, int index) throws Exception;
    }

    /** The counts of all contenders. */
    record Outcome(int counter, int entries, int holdersMax) {}

    final List<CuratorFramework> clients = new ArrayList<>();
    private final ExecutorService threads = Executors.newFixedThreadPool(CONTENDERS);

    // Volatile gives every read the newest value, but leaves read-modify-write as two steps: only the lock makes
    // them atomic.
    private volatile int counter;

    Contest(String address) throws Exception {
        Set<Long> sessions = new HashSet<>();
        for (int i = 0; i < CONTENDERS; i++) {
            CuratorFramework client = Interop.connect(address, Interop.SESSION_TIMEOUT_MS);
            clients.add(client);
            sessions.add(client.getZookeeperClient().getZooKeeper().getSessionId());
        }
        Interop.require(sessions.size() == CONTENDERS, "contenders share a session: %d ids", sessions.size());
    }

    /** Starts all contenders at once. Fails if more than {@code holdersMax} were inside together. */
    Outcome run(int holdersMax, Recipe recipe) throws Exception {
        counter = 0;
        AtomicInteger inside = new AtomicInteger();
        AtomicInteger insideMax = new AtomicInteger();
        AtomicInteger entries = new AtomicInteger();
        CountDownLatch start = new CountDownLatch(1);
        List<Future<?>> running = new ArrayList<>();
        for (int i = 0; i < CONTENDERS; i++) {
            CuratorFramework client = clients.get(i);
            Guard guard = Interop.PLANT_NOLOCK ? NO_LOCK : recipe.guard(client, i);
            running.add(threads.submit(() -> {
                start.await();
                for (int n = 0; n < ACQUISITIONS; n++) {
                    guard.enter();
                    int now = inside.incrementAndGet();
                    insideMax.accumulateAndGet(now, Math::max);
                    int read = counter;
                    // A round trip gives a contender that is wrongly inside enough time to corrupt the counter.
                    client.checkExists().forPath("/");
                    counter = read + 1;
                    entries.incrementAndGet();
                    inside.decrementAndGet();
                    guard.leave();
                }
                return null;
            }));
        }
        start.countDown();
        join(running, "all contenders to finish");
        Interop.require(entries.get() == CONTENDERS * ACQUISITIONS, "entries %d", entries.get());
        Interop.require(insideMax.get() <= holdersMax, "%d holders at once, counter %d of %d", insideMax.get(), counter,
                CONTENDERS * ACQUISITIONS);
        if (holdersMax == 1) {
            Interop.require(counter == CONTENDERS * ACQUISITIONS, "counter %d of %d", counter,
                    CONTENDERS * ACQUISITIONS);
        }
        return new Outcome(counter, entries.get(), insideMax.get());
    }

    /** Runs one task for each contender, all at once. */
    void together(ContenderTask task, String waitingFor) throws Exception {
        List<Future<?>> running = new ArrayList<>();
        for (int i = 0; i < CONTENDERS; i++) {
            int index = i;
            running.add(threads.submit(() -> {
                task.run(clients.get(index), index);
                return null;
            }));
        }
        join(running, waitingFor);
    }

    interface ContenderTask {
        void run(CuratorFramework client, int index) throws Exception;
    }

    private void join(List<Future<?>> running, String waitingFor) throws Exception {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(WAIT_SECONDS);
        for (Future<?> one : running) {
            try {
                one.get(Math.max(1, deadline - System.nanoTime()), TimeUnit.NANOSECONDS);
            } catch (TimeoutException e) {
                running.forEach(other -> other.cancel(true));
                throw new CheckFailed("waited " + WAIT_SECONDS + " s for " + waitingFor);
            } catch (ExecutionException e) {
                running.forEach(other -> other.cancel(true));
                throw e.getCause() instanceof Exception cause ? cause : e;
            }
        }
    }

    @Override
    public void close() {
        threads.shutdownNow();
        clients.forEach(CuratorFramework::close);
    }

    private static final Guard NO_LOCK = new Guard() {
        @Override
        public void enter() {}

        @Override
        public void leave() {}
    };
}
