import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.cache.CuratorCache;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.shared.SharedCount;
import org.apache.curator.retry.RetryNTimes;
import org.apache.zookeeper.KeeperException;

/** Programs whose clients depend on the order of their requests, with Curator: {@code Orders PROGRAM [--sound]}. */
final class Orders {
    private static boolean isSound;

    private interface Body {
        void run(CuratorFramework client) throws Exception;
    }

    public static void main(String[] arguments) {
        isSound = List.of(arguments).contains("--sound");
        int code = 0;
        try {
            switch (arguments[0]) {
                case "check-create":
                    checkCreate();
                    break;
                case "mutex":
                    mutex();
                    break;
                case "shared-count":
                    sharedCount();
                    break;
                case "cache":
                    cache();
                    break;
                default:
                    throw new IllegalArgumentException(arguments[0] + ": no program");
            }
        } catch (Throwable problem) {
            System.out.println("broken: " + problem);
            code = 1;
        }
        System.exit(code);
    }

    /** Creates a znode after a look whether it is there. */
    private static void checkCreate() throws Exception {
        Body body = client -> {
            if (client.checkExists().forPath("/a") != null) {
                return;
            }
            try {
                client.create().forPath("/a");
            } catch (KeeperException.NodeExistsException exists) {
                if (!isSound) {
                    throw exists;
                }
            }
        };
        together(body, body);
    }

    /** Three contenders for a lock. */
    private static void mutex() throws Exception {
        AtomicInteger inside = new AtomicInteger();
        Body body = client -> {
            InterProcessMutex lock = new InterProcessMutex(client, "/lock");
            lock.acquire();
            require(inside.incrementAndGet() == 1, "two hold the lock");
            client.checkExists().forPath("/");
            inside.decrementAndGet();
            lock.release();
        };
        together(body, body, body);
    }

    /** Each adds 1. A thread of the client's own follows the value meanwhile. */
    private static void sharedCount() throws Exception {
        Body body = client -> {
            SharedCount count = new SharedCount(client, "/count", 0);
            count.start();
            while (!count.trySetCount(count.getVersionedValue(), count.getCount() + 1)) {
                Thread.yield();
            }
            count.close();
        };
        together(body, body);
    }

    /** A cache follows what another client creates. */
    private static void cache() throws Exception {
        Body writes = client -> {
            for (int number = 0; number < 3; number++) {
                client.create().creatingParentsIfNeeded().forPath("/tree/" + number);
            }
        };
        Body follows = client -> {
            CuratorCache cache = CuratorCache.build(client, "/tree");
            cache.start();
            long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(10);
            while (cache.size() < 4) {
                require(System.nanoTime() < deadline, "the cache does not follow");
                Thread.sleep(5);
            }
            cache.close();
        };
        together(writes, follows);
    }

    /** Runs each body with a client of its own. */
    private static void together(Body... bodies) throws Exception {
        List<CuratorFramework> clients = new ArrayList<>();
        for (int number = 0; number < bodies.length; number++) {
            clients.add(connect());
        }
        ExecutorService threads = Executors.newFixedThreadPool(bodies.length);
        List<Future<?>> running = new ArrayList<>();
        for (int number = 0; number < bodies.length; number++) {
            Body body = bodies[number];
            CuratorFramework client = clients.get(number);
            running.add(threads.submit(() -> {
                body.run(client);
                return null;
            }));
        }
        for (Future<?> one : running) {
            one.get(20, TimeUnit.SECONDS);
        }
        for (CuratorFramework client : clients) {
            client.close();
        }
    }

    private static CuratorFramework connect() throws Exception {
        CuratorFramework client = CuratorFrameworkFactory.builder()
                .connectString(System.getenv("MINIKEEPER_CONNECT"))
                .sessionTimeoutMs(10_000)
                .connectionTimeoutMs(10_000)
                .retryPolicy(new RetryNTimes(0, 50))
                .ensembleTracker(false)
                .build();
        client.start();
        require(client.blockUntilConnected(10, TimeUnit.SECONDS), "not connected within 10 s");
        return client;
    }

    private static void require(boolean holds, String otherwise) {
        if (!holds) {
            throw new IllegalStateException(otherwise);
        }
    }
}
