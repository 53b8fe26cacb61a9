import io.github.minikeeper.MinikeeperServer;
import io.github.minikeeper.Universe;
import java.lang.reflect.Field;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionService;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorCompletionService;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.IntFunction;
import java.util.stream.Collectors;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.barriers.DistributedBarrier;
import org.apache.curator.framework.recipes.barriers.DistributedDoubleBarrier;
import org.apache.curator.framework.recipes.cache.ChildData;
import org.apache.curator.framework.recipes.cache.CuratorCache;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.LeaderLatch.CloseMode;
import org.apache.curator.framework.recipes.leader.LeaderLatchListener;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.framework.recipes.shared.SharedCount;
import org.apache.curator.retry.RetryNTimes;
import org.apache.zookeeper.KeeperException;

/**
 * What Curator's recipes promise, under orders of the requests of their clients.
 *
 * <p>{@code RecipeOrders RECIPE} does one run on the server at MINIKEEPER_CONNECT; its exit code is the verdict. {@code
 * RecipeOrders RECIPE NAME=VALUE...} does a sweep with a server of its own and all runs in this JVM, and prints the report. It
 * tries every order with at most {@code changes} unforced changes, and then further orders for {@code seconds}; every other name
 * is an argument of the verb {@code sweep_start}.
 *
 * <p>Orders that differ only in requests that commute count as one. So what a scenario checks must show in its requests, not
 * only in memory that its clients share: a holder of a lock has a znode in {@code /held} meanwhile.
 */
final class RecipeOrders {
    private static final String PATH = "/recipe";
    private static final String HELD = "/held";
    /** After this a run hangs: a run takes some hundred milliseconds on an idle machine. Unit: seconds. */
    private static final int RUN_S = 60;
    private static final Duration PATIENCE = Duration.ofSeconds(30);
    private static final Duration IDLE = Duration.ofMillis(30);

    private static final Map<String, Recipe> RECIPES = new LinkedHashMap<>();

    static {
        RECIPES.put("mutex", new Recipe(2, RecipeOrders::mutex));
        RECIPES.put("mutex-3", new Recipe(3, RecipeOrders::mutex));
        RECIPES.put("read-write", new Recipe(2, run -> readWrite(run, "write", "read")));
        RECIPES.put("read-write-3", new Recipe(3, run -> readWrite(run, "write", "read", "read")));
        RECIPES.put("downgrade", new Recipe(2, run -> readWrite(run, "downgrade", "write")));
        RECIPES.put("semaphore", new Recipe(2, run -> semaphore(run, 1)));
        RECIPES.put("semaphore-3", new Recipe(3, run -> semaphore(run, 2)));
        RECIPES.put("latch", new Recipe(2, RecipeOrders::latch));
        RECIPES.put("latch-3", new Recipe(3, RecipeOrders::latch));
        RECIPES.put("latch-resign", new Recipe(2, RecipeOrders::resign));
        RECIPES.put("barrier", new Recipe(3, RecipeOrders::barrier));
        RECIPES.put("double-barrier", new Recipe(2, run -> doubleBarrier(run, 1)));
        RECIPES.put("double-barrier-3", new Recipe(3, run -> doubleBarrier(run, 1)));
        RECIPES.put("double-barrier-twice", new Recipe(2, run -> doubleBarrier(run, 2)));
        RECIPES.put("cache", new Recipe(2, RecipeOrders::cache));
        RECIPES.put("shared-count", new Recipe(2, RecipeOrders::sharedCount));
        // Curator's pull request 416: the notification of enter() comes when leave() waits, and ends that.
        RECIPES.put("double-barrier-slow", new Recipe(2, run -> doubleBarrier(run, 1), 200));
        // Contenders for locks of their own: the sweep must find that they hold them together.
        RECIPES.put("planted", new Recipe(2, RecipeOrders::planted));
    }

    /** A scenario with this number of clients. */
    private static final class Recipe {
        final int clients;
        final Scenario scenario;
        /** How long the thread takes that wakes the others of a client. */
        final long wakesAfterMs;

        Recipe(int clients, Scenario scenario) {
            this(clients, scenario, 0);
        }

        Recipe(int clients, Scenario scenario, long wakesAfterMs) {
            this.clients = clients;
            this.scenario = scenario;
            this.wakesAfterMs = wakesAfterMs;
        }
    }

    private interface Scenario {
        void run(Run run) throws Exception;
    }

    private interface Body {
        void run(CuratorFramework client) throws Exception;
    }

    public static void main(String[] arguments) throws Exception {
        Recipe recipe = RECIPES.get(arguments[0]);
        require(recipe != null, arguments[0] + ": no recipe; one of " + RECIPES.keySet());
        System.exit(arguments.length == 1 ? once(recipe) : sweep(arguments[0], fields(arguments)));
    }

    /** Contenders hold the lock one after the other, in the order of their znodes. */
    private static void mutex(Run run) throws Exception {
        Turns turns = new Turns();
        run.withParents(PATH);
        run.together(number -> client -> {
            SeenMutex lock = new SeenMutex(client, PATH);
            lock.acquire();
            turns.add("write", lock.getLockPath());
            hold(client, 1);
            lock.release();
        });
        turns.expectFair();
        run.expectEmpty(PATH);
    }

    private static final class SeenMutex extends InterProcessMutex {
        SeenMutex(CuratorFramework client, String path) {
            super(client, path);
        }

        @Override
        public String getLockPath() {
            return super.getLockPath();
        }
    }

    private static void planted(Run run) throws Exception {
        run.together(number -> client -> {
            InterProcessMutex lock = new InterProcessMutex(client, PATH + number);
            lock.acquire();
            hold(client, 1);
            lock.release();
        });
    }

    /** Readers may hold the lock together. The one that downgrades holds the write lock, then both, then the read lock. */
    private static void readWrite(Run run, String... kinds) throws Exception {
        Turns turns = new Turns();
        run.withParents(PATH);
        run.together(number -> client -> {
            String kind = kinds[number];
            InterProcessReadWriteLock lock = new InterProcessReadWriteLock(client, PATH);
            if (kind.equals("read")) {
                lock.readLock().acquire();
                turns.add("read", lock.readLock().getLockPath());
            } else {
                lock.writeLock().acquire();
                turns.add("write", lock.writeLock().getLockPath());
                hold(client, 1);
                if (kind.equals("downgrade")) {
                    lock.readLock().acquire();
                }
                lock.writeLock().release();
            }
            if (!kind.equals("write")) {
                require(client.checkExists().forPath(HELD + "/0") == null, "a writer and a reader hold the lock together");
                lock.readLock().release();
            }
        });
        turns.expectFair();
        run.expectEmpty(PATH);
    }

    /** Contenders share fewer leases. */
    private static void semaphore(Run run, int leases) throws Exception {
        Turns turns = new Turns();
        run.withParents(PATH, PATH + "/locks", PATH + "/leases");
        run.together(number -> client -> {
            InterProcessSemaphoreV2 semaphore = new InterProcessSemaphoreV2(client, PATH, leases);
            Lease lease = semaphore.acquire();
            turns.add("write", lease.getNodeName());
            hold(client, leases);
            semaphore.returnLease(lease);
        });
        turns.expectFair();
        run.expectEmpty(PATH + "/locks");
        run.expectEmpty(PATH + "/leases");
    }

    /** Takes one of these places for a while, as a holder of a lock. */
    private static void hold(CuratorFramework client, int places) throws Exception {
        for (int place = 0; place < places; place++) {
            String path = HELD + "/" + place;
            try {
                client.create().forPath(path);
            } catch (KeeperException.NodeExistsException another) {
                continue;
            }
            client.delete().forPath(path);
            return;
        }
        throw new IllegalStateException("more than " + places + " hold it together");
    }

    /** Each candidate leads once, and is told. */
    private static void latch(Run run) throws Exception {
        run.withParents(PATH);
        run.together(number -> client -> {
            Told told = new Told();
            LeaderLatch latch = new LeaderLatch(client, PATH, "candidate", CloseMode.NOTIFY_LEADER);
            latch.addListener(told);
            latch.start();
            latch.await();
            require(latch.hasLeadership(), "await() returned without leadership");
            hold(client, 1);
            latch.close();
            told.expect(1);
        });
        run.expectEmpty(PATH);
    }

    /** A candidate resigns while it begins, and the other one leads. */
    private static void resign(Run run) throws Exception {
        run.together(number -> client -> {
            Told told = new Told();
            LeaderLatch latch = new LeaderLatch(client, PATH, "candidate", CloseMode.NOTIFY_LEADER);
            latch.addListener(told);
            latch.start();
            if (number == 0) {
                latch.await();
                latch.close();
                told.expect(1);
                return;
            }
            // It begins on a thread of its own, which this one must not overtake.
            AtomicReference<?> begins = (AtomicReference<?>) valueOf(latch, "startTask");
            Callable<Boolean> hasBegun = () -> !(begins.get() instanceof Future) || ((Future<?>) begins.get()).isDone();
            until(hasBegun, () -> "the latch does not start");
            CompletableFuture<Void> resigned = new CompletableFuture<>();
            // On the thread on which it gets its replies: so they decide what it does before.
            client.create().inBackground((ignored, event) -> {
                latch.close();
                resigned.complete(null);
            }).forPath(HELD + "/resigns");
            resigned.get(RUN_S, TimeUnit.SECONDS);
        });
        run.expectEmpty(PATH);
    }

    private static final class Told implements LeaderLatchListener {
        private final AtomicInteger leads = new AtomicInteger();
        private final AtomicInteger ends = new AtomicInteger();

        @Override
        public void isLeader() {
            leads.incrementAndGet();
        }

        @Override
        public void notLeader() {
            ends.incrementAndGet();
        }

        void expect(int times) {
            require(leads.get() == times && ends.get() == times, "told " + leads + " times that it leads, and " + ends
                    + " times that it does not, instead of " + times);
        }
    }

    /** Two wait for a barrier, which a third removes. */
    private static void barrier(Run run) throws Exception {
        run.universe.create(PATH);
        run.together(number -> client -> {
            DistributedBarrier barrier = new DistributedBarrier(client, PATH);
            if (number == 0) {
                client.create().forPath(HELD + "/opened");
                barrier.removeBarrier();
            } else {
                barrier.waitOnBarrier();
                require(client.checkExists().forPath(HELD + "/opened") != null, "passed before the barrier was removed");
            }
        });
        require(!run.universe.children("/").contains(PATH.substring(1)), "the barrier is left");
    }

    /** Members begin together and end together. */
    private static void doubleBarrier(Run run, int rounds) throws Exception {
        int members = run.clients.size();
        run.withParents(PATH);
        // Members act by the order of their names, which are random.
        List<DistributedDoubleBarrier> barriers = new ArrayList<>();
        for (int number = 0; number < members; number++) {
            barriers.add(barrierInThird(run.clients.get(number), members, number));
        }
        run.together(number -> client -> {
            DistributedDoubleBarrier barrier = barriers.get(number);
            for (int round = 0; round < rounds; round++) {
                String begins = "begins-" + round + "-";
                client.create().forPath(HELD + "/" + begins + number);
                barrier.enter();
                int begun = run.held(client, begins);
                require(begun == members, "entered when " + begun + " of " + members + " had come");
                String ends = "ends-" + round + "-";
                client.create().forPath(HELD + "/" + ends + number);
                barrier.leave();
                int ended = run.held(client, ends);
                require(ended == members, "left when " + ended + " of " + members + " were leaving");
            }
        });
        run.expectEmpty(PATH);
    }

    /** Returns a barrier whose name is in this third of all. */
    private static DistributedDoubleBarrier barrierInThird(CuratorFramework client, int members, int third) throws Exception {
        while (true) {
            DistributedDoubleBarrier barrier = new DistributedDoubleBarrier(client, PATH, members);
            String name = ((String) valueOf(barrier, "ourPath")).substring(PATH.length() + 1);
            if (Integer.parseInt(name.substring(0, 1), 16) * 3 / 16 == third) {
                return barrier;
            }
        }
    }

    private static Object valueOf(Object object, String name) throws ReflectiveOperationException {
        Field field = object.getClass().getDeclaredField(name);
        field.setAccessible(true);
        return field.get(object);
    }

    /** A cache begins while another client creates, changes and deletes znodes, and has the same tree in the end. */
    private static void cache(Run run) throws Exception {
        run.universe.create(PATH);
        run.universe.create(PATH + "/old");
        CountDownLatch written = new CountDownLatch(1);
        run.together(number -> client -> {
            if (number == 0) {
                client.create().forPath(PATH + "/new", new byte[] {1});
                client.setData().forPath(PATH + "/new", new byte[] {2});
                client.create().forPath(PATH + "/new/child");
                client.delete().forPath(PATH + "/old");
                written.countDown();
                return;
            }
            try (CuratorCache cache = CuratorCache.build(client, PATH)) {
                cache.start();
                written.await();
                until(() -> contents(cache).equals(run.contents(PATH)),
                        () -> "the cache has " + contents(cache) + ", and the tree " + run.contents(PATH));
                // It may ask once more for what it knows, and a run ends with the same request as another one in its order.
                run.universe.untilIdle(IDLE, PATIENCE);
            }
        });
    }

    private static Map<String, String> contents(CuratorCache cache) {
        Map<String, String> found = new TreeMap<>();
        for (ChildData data : cache.stream().collect(Collectors.toList())) {
            found.put(data.getPath(), Arrays.toString(data.getData()));
        }
        return found;
    }

    /** Each adds 1, and both see the sum in the end. */
    private static void sharedCount(Run run) throws Exception {
        run.together(number -> client -> {
            try (SharedCount count = new SharedCount(client, PATH, 0)) {
                count.start();
                while (!count.trySetCount(count.getVersionedValue(), count.getCount() + 1)) {
                    // Another has added.
                }
                until(() -> count.getCount() == 2, () -> "the count is " + count.getCount());
            }
        });
    }

    /** One run: the clients of a scenario, and their server. */
    private static final class Run implements AutoCloseable {
        final Universe universe;
        final List<CuratorFramework> clients = new ArrayList<>();
        private volatile long wakesAfterMs;
        private final List<ExecutorService> notifiers = new ArrayList<>();
        private final ExecutorService threads = Executors.newCachedThreadPool();

        Run(Universe universe) {
            this.universe = universe;
        }

        void run(Recipe recipe) throws Exception {
            wakesAfterMs = recipe.wakesAfterMs;
            universe.create(HELD);
            while (clients.size() < recipe.clients) {
                clients.add(connect());
            }
            recipe.scenario.run(this);
        }

        /** Creates parents that a recipe creates itself: what three clients do then would double the number of orders. */
        void withParents(String... paths) {
            if (clients.size() > 2) {
                Arrays.asList(paths).forEach(universe::create);
            }
        }

        /** Runs the body of each client, all at once. */
        void together(IntFunction<Body> bodies) throws Exception {
            CountDownLatch begin = new CountDownLatch(1);
            // The first that fails is the cause: then others may wait for it.
            CompletionService<Void> running = new ExecutorCompletionService<>(threads);
            for (int number = 0; number < clients.size(); number++) {
                Body body = bodies.apply(number);
                CuratorFramework client = clients.get(number);
                running.submit(() -> {
                    begin.await();
                    body.run(client);
                    return null;
                });
            }
            begin.countDown();
            long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(RUN_S);
            for (CuratorFramework ignored : clients) {
                Future<Void> ended = running.poll(deadline - System.nanoTime(), TimeUnit.NANOSECONDS);
                if (ended == null) {
                    throw new TimeoutException();
                }
                try {
                    ended.get();
                } catch (ExecutionException failed) {
                    throw failed.getCause() instanceof Exception ? (Exception) failed.getCause() : failed;
                }
            }
        }

        /** Counts the znodes whose names begin like this. Then every thread is awake that was to be woken, unless that is slow. */
        int held(CuratorFramework client, String prefix) throws Exception {
            CompletableFuture<List<String>> names = new CompletableFuture<>();
            // The thread that gets this reply has passed on the events before it.
            client.getChildren().inBackground((ignored, event) -> names.complete(event.getChildren())).forPath(HELD);
            long count = names.get(RUN_S, TimeUnit.SECONDS).stream().filter(name -> name.startsWith(prefix)).count();
            if (wakesAfterMs == 0) {
                client.runSafe(() -> {}).get(RUN_S, TimeUnit.SECONDS);
            }
            return (int) count;
        }

        /** Runs a task of the thread that wakes others. */
        private void wake(Runnable task) {
            try {
                Thread.sleep(wakesAfterMs);
                task.run();
            } catch (InterruptedException closed) {
                // No thread waits any more.
            }
        }

        private CuratorFramework connect() throws InterruptedException {
            // Curator 5.9 never ends the thread that it makes itself.
            ThreadPoolExecutor notifier = (ThreadPoolExecutor) Executors.newFixedThreadPool(1);
            // Watches are notified that their client has closed.
            notifier.setRejectedExecutionHandler(new ThreadPoolExecutor.DiscardPolicy());
            notifiers.add(notifier);
            CuratorFramework client = CuratorFrameworkFactory.builder()
                    .connectString(universe.connectString())
                    .sessionTimeoutMs(30_000)
                    .connectionTimeoutMs(10_000)
                    .retryPolicy(new RetryNTimes(0, 50))
                    .ensembleTracker(false)
                    .runSafeService(task -> notifier.execute(() -> wake(task)))
                    .build();
            client.start();
            require(client.blockUntilConnected(10, TimeUnit.SECONDS), "not connected within 10 s");
            return client;
        }

        /** Waits until a znode has no children: recipes delete in the background. */
        void expectEmpty(String path) throws Exception {
            until(() -> universe.children(path).isEmpty(), () -> universe.children(path) + " is left below " + path);
        }

        /** Returns a subtree with its data. */
        Map<String, String> contents(String path) {
            Map<String, String> found = new TreeMap<>();
            found.put(path, Arrays.toString(universe.get(path).data()));
            for (String child : universe.children(path)) {
                found.putAll(contents(path + "/" + child));
            }
            return found;
        }

        @Override
        public void close() {
            threads.shutdownNow();
            clients.forEach(CuratorFramework::close);
            notifiers.forEach(ExecutorService::shutdownNow);
        }
    }

    /** Who has acquired a lock, in this order. */
    private static final class Turns {
        private final List<String> kinds = new ArrayList<>();
        private final List<Integer> numbers = new ArrayList<>();

        synchronized void add(String kind, String path) {
            kinds.add(kind);
            numbers.add(Integer.parseInt(path.substring(path.length() - 10)));
        }

        /** Expects that of two that exclude each other the first in the queue was first. */
        synchronized void expectFair() {
            for (int later = 0; later < kinds.size(); later++) {
                for (int first = 0; first < later; first++) {
                    boolean areExclusive = kinds.get(first).equals("write") || kinds.get(later).equals("write");
                    require(!areExclusive || numbers.get(first) < numbers.get(later),
                            "acquired in the order " + kinds + " of " + numbers);
                }
            }
        }
    }

    private static void until(Callable<Boolean> condition, Callable<String> otherwise) throws Exception {
        long deadline = System.nanoTime() + PATIENCE.toNanos();
        while (!condition.call()) {
            if (System.nanoTime() > deadline) {
                throw new IllegalStateException(otherwise.call());
            }
            Thread.sleep(2);
        }
    }

    private static void require(boolean holds, String otherwise) {
        if (!holds) {
            throw new IllegalStateException(otherwise);
        }
    }

    /** Does one run, for {@code minikeeper sweep}. */
    private static int once(Recipe recipe) {
        try (Run run = new Run(Universe.at(System.getenv("MINIKEEPER_CONNECT"), null))) {
            run.run(recipe);
            return 0;
        } catch (Throwable problem) {
            System.out.println("broken: " + problem);
            return 1;
        }
    }

    private static Map<String, Object> fields(String[] arguments) {
        Map<String, Object> fields = new HashMap<>();
        for (String argument : Arrays.asList(arguments).subList(1, arguments.length)) {
            String[] parts = argument.split("=", 2);
            require(parts.length == 2, argument + ": expected NAME=VALUE");
            Object value = parts[1];
            if (parts[1].matches("true|false")) {
                value = Boolean.valueOf(parts[1]);
            } else if (parts[1].matches("[0-9]+") && !parts[0].equals("changes")) {
                value = Long.valueOf(parts[1]);
            }
            fields.put(parts[0], value);
        }
        require(fields.get("seconds") instanceof Long, "seconds=N is missing");
        return fields;
    }

    /** Does a sweep, and prints its report. */
    private static int sweep(String name, Map<String, Object> fields) throws Exception {
        Recipe recipe = RECIPES.get(name);
        String again = "tests/interop/sweep/run recipes 0 0 " + name + " only={}";
        long seconds = (long) fields.remove("seconds");
        fields.put("orders", true);
        fields.put("clients", recipe.clients);
        fields.put("process", ProcessHandle.current().pid());
        // More than there is time for.
        fields.put("more", seconds == 0 ? 0 : Integer.MAX_VALUE);
        ExecutorService closing = Executors.newCachedThreadPool();
        try (MinikeeperServer server = MinikeeperServer.builder().start()) {
            long sweep = server.sweepStart(fields);
            long end = Long.MAX_VALUE;
            long looked = System.nanoTime();
            for (int number = 1; ; number++) {
                String ofRun = "run-" + number;
                Universe universe = server.createUniverse(ofRun);
                if (universe.sweepNext(sweep).run() == 0) {
                    break;
                }
                Run run = new Run(universe);
                server.sweepEnd(ended(sweep, run, recipe));
                // ZooKeeper's client sleeps for 0.1 s when it closes.
                closing.execute(() -> {
                    run.close();
                    server.dropUniverse(ofRun);
                });
                if (end == Long.MAX_VALUE && System.nanoTime() - looked > TimeUnit.SECONDS.toNanos(1)) {
                    looked = System.nanoTime();
                    // Random orders come when every order with at most `changes` changes was tried.
                    String summary = (String) server.sweepFindings(Map.of("sweep", sweep)).get("summary");
                    end = summary.contains(" random one") ? looked + TimeUnit.SECONDS.toNanos(seconds) : end;
                }
                // A sweep that has failed looks closer at its failures, and ends.
                if (System.nanoTime() > end && !server.sweepFindings(Map.of("sweep", sweep)).get("state").equals("failed")) {
                    break;
                }
            }
            closing.shutdown();
            closing.awaitTermination(RUN_S, TimeUnit.SECONDS);
            Map<String, Object> report = server.sweepFindings(Map.of("sweep", sweep, "repeat", again));
            System.out.println(report.get("text"));
            return report.get("state").equals("failed") ? 1 : 0;
        }
    }

    /** Does a run. Returns the arguments of {@code sweep_end}. */
    private static Map<String, Object> ended(long sweep, Run run, Recipe recipe) {
        try {
            run.run(recipe);
            return Map.of("sweep", sweep, "outcome", "passed");
        } catch (TimeoutException hang) {
            return Map.of("sweep", sweep, "outcome", "hung", "message", "still running after " + RUN_S + " s");
        } catch (Throwable problem) {
            return Map.of("sweep", sweep, "outcome", "failed", "message", problem.toString());
        }
    }
}
