import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.retry.RetryOneTime;
import org.apache.zookeeper.ZooKeeper;

/** Clients by number, each with its own session, connected when first needed. */
final class Clients {
    private static final int CONNECTION_TIMEOUT_MS = 10_000;
    /** How long clients may take to connect, all of them together. */
    private static final int CONNECT_LIMIT_MS = 30_000;
    /** How long sessions may take to end. */
    private static final long END_LIMIT_NS = TimeUnit.SECONDS.toNanos(1);

    private final String address;
    private final int sessionTimeoutMs;
    private final List<CuratorFramework> clients = new ArrayList<>();

    Clients(String address, int sessionTimeoutMs) {
        this.address = address;
        this.sessionTimeoutMs = sessionTimeoutMs;
    }

    /** Returns clients for the same server at another address. */
    Clients at(String address) {
        return new Clients(address, sessionTimeoutMs);
    }

    /** Returns the first {@code count} clients, connected. */
    List<CuratorFramework> connect(int count) throws Exception {
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
        return List.copyOf(clients.subList(0, count));
    }

    /** Ends a session, which removes its znodes; another client gets its number. */
    void replace(CuratorFramework client) {
        clients.remove(client);
        client.close();
    }

    /**
     * Ends sessions now rather than by their timeout. A client that is closed sleeps for 100 ms while
     * it holds a lock that all clients share and that the others need to announce their closing. So
     * all are closed at once, and of more than a hundred one or two may end only by their timeout.
     */
    void endSessions() throws InterruptedException {
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

    static String session(CuratorFramework client) throws Exception {
        return Long.toHexString(client.getZookeeperClient().getZooKeeper().getSessionId());
    }
}
