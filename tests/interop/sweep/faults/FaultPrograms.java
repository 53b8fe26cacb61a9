import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.PredicateResults;
import org.apache.curator.framework.recipes.locks.StandardLockInternalsDriver;
import org.apache.curator.retry.RetryNTimes;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.KeeperException.BadVersionException;
import org.apache.zookeeper.KeeperException.ConnectionLossException;
import org.apache.zookeeper.KeeperException.NoNodeException;
import org.apache.zookeeper.KeeperException.NodeExistsException;
import org.apache.zookeeper.KeeperException.SessionExpiredException;
import org.apache.zookeeper.Op;
import org.apache.zookeeper.OpResult;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.data.Stat;

/** Programs that a fault breaks, with Curator and with ZooKeeper's own client: {@code FaultPrograms PROGRAM [--sound]}. */
final class FaultPrograms {
    private static boolean isSound;

    /** How long a program may take, with all its retries. */
    private static final int LIMIT_S = 30;

    /** How long a program waits for a lock: longer than a session lives without its client. */
    private static final int PATIENCE_S = 12;

    public static void main(String[] arguments) throws Exception {
        isSound = List.of(arguments).contains("--sound");
        Thread limit = new Thread(() -> {
            sleep(LIMIT_S * 1000);
            fail("not done within " + LIMIT_S + " s");
        });
        limit.setDaemon(true);
        limit.start();
        switch (arguments[0]) {
            case "stock":
                Stock.run();
                break;
            case "maintenance":
                Maintenance.run();
                break;
            case "account":
                Account.run();
                break;
            default:
                throw new IllegalArgumentException(arguments[0] + ": no program");
        }
        end("done", 0);
    }

    /**
     * Two sellers with a lock. Each reads the stock, asks whether it still holds the lock, and then writes with another client:
     * the answer can be old when it comes. The sound version writes with the version it has read.
     */
    private static final class Stock {
        private static final String LOCK = "/lock";
        private static final String STOCK = "/stock";
        private static CuratorFramework data;

        static void run() throws Exception {
            CuratorFramework first = connect(600, 50, 3000);
            CuratorFramework second = connect(600, 50, 3000);
            // A write that the client repeats by itself could not be told from another's.
            data = connect(0, 0, 3000);
            persist(Stock::create);
            CountDownLatch secondAsked = new CountDownLatch(1);
            Thread other = new Thread(() -> sell(second, () -> {}, secondAsked::countDown));
            sell(first, () -> {
                if (other.getState() == Thread.State.NEW) {
                    other.start();
                    await(secondAsked);
                }
            }, () -> {});
            other.join();
            data.close();
        }

        private static Void create() throws Exception {
            try {
                data.create().forPath(STOCK, new byte[0]);
            } catch (NodeExistsException exists) {
                // By a request whose reply was lost, or in the first start.
            }
            return null;
        }

        /** Sells one. Calls {@code asked} when the lock is acquired or must be waited for, and {@code read} in between. */
        private static void sell(CuratorFramework locks, Runnable read, Runnable asked) {
            String id = UUID.randomUUID() + " ";
            persist(() -> {
                Driver driver = new Driver(asked);
                InterProcessMutex mutex = new InterProcessMutex(locks, LOCK, driver);
                if (!mutex.acquire(PATIENCE_S, TimeUnit.SECONDS)) {
                    fail("the lock cannot be acquired");
                }
                try {
                    Stat before = new Stat();
                    String sold = text(data.getData().storingStatIn(before).forPath(STOCK));
                    read.run();
                    if (sold.contains(id)) {
                        return null;
                    }
                    if (locks.checkExists().forPath(driver.path) == null) {
                        throw new ConnectionLossException();
                    }
                    int version = isSound ? before.getVersion() : -1;
                    Stat after = data.setData().withVersion(version).forPath(STOCK, bytes(sold + id));
                    if (after.getVersion() > before.getVersion() + 1) {
                        fail("a sale has overwritten another");
                    }
                } catch (NoNodeException gone) {
                    create();
                    throw new ConnectionLossException();
                } finally {
                    release(mutex);
                }
                return null;
            });
            locks.close();
        }

        private static void release(InterProcessMutex mutex) {
            try {
                mutex.release();
            } catch (Exception gone) {
                // Curator deletes the znode in the background, or the session has ended.
            }
        }

        /** Says where the znode of a lock is, and when it has been looked at. */
        private static final class Driver extends StandardLockInternalsDriver {
            private final Runnable asked;
            private volatile String path;

            Driver(Runnable asked) {
                this.asked = asked;
            }

            @Override
            public String createsTheLock(CuratorFramework client, String base, byte[] bytes) throws Exception {
                path = super.createsTheLock(client, base, bytes);
                return path;
            }

            @Override
            public PredicateResults getsTheLock(CuratorFramework client, List<String> children, String name, int leases)
                    throws Exception {
                PredicateResults results = super.getsTheLock(client, children, name, leases);
                asked.run();
                return results;
            }
        }
    }

    /**
     * A worker that does nothing during maintenance, which a znode says. It asks with a session of its own, and twice if it gets
     * no answer; then it goes on as if there were none. The sound version does nothing then.
     */
    private static final class Maintenance {
        private static final String FLAG = "/maintenance";
        private static final String WORK = "/work";
        private static CuratorFramework admin;
        private static CuratorFramework worker;

        static void run() throws Exception {
            admin = connect(0, 0, 3000);
            worker = connect(0, 0, 3000);
            put(admin, FLAG);
            tick();
            persist(() -> {
                Stat work = admin.checkExists().forPath(WORK);
                Stat flag = admin.checkExists().forPath(FLAG);
                if (work != null && flag != null && work.getMzxid() > flag.getCzxid()) {
                    fail("the worker has worked during maintenance");
                }
                return null;
            });
            persist(() -> {
                try {
                    return admin.delete().forPath(FLAG);
                } catch (NoNodeException gone) {
                    return null;
                }
            });
            tick();
            admin.close();
            worker.close();
        }

        private static void tick() {
            boolean isPaused;
            try {
                isPaused = ask();
            } catch (KeeperException unknown) {
                isPaused = isSound;
            }
            if (!isPaused) {
                put(worker, WORK);
            }
        }

        private static boolean ask() throws KeeperException {
            for (int attempt = 1; attempt <= 2; attempt += 1) {
                CountDownLatch connected = new CountDownLatch(1);
                try (ZooKeeper zk = new ZooKeeper(address(), 5000, event -> connected.countDown())) {
                    if (connected.await(300, TimeUnit.MILLISECONDS)) {
                        return zk.exists(FLAG, false) != null;
                    }
                } catch (ConnectionLossException | SessionExpiredException again) {
                    // With another session.
                } catch (IOException | InterruptedException problem) {
                    throw new IllegalStateException(problem);
                }
            }
            throw new ConnectionLossException();
        }

        /** Creates a znode, or writes to it. */
        private static void put(CuratorFramework client, String path) {
            persist(() -> {
                try {
                    return client.create().forPath(path, new byte[0]);
                } catch (NodeExistsException exists) {
                    return client.setData().forPath(path, new byte[0]);
                } catch (NoNodeException gone) {
                    throw new ConnectionLossException();
                }
            });
        }
    }

    /**
     * Depositors with a lock that belongs to their session: while the session lives they write. But a server that comes back
     * without its last changes has the session, and not the znode. The sound version writes in a transaction that checks it.
     */
    private static final class Account {
        private static final String LOCK = "/lock";
        private static final String ACCOUNT = "/account";

        private final String id = UUID.randomUUID() + "-";
        private ZooKeeper zk = open();
        private String held;
        private Stat before;
        private String deposits;

        static void run() throws Exception {
            Account first = new Account();
            Account second = new Account();
            CountDownLatch secondAsked = new CountDownLatch(1);
            Thread other = new Thread(() -> {
                second.deposit(() -> {}, secondAsked::countDown);
                secondAsked.countDown();
            });
            first.deposit(() -> {
                if (other.getState() == Thread.State.NEW) {
                    other.start();
                    await(secondAsked);
                }
            }, () -> {});
            other.join();
        }

        /** Deposits once and ends the session. Calls {@code waits} before it waits for the lock, and {@code read} under it. */
        void deposit(Runnable read, Runnable waits) {
            persist(() -> {
                try {
                    while (held == null) {
                        acquire(waits);
                    }
                    before = new Stat();
                    deposits = text(zk.getData(ACCOUNT, false, before));
                    read.run();
                    if (!deposits.contains(id)) {
                        write();
                    }
                } catch (SessionExpiredException expired) {
                    held = null;
                    zk = open();
                    throw expired;
                } catch (NoNodeException gone) {
                    held = null;
                    create();
                    throw new ConnectionLossException();
                }
                zk.close();
                return null;
            });
        }

        private void acquire(Runnable waits) throws Exception {
            List<String> children = zk.getChildren(LOCK, false);
            children.sort((one, other) -> sequence(one).compareTo(sequence(other)));
            int place = 0;
            while (place < children.size() && !children.get(place).startsWith(id)) {
                place += 1;
            }
            if (place == children.size()) {
                zk.create(LOCK + "/" + id, null, ZooDefs.Ids.OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL_SEQUENTIAL);
            } else if (place == 0) {
                held = LOCK + "/" + children.get(0);
            } else {
                CountDownLatch changed = new CountDownLatch(1);
                if (zk.exists(LOCK + "/" + children.get(place - 1), event -> changed.countDown()) != null) {
                    waits.run();
                    if (!changed.await(PATIENCE_S, TimeUnit.SECONDS)) {
                        fail("the lock cannot be acquired");
                    }
                }
            }
        }

        private void write() throws Exception {
            byte[] after = bytes(deposits + id);
            Stat stat;
            if (isSound) {
                List<OpResult> results = zk.multi(List.of(Op.check(held, -1), Op.setData(ACCOUNT, after, -1)));
                stat = ((OpResult.SetDataResult) results.get(1)).getStat();
            } else {
                stat = zk.setData(ACCOUNT, after, -1);
            }
            if (stat.getVersion() > before.getVersion() + 1) {
                fail("a deposit has overwritten another");
            }
        }

        private Void create() throws Exception {
            for (String path : List.of(LOCK, ACCOUNT)) {
                try {
                    zk.create(path, new byte[0], ZooDefs.Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
                } catch (NodeExistsException exists) {
                    // By a request whose reply was lost, or in the first start.
                }
            }
            return null;
        }

        private static String sequence(String name) {
            return name.substring(name.length() - 10);
        }

        private static ZooKeeper open() {
            CountDownLatch connected = new CountDownLatch(1);
            try {
                ZooKeeper zk = new ZooKeeper(address(), 5000, event -> connected.countDown());
                await(connected);
                return zk;
            } catch (IOException problem) {
                throw new IllegalStateException(problem);
            }
        }
    }

    private static String address() {
        String address = System.getenv("MINIKEEPER_CONNECT");
        // Twice: ZooKeeper's client waits a second before it connects to its only server again.
        return address + "," + address;
    }

    private static CuratorFramework connect(int retries, int pauseMs, int connectionTimeoutMs) throws Exception {
        CuratorFramework client = CuratorFrameworkFactory.builder()
                .connectString(address())
                .sessionTimeoutMs(5000)
                .connectionTimeoutMs(connectionTimeoutMs)
                .retryPolicy(new RetryNTimes(retries, pauseMs))
                .ensembleTracker(false)
                .build();
        client.start();
        client.blockUntilConnected();
        // Clients are numbered in the order of their first requests.
        persist(() -> client.checkExists().forPath("/"));
        return client;
    }

    /** Does a step until it has been done without a loss of the connection. The parts of a step can be repeated. */
    private static <T> T persist(Callable<T> step) {
        for (;;) {
            try {
                return step.call();
            } catch (ConnectionLossException | SessionExpiredException | BadVersionException again) {
                sleep(50);
            } catch (Exception problem) {
                fail(problem.toString());
            }
        }
    }

    private static void await(CountDownLatch latch) {
        try {
            latch.await(LIMIT_S, TimeUnit.SECONDS);
        } catch (InterruptedException interrupted) {
            throw new IllegalStateException(interrupted);
        }
    }

    private static void sleep(long ms) {
        try {
            Thread.sleep(ms);
        } catch (InterruptedException interrupted) {
            throw new IllegalStateException(interrupted);
        }
    }

    private static String text(byte[] bytes) {
        return new String(bytes, StandardCharsets.UTF_8);
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private static void fail(String what) {
        end("broken: " + what, 1);
    }

    /** Ends the program. Threads that wait must not keep it. */
    private static void end(String line, int code) {
        System.out.println(line);
        System.exit(code);
    }
}
