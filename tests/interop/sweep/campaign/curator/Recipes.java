import io.github.minikeeper.MinikeeperException;
import io.github.minikeeper.MinikeeperServer;
import io.github.minikeeper.SweepNext;
import io.github.minikeeper.Universe;
import io.github.minikeeper.Znode;
import java.io.IOException;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.Semaphore;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.atomic.DistributedAtomicLong;
import org.apache.curator.framework.recipes.barriers.DistributedBarrier;
import org.apache.curator.framework.recipes.barriers.DistributedDoubleBarrier;
import org.apache.curator.framework.recipes.cache.ChildData;
import org.apache.curator.framework.recipes.cache.CuratorCache;
import org.apache.curator.framework.recipes.cache.CuratorCacheListener;
import org.apache.curator.framework.recipes.cache.NodeCache;
import org.apache.curator.framework.recipes.cache.PathChildrenCache;
import org.apache.curator.framework.recipes.cache.PathChildrenCacheEvent;
import org.apache.curator.framework.recipes.cache.TreeCache;
import org.apache.curator.framework.recipes.cache.TreeCacheEvent;
import org.apache.curator.framework.recipes.leader.LeaderSelector;
import org.apache.curator.framework.recipes.leader.LeaderSelectorListenerAdapter;
import org.apache.curator.framework.recipes.locks.InterProcessMultiLock;
import org.apache.curator.framework.recipes.nodes.GroupMember;
import org.apache.curator.framework.recipes.nodes.PersistentNode;
import org.apache.curator.framework.recipes.nodes.PersistentTtlNode;
import org.apache.curator.framework.recipes.queue.DistributedIdQueue;
import org.apache.curator.framework.recipes.queue.DistributedQueue;
import org.apache.curator.framework.recipes.queue.QueueBuilder;
import org.apache.curator.framework.recipes.queue.QueueConsumer;
import org.apache.curator.framework.recipes.queue.QueueSerializer;
import org.apache.curator.framework.recipes.queue.SimpleDistributedQueue;
import org.apache.curator.framework.recipes.shared.SharedCount;
import org.apache.curator.framework.recipes.shared.SharedCountListener;
import org.apache.curator.framework.recipes.shared.SharedCountReader;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.retry.RetryNTimes;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.QuickClientCnxnSocket;
import org.apache.zookeeper.Watcher;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.client.HostProvider;
import org.apache.zookeeper.client.ZKClientConfig;

/**
 * What Curator's recipes promise, with a fault at each request of their clients.
 *
 * <p>{@code Recipes SCENARIO} does one run on the server at MINIKEEPER_CONNECT; its exit code is the verdict. {@code Recipes
 * SCENARIO NAME=VALUE...} does a sweep with a server of its own and all runs in this JVM, {@code jobs} at a time, and prints
 * its report, and each point that breaks with what the scenario says. Every other name is an argument of the verb
 * {@code sweep_start}.
 *
 * <p>Clients act one after the other wherever a scenario does not need a race, so that each run sends the same requests.
 */
@SuppressWarnings("deprecation") // NodeCache, PathChildrenCache and TreeCache
final class Recipes {
    private static final String PATH = "/recipe";
    private static final String LOCKS = "/locks";
    /** After this a run hangs. Unit: seconds. */
    private static final int RUN_S = 30;
    /** How long a scenario waits for what is promised: longer than all pauses of clients together. Unit: milliseconds. */
    private static final int PATIENCE_MS = 4000;
    /** How long it waits for what makes runs alike, and does not matter otherwise. Unit: milliseconds. */
    private static final int MOMENT_MS = 500;
    private static final int SESSION_MS = 30_000;
    private static final int CONNECTION_MS = 10_000;
    private static final int RETRIES = 500;
    private static final int RETRY_MS = 10;

    private static final Map<String, Scenario> SCENARIOS = new LinkedHashMap<>();

    static {
        SCENARIOS.put("barrier", Recipes::barrier);
        SCENARIOS.put("double_barrier", Recipes::doubleBarrier);
        SCENARIOS.put("queue", run -> queue(run, false, false));
        SCENARIOS.put("queue_with_locks", run -> queue(run, true, false));
        SCENARIOS.put("queue_again", run -> queue(run, true, true));
        SCENARIOS.put("id_queue", Recipes::idQueue);
        SCENARIOS.put("simple_queue", Recipes::simpleQueue);
        SCENARIOS.put("persistent_node", run -> persistentNode(run, CreateMode.EPHEMERAL, false));
        SCENARIOS.put("persistent_sequential", run -> persistentNode(run, CreateMode.EPHEMERAL_SEQUENTIAL, true));
        SCENARIOS.put("persistent_ttl", Recipes::persistentTtl);
        SCENARIOS.put("group", Recipes::group);
        SCENARIOS.put("cache", Recipes::cache);
        SCENARIOS.put("path_cache", Recipes::pathCache);
        SCENARIOS.put("node_cache", Recipes::nodeCache);
        SCENARIOS.put("tree_cache", Recipes::treeCache);
        SCENARIOS.put("shared_count", Recipes::sharedCount);
        SCENARIOS.put("try_shared_count", Recipes::trySharedCount);
        SCENARIOS.put("atomic_long", Recipes::atomicLong);
        SCENARIOS.put("selector", Recipes::selector);
        SCENARIOS.put("multi_lock", Recipes::multiLock);
    }

    private interface Scenario {
        void run(Run run) throws Exception;
    }

    public static void main(String[] arguments) throws Exception {
        Scenario scenario = SCENARIOS.get(arguments[0]);
        if (scenario == null) {
            throw new IllegalArgumentException(arguments[0] + ": no scenario; one of " + SCENARIOS.keySet());
        }
        System.exit(arguments.length == 1 ? once(scenario) : sweep(scenario, fields(arguments)));
    }

    /** "If a barrier is set, waitOnBarrier blocks until it is removed." */
    private static void barrier(Run run) throws Exception {
        Client first = run.connect();
        Client second = run.connect();
        DistributedBarrier barrier = new DistributedBarrier(first.curator, PATH);
        barrier.setBarrier();
        CountDownLatch removed = new CountDownLatch(1);
        Future<Boolean> waits = run.start(() -> {
            boolean passed = new DistributedBarrier(second.curator, PATH).waitOnBarrier(PATIENCE_MS, TimeUnit.MILLISECONDS);
            require(!passed || removed.getCount() == 0, "the barrier is passed before it is removed");
            return passed;
        });
        run.untilWatched(PATH, waits);
        removed.countDown();
        barrier.removeBarrier();
        require(run.result(waits), "the barrier is removed, and waitOnBarrier does not return");
    }

    /** "enter: block until all members have entered", "leave: block until all members have left". Either throws when the connection is lost. */
    private static void doubleBarrier(Run run) throws Exception {
        // Members act by the order of their names, which are random.
        Member lowest = new Member(run.connect(), 0);
        Member highest = new Member(run.connect(), 1);
        Future<Void> other = run.start(() -> {
            enterAndLeave(run, highest, lowest, () -> {});
            return null;
        });
        run.moment(() -> !run.children(PATH).isEmpty() || other.isDone());
        enterAndLeave(run, lowest, highest, () -> run.untilWatched(lowest.path, other));
        run.result(other);
    }

    private static final class Member {
        final Client client;
        final DistributedDoubleBarrier barrier;
        final String path;
        volatile boolean enters;
        volatile boolean leaves;
        volatile boolean hasThrown;

        Member(Client client, int half) throws Exception {
            this.client = client;
            DistributedDoubleBarrier found;
            String name;
            do {
                found = new DistributedDoubleBarrier(client.curator, PATH, 2);
                name = (String) valueOf(found, "ourPath");
            } while (Integer.parseInt(name.substring(PATH.length() + 1, PATH.length() + 2), 16) / 8 != half);
            barrier = found;
            path = name;
        }

        /** Whether its connection or session was lost: then the other may wait in vain, or for nobody. */
        boolean hasFailed() throws Exception {
            return hasThrown || client.hasLost();
        }
    }

    private static void enterAndLeave(Run run, Member member, Member other, Step beforeLeave) throws Exception {
        try {
            member.enters = true;
            boolean entered = run.inTime("enter", () -> member.barrier.enter(PATIENCE_MS, TimeUnit.MILLISECONDS));
            require(entered || other.hasFailed() || member.client.hasLost(), "both enter, and enter returns false");
            if (!entered) {
                return;
            }
            require(other.enters, "enter returns before the other member enters");
            beforeLeave.run();
            member.leaves = true;
            boolean left = run.inTime("leave", () -> member.barrier.leave(PATIENCE_MS, TimeUnit.MILLISECONDS));
            require(left || !other.leaves || other.hasFailed() || member.client.hasLost(), "both leave, and leave returns false");
            require(!left || other.leaves || other.hasFailed(), "leave returns before the other member leaves");
        } catch (KeeperException | IllegalStateException problem) {
            member.hasThrown = true;
            // The connection was lost, or its znode has gone with its session.
            if (problem instanceof Broken || !member.client.hasLost()) {
                throw problem;
            }
        }
    }

    private static final QueueSerializer<String> SERIALIZER = new QueueSerializer<>() {
        @Override
        public byte[] serialize(String item) {
            return bytes(item);
        }

        @Override
        public String deserialize(byte[] data) {
            return text(data);
        }
    };

    private static final class Consumer implements QueueConsumer<String> {
        final List<String> got = new CopyOnWriteArrayList<>();
        private final String fails;

        /** Fails when it first gets this. */
        Consumer(String fails) {
            this.fails = fails;
        }

        @Override
        public void consumeMessage(String message) throws Exception {
            got.add(message);
            if (message.equals(fails) && got.indexOf(message) == got.size() - 1) {
                throw new IOException("the consumer fails");
            }
        }

        @Override
        public void stateChanged(CuratorFramework client, ConnectionState state) {}
    }

    /**
     * Each item that flushPuts has confirmed is consumed; without locks in the order of the puts, and with them once more if the
     * consumer has failed. A put may be repeated.
     */
    private static void queue(Run run, boolean hasLocks, boolean fails) throws Exception {
        List<String> items = List.of("a", "b", "c");
        Client first = run.connect();
        try (DistributedQueue<String> puts = builder(first, null, hasLocks).buildQueue()) {
            puts.start();
            for (String item : items) {
                puts.put(item);
                require(puts.flushPuts(PATIENCE_MS, TimeUnit.MILLISECONDS), "flushPuts times out");
            }
        }
        Client second = run.connect();
        Consumer consumer = new Consumer(fails ? "a" : null);
        try (DistributedQueue<String> queue = builder(second, consumer, hasLocks).buildQueue()) {
            queue.start();
            until(() -> consumer.got.containsAll(items), () -> "put " + items + ", and got " + consumer.got);
            if (fails) {
                until(() -> consumer.got.indexOf("a") != consumer.got.lastIndexOf("a"),
                        () -> "the consumer has failed with a, and got " + consumer.got);
            } else {
                List<String> order = new ArrayList<>(new LinkedHashSet<>(consumer.got));
                require(order.equals(items), "put " + items + ", and got " + consumer.got);
            }
            until(() -> run.children(PATH).isEmpty(), () -> "all are consumed, and the queue has " + run.children(PATH));
            until(() -> run.children(LOCKS).isEmpty(), () -> "all are consumed, and locked is " + run.children(LOCKS));
        }
    }

    private static QueueBuilder<String> builder(Client client, QueueConsumer<String> consumer, boolean hasLocks) {
        QueueBuilder<String> builder = QueueBuilder.builder(client.curator, consumer, SERIALIZER, PATH);
        return hasLocks ? builder.lockPath(LOCKS) : builder;
    }

    /** "Remove any items with the given Id. Returns the number of items removed." A put may be repeated. */
    private static void idQueue(Run run) throws Exception {
        Client client = run.connect();
        try (DistributedIdQueue<String> queue = builder(client, null, false).buildIdQueue()) {
            queue.start();
            queue.put("a", "one");
            queue.put("b", "two");
            require(queue.flushPuts(PATIENCE_MS, TimeUnit.MILLISECONDS), "flushPuts times out");
            Callable<Long> count = () -> run.children(PATH).stream().filter(name -> name.contains("|one|")).count();
            long before = count.call();
            int removed = queue.remove("one");
            require(count.call() == 0, "remove leaves " + run.children(PATH));
            require(removed == before, "remove has removed " + before + ", and returns " + removed);
        }
    }

    /** What was offered is taken. An offer may be repeated. */
    private static void simpleQueue(Run run) throws Exception {
        List<String> items = List.of("a", "b", "c");
        SimpleDistributedQueue offers = new SimpleDistributedQueue(run.connect().curator, PATH);
        for (String item : items) {
            offers.offer(bytes(item));
        }
        SimpleDistributedQueue queue = new SimpleDistributedQueue(run.connect().curator, PATH);
        Set<String> got = new LinkedHashSet<>();
        while (got.size() < items.size()) {
            byte[] item = queue.poll(MOMENT_MS, TimeUnit.MILLISECONDS);
            require(item != null, "offered " + items + ", and got " + got);
            got.add(text(item));
        }
        require(new ArrayList<>(got).equals(items), "offered " + items + ", and got " + got);
    }

    /** "A node that attempts to stay present in ZooKeeper, even through connection and session interruptions." */
    private static void persistentNode(Run run, CreateMode mode, boolean isProtected) throws Exception {
        Client first = run.connect();
        Client second = run.connect();
        try (PersistentNode node = new PersistentNode(first.curator, mode, isProtected, PATH + "/node", bytes("a"))) {
            node.start();
            require(node.waitForInitialCreate(PATIENCE_MS, TimeUnit.MILLISECONDS), "waitForInitialCreate times out");
            until(() -> isPresent(run, first, "a"), () -> "created a, and there is " + run.contents(PATH));
            delete(second, node.getActualPath());
            until(() -> isPresent(run, first, "a"), () -> "another has deleted the node, and there is " + run.contents(PATH));
            node.setData(bytes("b"));
            until(() -> isPresent(run, first, "b"), () -> "the data is set to b, and there is " + run.contents(PATH));
        }
        until(() -> run.children(PATH).isEmpty(), () -> "closed, and there is " + run.contents(PATH));
    }

    /** Whether there is one node, with this data, of the present session of a client. */
    private static boolean isPresent(Run run, Client client, String data) throws Exception {
        List<String> names = run.children(PATH);
        if (names.size() != 1) {
            return false;
        }
        long session = client.session();
        return run.ifThere(PATH + "/" + names.get(0))
                .filter(znode -> znode.text().equals(data) && znode.stat().ephemeralOwner() == session)
                .isPresent();
    }

    /** A node with a time to live that stays while its child is touched, and comes again when it was deleted. */
    private static void persistentTtl(Run run) throws Exception {
        Client client = run.connect();
        TouchedByHand hand = new TouchedByHand();
        PersistentTtlNode node =
                new PersistentTtlNode(client.curator, hand, PATH + "/node", 3_600_000, bytes("a"), "touch", 2);
        try {
            node.start();
            require(node.waitForInitialCreate(PATIENCE_MS, TimeUnit.MILLISECONDS), "waitForInitialCreate times out");
            for (int time = 0; time < 2; time++) {
                until(() -> run.data(PATH + "/node").equals("a"), () -> "created a, and there is " + run.contents(PATH));
                until(() -> hand.touch() && run.children(PATH + "/node").equals(List.of("touch")),
                        () -> "touched, and there is " + run.contents(PATH));
                if (time == 0) {
                    // As when the time of both has passed.
                    run.universe.delete(PATH + "/node", -1, true);
                }
            }
            node.setData(bytes("b"));
            until(() -> run.data(PATH + "/node").equals("b"), () -> "the data is set to b, and there is " + run.contents(PATH));
        } finally {
            node.close();
            hand.shutdownNow();
        }
        require(run.data(PATH + "/node").equals("b"), "close deletes the node");
    }

    /** Touches when a scenario says so. */
    private static final class TouchedByHand extends ScheduledThreadPoolExecutor {
        private volatile Runnable task;

        TouchedByHand() {
            super(1);
        }

        @Override
        public ScheduledFuture<?> scheduleAtFixedRate(Runnable command, long delay, long period, TimeUnit unit) {
            task = command;
            return super.scheduleAtFixedRate(command, 1, 1, TimeUnit.DAYS);
        }

        boolean touch() throws Exception {
            submit(task).get();
            return true;
        }
    }

    /** Each member sees all members. */
    private static void group(Run run) throws Exception {
        try (GroupMember one = new GroupMember(run.connect().curator, PATH, "one", bytes("1"))) {
            one.start();
            until(() -> members(one).equals("{one=1}"), () -> "alone, and sees " + members(one));
            try (GroupMember two = new GroupMember(run.connect().curator, PATH, "two", bytes("2"))) {
                two.start();
                until(() -> members(one).equals("{one=1, two=2}"), () -> "both are members, and the first sees " + members(one));
                until(() -> members(two).equals("{one=1, two=2}"), () -> "both are members, and the second sees " + members(two));
                until(() -> run.children(PATH).size() == 2, () -> "both are members, and there is " + run.contents(PATH));
            }
            until(() -> members(one).equals("{one=1}"), () -> "the second has left, and the first sees " + members(one));
        }
    }

    private static String members(GroupMember member) {
        Map<String, String> found = new TreeMap<>();
        member.getCurrentMembers().forEach((id, data) -> found.put(id, text(data)));
        return found.toString();
    }

    /** Changes a tree, step by step, and expects after each step that a cache has the tree. */
    private static void changeTree(Run run, Client client, Check cacheHasIt) throws Exception {
        cacheHasIt.check("has started");
        write(client, PATH + "/new", "1");
        cacheHasIt.check("create");
        write(client, PATH + "/new", "2");
        cacheHasIt.check("setData");
        write(client, PATH + "/new/child", "3");
        cacheHasIt.check("create of a grandchild");
        delete(client, PATH + "/old");
        cacheHasIt.check("delete");
        write(client, PATH + "/old", "4");
        cacheHasIt.check("create of what was deleted");
        replace(client, PATH + "/old", "5");
        cacheHasIt.check("delete and create in a transaction");
    }

    private interface Check {
        void check(String after) throws Exception;
    }

    private static void seedTree(Run run) {
        run.universe.create(PATH, "0");
        run.universe.create(PATH + "/old", "0");
    }

    /** A cache has what is there, and so has a listener that applies its events. */
    private static void cache(Run run) throws Exception {
        seedTree(run);
        Client writer = run.connect();
        Map<String, String> seen = new ConcurrentHashMap<>();
        try (CuratorCache cache = CuratorCache.build(run.connect().curator, PATH)) {
            CountDownLatch initialized = new CountDownLatch(1);
            cache.listenable().addListener(CuratorCacheListener.builder()
                    .forCreates(data -> seen.put(data.getPath(), text(data.getData())))
                    .forChanges((old, data) -> seen.put(data.getPath(), text(data.getData())))
                    .forDeletes(data -> seen.remove(data.getPath()))
                    .forInitialized(initialized::countDown)
                    .build());
            cache.start();
            require(initialized.await(PATIENCE_MS, TimeUnit.MILLISECONDS), "the cache is not initialized");
            require(contents(cache).equals(run.contents(PATH)), "the cache is initialized, and has " + contents(cache));
            changeTree(run, writer, after -> {
                until(() -> contents(cache).equals(run.contents(PATH)),
                        () -> after + ": the cache has " + contents(cache) + ", and the tree " + run.contents(PATH));
                until(() -> seen.equals(run.contents(PATH)),
                        () -> after + ": the listener has " + new TreeMap<>(seen) + ", and the tree " + run.contents(PATH));
            });
        }
    }

    private static Map<String, String> contents(CuratorCache cache) {
        Map<String, String> found = new TreeMap<>();
        cache.stream().forEach(data -> found.put(data.getPath(), text(data.getData())));
        return found;
    }

    /** The same of a cache of children. */
    private static void pathCache(Run run) throws Exception {
        seedTree(run);
        Client writer = run.connect();
        Map<String, String> seen = new ConcurrentHashMap<>();
        try (PathChildrenCache cache = new PathChildrenCache(run.connect().curator, PATH, true)) {
            CountDownLatch initialized = new CountDownLatch(1);
            List<String> first = new CopyOnWriteArrayList<>();
            cache.getListenable().addListener((client, event) -> {
                ChildData data = event.getData();
                if (event.getType() == PathChildrenCacheEvent.Type.INITIALIZED) {
                    event.getInitialData().forEach(child -> first.add(child.getPath() + "=" + text(child.getData())));
                    initialized.countDown();
                } else if (event.getType() == PathChildrenCacheEvent.Type.CHILD_REMOVED) {
                    seen.remove(data.getPath());
                } else if (data != null) {
                    seen.put(data.getPath(), text(data.getData()));
                }
            });
            cache.start(PathChildrenCache.StartMode.POST_INITIALIZED_EVENT);
            require(initialized.await(PATIENCE_MS, TimeUnit.MILLISECONDS), "the cache is not initialized");
            require(first.equals(List.of(PATH + "/old=0")), "the cache is initialized with " + first);
            changeTree(run, writer, after -> {
                Callable<Map<String, String>> tree = () -> {
                    Map<String, String> all = run.contents(PATH);
                    all.keySet().removeIf(path -> path.split("/").length != 3);
                    return all;
                };
                until(() -> contents(cache).equals(tree.call()),
                        () -> after + ": the cache has " + contents(cache) + ", and the tree " + tree.call());
                until(() -> seen.equals(tree.call()),
                        () -> after + ": the listener has " + new TreeMap<>(seen) + ", and the tree " + tree.call());
            });
        }
    }

    private static Map<String, String> contents(PathChildrenCache cache) {
        Map<String, String> found = new TreeMap<>();
        cache.getCurrentData().forEach(data -> found.put(data.getPath(), text(data.getData())));
        return found;
    }

    /** The same of a cache of one znode. */
    private static void nodeCache(Run run) throws Exception {
        String path = PATH + "/old";
        seedTree(run);
        Client writer = run.connect();
        List<String> seen = new CopyOnWriteArrayList<>();
        try (NodeCache cache = new NodeCache(run.connect().curator, path)) {
            cache.getListenable().addListener(() -> seen.add(data(cache)));
            cache.start(true);
            require(data(cache).equals("0"), "the cache was started with its initial data, and has " + data(cache));
            Check hasIt = after -> {
                until(() -> data(cache).equals(run.data(path)),
                        () -> after + ": the cache has " + data(cache) + ", and the tree " + run.data(path));
                until(() -> seen.get(seen.size() - 1).equals(run.data(path)),
                        () -> after + ": the listener has seen " + seen + ", and the tree has " + run.data(path));
            };
            write(writer, path, "1");
            hasIt.check("setData");
            delete(writer, path);
            hasIt.check("delete");
            write(writer, path, "2");
            hasIt.check("create of what was deleted");
            replace(writer, path, "3");
            hasIt.check("delete and create in a transaction");
        }
    }

    private static String data(NodeCache cache) {
        ChildData data = cache.getCurrentData();
        return data == null ? "nothing" : text(data.getData());
    }

    /** The same of a cache of a tree. */
    private static void treeCache(Run run) throws Exception {
        seedTree(run);
        Client writer = run.connect();
        Map<String, String> seen = new ConcurrentHashMap<>();
        try (TreeCache cache = new TreeCache(run.connect().curator, PATH)) {
            CountDownLatch initialized = new CountDownLatch(1);
            cache.getListenable().addListener((client, event) -> {
                ChildData data = event.getData();
                if (event.getType() == TreeCacheEvent.Type.INITIALIZED) {
                    initialized.countDown();
                } else if (event.getType() == TreeCacheEvent.Type.NODE_REMOVED) {
                    seen.remove(data.getPath());
                } else if (data != null) {
                    seen.put(data.getPath(), text(data.getData()));
                }
            });
            cache.start();
            require(initialized.await(PATIENCE_MS, TimeUnit.MILLISECONDS), "the cache is not initialized");
            require(contents(cache, PATH).equals(run.contents(PATH)), "the cache is initialized, and has " + contents(cache, PATH));
            changeTree(run, writer, after -> {
                until(() -> contents(cache, PATH).equals(run.contents(PATH)),
                        () -> after + ": the cache has " + contents(cache, PATH) + ", and the tree " + run.contents(PATH));
                until(() -> seen.equals(run.contents(PATH)),
                        () -> after + ": the listener has " + new TreeMap<>(seen) + ", and the tree " + run.contents(PATH));
            });
        }
    }

    private static Map<String, String> contents(TreeCache cache, String path) {
        Map<String, String> found = new TreeMap<>();
        ChildData data = cache.getCurrentData(path);
        if (data != null) {
            found.put(path, text(data.getData()));
        }
        Map<String, ChildData> children = cache.getCurrentChildren(path);
        if (children != null) {
            children.keySet().forEach(name -> found.putAll(contents(cache, path + "/" + name)));
        }
        return found;
    }

    /** All see what one has set, and their listeners are told. */
    private static void sharedCount(Run run) throws Exception {
        Client first = run.connect();
        Client second = run.connect();
        try (SharedCount sets = new SharedCount(first.curator, PATH, 1);
                SharedCount sees = new SharedCount(second.curator, PATH, 1)) {
            List<Integer> seen = new CopyOnWriteArrayList<>();
            sees.addListener(new SharedCountListener() {
                @Override
                public void countHasChanged(SharedCountReader count, int value) {
                    seen.add(value);
                }

                @Override
                public void stateChanged(CuratorFramework client, ConnectionState state) {}
            });
            sets.start();
            sees.start();
            for (int value : new int[] {2, 3}) {
                sets.setCount(value);
                require(sets.getCount() == value, "set to " + value + ", and it is " + sets.getCount());
                until(() -> sees.getCount() == value, () -> "another has set " + value + ", and it is " + sees.getCount());
                until(() -> seen.contains(value), () -> "another has set " + value + ", and the listener has seen " + seen);
            }
        }
    }

    /** "Changes the shared count only if its value has not changed since the version specified": each adds one. */
    private static void trySharedCount(Run run) throws Exception {
        Client first = run.connect();
        Client second = run.connect();
        try (SharedCount one = new SharedCount(first.curator, PATH, 0);
                SharedCount two = new SharedCount(second.curator, PATH, 0)) {
            one.start();
            two.start();
            for (SharedCount count : List.of(one, two)) {
                until(() -> count.trySetCount(count.getVersionedValue(), count.getCount() + 1), () -> "trySetCount returns false");
            }
            until(() -> one.getCount() == two.getCount(), () -> "the counts are " + one.getCount() + " and " + two.getCount());
            require(one.getCount() == 2, "both have added one, and the count is " + one.getCount());
        }
    }

    /** "Attempts an atomic increment": each adds one. */
    private static void atomicLong(Run run) throws Exception {
        for (int number = 0; number < 2; number++) {
            DistributedAtomicLong value =
                    new DistributedAtomicLong(run.connect().curator, PATH, new RetryNTimes(RETRIES, RETRY_MS));
            until(() -> value.increment().succeeded(), () -> "increment does not succeed");
        }
        require(run.universe.get(PATH).data()[7] == 2, "both have added one, and the value is " + run.universe.get(PATH).data()[7]);
    }

    /** With autoRequeue, each participant leads in its turn, and one at a time. */
    private static void selector(Run run) throws Exception {
        Participant first = new Participant(run.connect());
        Participant second = new Participant(run.connect());
        first.other = second;
        second.other = first;
        first.selector.start();
        until(() -> first.leads > 0, () -> "the only participant does not lead");
        second.selector.start();
        run.moment(() -> run.children(PATH).size() == 2);
        // A participant whose connection is lost goes to the end of the queue: then the first leads again.
        until(() -> first.endsTurn() && second.leads > 0, () -> "the first has led " + first.leads + " times, and the second does not lead");
        until(() -> run.children(PATH).size() == 2, () -> "the first is not in the queue again: " + run.children(PATH));
        first.selector.close();
        second.selector.close();
        until(() -> run.children(PATH).isEmpty(), () -> "both are closed, and there is " + run.children(PATH));
        for (Participant one : List.of(first, second)) {
            require(one.problem == null, one.problem);
        }
    }

    private static final class Participant extends LeaderSelectorListenerAdapter {
        final LeaderSelector selector;
        final Semaphore mayEnd = new Semaphore(0);
        Participant other;
        volatile int leads;
        private int turns;
        volatile boolean isLeading;
        volatile String problem;
        private final Client client;

        Participant(Client client) {
            this.client = client;
            selector = new LeaderSelector(client.curator, PATH, this);
            selector.autoRequeue();
        }

        /** Ends its present turn, if it leads. */
        boolean endsTurn() {
            if (leads > turns) {
                turns = leads;
                mayEnd.release();
            }
            return true;
        }

        @Override
        public void takeLeadership(CuratorFramework curator) throws Exception {
            if (other.isLeading && !other.client.hasLost() && !client.hasLost()) {
                problem = "both lead";
            }
            isLeading = true;
            leads++;
            try {
                mayEnd.acquire();
            } finally {
                isLeading = false;
            }
        }
    }

    /** Acquires all locks or none, and releases all. */
    private static void multiLock(Run run) throws Exception {
        List<String> paths = List.of(LOCKS + "/a", LOCKS + "/b");
        Client first = run.connect();
        Client second = run.connect();
        InterProcessMultiLock lock = new InterProcessMultiLock(first.curator, paths);
        CountDownLatch released = new CountDownLatch(1);
        require(lock.acquire(PATIENCE_MS, TimeUnit.MILLISECONDS), "the only contender does not acquire the locks");
        Future<Void> other = run.start(() -> {
            InterProcessMultiLock next = new InterProcessMultiLock(second.curator, paths);
            require(next.acquire(PATIENCE_MS, TimeUnit.MILLISECONDS), "released, and the next one does not acquire the locks");
            require(released.getCount() == 0 || first.hasLost(), "both hold the locks");
            next.release();
            return null;
        });
        run.moment(() -> run.children(paths.get(0)).size() == 2 || other.isDone());
        released.countDown();
        lock.release();
        run.result(other);
        until(() -> run.children(paths.get(0)).isEmpty() && run.children(paths.get(1)).isEmpty(),
                () -> "released, and there is " + run.contents(LOCKS));
    }

    /** Creates or changes a znode, however often it must try. */
    private static void write(Client client, String path, String data) throws Exception {
        client.curator.create().orSetData().forPath(path, bytes(data));
    }

    private static void delete(Client client, String path) throws Exception {
        client.curator.delete().quietly().forPath(path);
    }

    private static void replace(Client client, String path, String data) throws Exception {
        client.curator.transaction().forOperations(
                client.curator.transactionOp().delete().forPath(path),
                client.curator.transactionOp().create().forPath(path, bytes(data)));
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private static String text(byte[] data) {
        return data == null ? "nothing" : new String(data, StandardCharsets.UTF_8);
    }

    private static Object valueOf(Object object, String name) throws ReflectiveOperationException {
        Field field = object.getClass().getDeclaredField(name);
        field.setAccessible(true);
        return field.get(object);
    }

    /** A client of a run. */
    private static final class Client implements AutoCloseable {
        final CuratorFramework curator;
        private final ThreadPoolExecutor notifier = (ThreadPoolExecutor) Executors.newFixedThreadPool(1);
        private volatile boolean hasLost;

        Client(Universe universe) throws InterruptedException {
            // Watches are notified that their client has closed.
            notifier.setRejectedExecutionHandler(new ThreadPoolExecutor.DiscardPolicy());
            curator = CuratorFrameworkFactory.builder()
                    .connectString(universe.connectString())
                    .sessionTimeoutMs(SESSION_MS)
                    .connectionTimeoutMs(CONNECTION_MS)
                    .retryPolicy(new RetryNTimes(RETRIES, RETRY_MS))
                    .ensembleTracker(false)
                    .zookeeperFactory(Recipes::quick)
                    // Curator 5.9 never ends the thread that it makes itself.
                    .runSafeService(notifier)
                    .build();
            curator.getConnectionStateListenable().addListener((client, state) -> hasLost |= !state.isConnected());
            curator.start();
            require(curator.blockUntilConnected(CONNECTION_MS, TimeUnit.MILLISECONDS), "not connected");
        }

        long session() throws Exception {
            return curator.getZookeeperClient().getZooKeeper().getSessionId();
        }

        /** Whether its connection or session was lost: it learns that a moment after the server. */
        boolean hasLost() throws Exception {
            long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(MOMENT_MS);
            while (!hasLost && System.nanoTime() < deadline) {
                Thread.sleep(5);
            }
            return hasLost;
        }

        @Override
        public void close() {
            curator.close();
            notifier.shutdownNow();
        }
    }

    /** Without the pauses that protect a real server, as the clients of the Java package. */
    private static ZooKeeper quick(String connectString, int timeoutMs, Watcher watcher, boolean canBeReadOnly)
            throws IOException {
        ZKClientConfig config = new ZKClientConfig();
        config.setProperty(ZKClientConfig.ZOOKEEPER_CLIENT_CNXN_SOCKET, QuickClientCnxnSocket.class.getName());
        Watcher withoutClosed = event -> {
            if (event.getState() != Watcher.Event.KeeperState.Closed) {
                watcher.process(event);
            }
        };
        try {
            // Not a part of the package's API.
            Constructor<?> hosts = Class.forName("io.github.minikeeper.junit.QuickHosts").getDeclaredConstructor(String.class);
            hosts.setAccessible(true);
            HostProvider provider = (HostProvider) hosts.newInstance(connectString);
            return new ZooKeeper(connectString, timeoutMs, withoutClosed, canBeReadOnly, provider, config);
        } catch (ReflectiveOperationException error) {
            throw new IllegalStateException(error);
        }
    }

    /** One run: its server, clients and threads. */
    private static final class Run implements AutoCloseable {
        final Universe universe;
        private final List<Client> clients = new CopyOnWriteArrayList<>();
        private final ExecutorService threads = Executors.newCachedThreadPool();

        Run(Universe universe) {
            this.universe = universe;
        }

        Client connect() throws InterruptedException {
            Client client = new Client(universe);
            clients.add(client);
            return client;
        }

        <T> Future<T> start(Callable<T> call) {
            return threads.submit(call);
        }

        /** Does a call that has a limit of PATIENCE_MS. */
        <T> T inTime(String name, Callable<T> call) throws Exception {
            try {
                return result(start(call), 2 * PATIENCE_MS);
            } catch (TimeoutException endless) {
                throw new Broken(name + " with a limit of " + PATIENCE_MS + " ms does not return in twice this time");
            }
        }

        <T> T result(Future<T> call) throws Exception {
            return result(call, 1000 * RUN_S);
        }

        private <T> T result(Future<T> call, int limitMs) throws Exception {
            try {
                return call.get(limitMs, TimeUnit.MILLISECONDS);
            } catch (ExecutionException failed) {
                throw failed.getCause() instanceof Exception ? (Exception) failed.getCause() : failed;
            }
        }

        /** Returns a znode that may come and go. */
        Optional<Znode> ifThere(String path) {
            return orElse(() -> Optional.of(universe.get(path)), Optional.empty());
        }

        List<String> children(String path) {
            return orElse(() -> universe.children(path), List.of());
        }

        private static <T> T orElse(Supplier<T> read, T ifMissing) {
            try {
                return read.get();
            } catch (MinikeeperException problem) {
                if (problem.status() == 404) {
                    return ifMissing;
                }
                throw problem;
            }
        }

        String data(String path) {
            return ifThere(path).map(Znode::text).orElse("nothing");
        }

        /** Returns a subtree with its data. */
        Map<String, String> contents(String path) {
            Map<String, String> found = new TreeMap<>();
            ifThere(path).ifPresent(znode -> found.put(path, znode.text()));
            for (String child : children(path)) {
                found.putAll(contents(path + "/" + child));
            }
            return found;
        }

        /** Waits for something that makes runs alike. */
        void moment(Callable<Boolean> condition) throws Exception {
            waits(condition, MOMENT_MS);
        }

        void untilWatched(String path, Future<?> unlessDone) throws Exception {
            moment(() -> unlessDone.isDone() || universe.sessions().stream()
                    .anyMatch(session -> session.watches().stream().anyMatch(watch -> watch.path().equals(path))));
        }

        @Override
        public void close() {
            threads.shutdownNow();
            clients.forEach(Client::close);
        }
    }

    private interface Step {
        void run() throws Exception;
    }

    private static boolean waits(Callable<Boolean> condition, int limitMs) throws Exception {
        long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(limitMs);
        while (!condition.call()) {
            if (System.nanoTime() > deadline) {
                return false;
            }
            Thread.sleep(5);
        }
        return true;
    }

    private static void until(Callable<Boolean> condition, Callable<String> otherwise) throws Exception {
        if (!waits(condition, PATIENCE_MS)) {
            throw new Broken(otherwise.call());
        }
    }

    private static void require(boolean holds, String otherwise) {
        if (!holds) {
            throw new Broken(otherwise);
        }
    }

    /** A promise does not hold. */
    private static final class Broken extends IllegalStateException {
        private static final long serialVersionUID = 1;

        Broken(String what) {
            super(what);
        }

        @Override
        public String toString() {
            return "broken: " + getMessage();
        }
    }

    /** Does one run, for {@code minikeeper sweep}. */
    private static int once(Scenario scenario) {
        try (Run run = new Run(Universe.at(System.getenv("MINIKEEPER_CONNECT"), null))) {
            scenario.run(run);
            return 0;
        } catch (Throwable problem) {
            problem.printStackTrace();
            return 1;
        }
    }

    private static Map<String, Object> fields(String[] arguments) {
        Map<String, Object> fields = new HashMap<>();
        for (String argument : Arrays.asList(arguments).subList(1, arguments.length)) {
            String[] parts = argument.split("=", 2);
            if (parts.length != 2) {
                throw new IllegalArgumentException(argument + ": expected NAME=VALUE");
            }
            Object value = parts[1];
            if (parts[1].matches("true|false")) {
                value = Boolean.valueOf(parts[1]);
            } else if (parts[1].matches("[0-9]+")) {
                value = Long.valueOf(parts[1]);
            }
            fields.put(parts[0], value);
        }
        return fields;
    }

    /** Does a sweep, and prints its report. */
    private static int sweep(Scenario scenario, Map<String, Object> fields) throws Exception {
        int jobs = (int) (long) (Long) fields.remove("jobs");
        ExecutorService running = Executors.newCachedThreadPool();
        ExecutorService closing = Executors.newCachedThreadPool();
        Semaphore free = new Semaphore(jobs);
        /** How the last run of each point has ended, if it has failed. */
        Map<String, String> broken = new ConcurrentHashMap<>();
        try (MinikeeperServer server = MinikeeperServer.builder().start()) {
            long sweep = server.sweepStart(fields);
            AtomicInteger numbers = new AtomicInteger();
            while (true) {
                free.acquire();
                String ofRun = "run-" + numbers.incrementAndGet();
                Universe universe = server.createUniverse(ofRun);
                SweepNext step = universe.sweepNext(sweep);
                if (step.run() == 0) {
                    break;
                }
                running.execute(() -> {
                    Run run = new Run(universe);
                    try {
                        Map<String, Object> end = ended(run, scenario, running);
                        String points = step.points().isEmpty() ? "no fault" : step.points();
                        if (end.get("outcome").equals("passed")) {
                            broken.remove(points);
                        } else {
                            broken.put(points, (String) end.get("message"));
                        }
                        end.put("sweep", sweep);
                        end.put("run", step.run());
                        server.sweepEnd(end);
                    } finally {
                        free.release();
                    }
                    closing.execute(() -> {
                        run.close();
                        server.dropUniverse(ofRun);
                    });
                });
            }
            free.acquire(jobs - 1);
            closing.shutdown();
            closing.awaitTermination(RUN_S, TimeUnit.SECONDS);
            System.out.println(server.sweepFindings(Map.of("sweep", sweep)).get("text"));
            new TreeMap<>(broken).forEach((point, message) -> System.out.println("breaks " + point + "\t" + message));
            return broken.isEmpty() ? 0 : 1;
        }
    }

    /** Does a run. Returns the outcome for {@code sweep_end}. */
    private static Map<String, Object> ended(Run run, Scenario scenario, ExecutorService threads) {
        Map<String, Object> end = new HashMap<>();
        Future<Void> call = threads.submit(() -> {
            scenario.run(run);
            return null;
        });
        try {
            call.get(RUN_S, TimeUnit.SECONDS);
            end.put("outcome", "passed");
        } catch (TimeoutException hang) {
            call.cancel(true);
            end.put("outcome", "hung");
            end.put("message", "still running after " + RUN_S + " s");
        } catch (ExecutionException | InterruptedException failed) {
            Throwable problem = failed.getCause() == null ? failed : failed.getCause();
            end.put("outcome", "failed");
            end.put("message", problem.toString().split("\n")[0]);
        }
        return end;
    }
}
