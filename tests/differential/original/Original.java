import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import org.apache.zookeeper.Version;
import org.apache.zookeeper.common.Time;
import org.apache.zookeeper.server.ContainerManager;
import org.apache.zookeeper.server.NIOServerCnxnFactory;
import org.apache.zookeeper.server.Request;
import org.apache.zookeeper.server.RequestProcessor;
import org.apache.zookeeper.server.SessionTracker.Session;
import org.apache.zookeeper.server.SessionTrackerImpl;
import org.apache.zookeeper.server.ZooKeeperServer;

/**
 * A ZooKeeper server controlled by lines on stdin. Replies with one line each on stdout.
 *
 * <pre>
 * fresh TICK_MS MIN_MS MAX_MS CHECK_MS   port PORT: a new server with an empty tree, time at 0
 * zxid                                   ok ZXID
 * expire SESSION                         ok ZXID [SESSION]: expires the session, if it exists
 * advance MS                             ok ZXID [SESSION...]: advances the clock; the sessions that expired
 * </pre>
 *
 * Sessions are in hexadecimal. A reply comes once all effects of the command have been applied. The reply to an error is
 * {@code fault TEXT}. The program exits when stdin closes.
 */
public final class Original {
    /** The time limit of a wait. A bound, never a delay. */
    private static final long PATIENCE_NS = 20_000_000_000L;

    /** A server without the thread of the session tracker and without JMX. */
    private static final class Server extends ZooKeeperServer {
        Server(File directory, int tickMs) throws IOException {
            super(directory, directory, tickMs);
        }

        /** The tracker's own thread sleeps for real time; {@link Running#advance} does its work. */
        @Override
        protected void startSessionTracker() {}

        @Override
        protected void createSessionTracker() {
            sessionTracker =
                    new SessionTrackerImpl(
                            this, getZKDatabase().getSessionWithTimeOuts(), tickTime, 1, getZooKeeperServerListener());
        }

        @Override
        protected void registerJMX() {}

        @Override
        protected void unregisterJMX() {}

        RequestProcessor first() {
            return firstProcessor;
        }

        Object tracker() {
            return sessionTracker;
        }
    }

    /** One server and its clock. */
    private static final class Running {
        private final Path directory;
        private final Server server;
        private final NIOServerCnxnFactory factory = new NIOServerCnxnFactory();
        private final int tickMs;
        private final int checkMs;
        private final ContainerManager containers;
        private long elapsedMs;
        private long posted;

        Running(Path below, int tickMs, int minMs, int maxMs, int checkMs) throws Exception {
            this.tickMs = tickMs;
            this.checkMs = checkMs;
            Time.set(0);
            directory = Files.createTempDirectory(below, "data");
            server = new Server(directory.toFile(), tickMs);
            server.setMinSessionTimeout(minMs);
            server.setMaxSessionTimeout(maxMs);
            factory.configure(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
            factory.startup(server);
            RequestProcessor counting =
                    new RequestProcessor() {
                        @Override
                        public void processRequest(Request request) throws RequestProcessorException {
                            posted++;
                            server.first().processRequest(request);
                        }

                        @Override
                        public void shutdown() {}
                    };
            // The maximum rate per minute: no pause between deletions.
            containers = new ContainerManager(server.getZKDatabase(), counting, checkMs, Integer.MAX_VALUE, 0);
        }

        int port() {
            return factory.getLocalPort();
        }

        long zxid() {
            return server.getLastProcessedZxid();
        }

        /** Advances the clock. At each deadline on the way sessions expire first, then the clean-up runs. */
        List<Long> advance(long byMs) throws Exception {
            List<Long> expired = new ArrayList<>();
            long targetMs = elapsedMs + byMs;
            while (elapsedMs < targetMs) {
                long next = Math.min(targetMs, nextMultiple(tickMs));
                elapsedMs = Math.min(next, nextMultiple(checkMs));
                Time.set(elapsedMs);
                if (elapsedMs % tickMs == 0) {
                    for (Session session : due()) {
                        expired.add(session.getSessionId());
                        end(session.getSessionId());
                    }
                }
                if (elapsedMs % checkMs == 0) {
                    long before = zxid();
                    posted = 0;
                    containers.checkContainers();
                    await(before + posted);
                }
            }
            return expired;
        }

        /** Expires a session. Returns whether it existed. */
        boolean end(long session) throws Exception {
            long before = zxid();
            SessionTrackerImpl tracker = (SessionTrackerImpl) server.tracker();
            if (!tracker.isTrackingSession(session)) {
                return false;
            }
            tracker.setSessionClosing(session);
            server.closeSession(session);
            await(before + 1);
            return true;
        }

        private long nextMultiple(long ofMs) {
            return (elapsedMs / ofMs + 1) * ofMs;
        }

        @SuppressWarnings("unchecked")
        private List<Session> due() throws Exception {
            Field field = SessionTrackerImpl.class.getDeclaredField("sessionExpiryQueue");
            field.setAccessible(true);
            Object queue = field.get(server.tracker());
            Method poll = queue.getClass().getMethod("poll");
            List<Session> due = new ArrayList<>((java.util.Set<Session>) poll.invoke(queue));
            // ZooKeeper's order is that of a hash set; this one is deterministic.
            due.sort((a, b) -> Long.compare(a.getSessionId(), b.getSessionId()));
            return due;
        }

        private void await(long zxid) throws IOException {
            long deadline = System.nanoTime() + PATIENCE_NS;
            while (zxid() < zxid) {
                if (System.nanoTime() > deadline) {
                    throw new IOException("zxid " + zxid() + " does not reach " + zxid);
                }
                LockSupport.parkNanos(20_000);
            }
        }

        void stop() throws IOException {
            containers.stop();
            try {
                factory.shutdown();
            } catch (RuntimeException broken) {
                // A server that a request has broken cannot read its own log. The next server has a directory of its own.
                System.err.println(broken);
            }
            delete(directory);
        }
    }

    private static void delete(Path path) throws IOException {
        List<Path> all = new ArrayList<>();
        try (java.util.stream.Stream<Path> walk = Files.walk(path)) {
            walk.forEach(all::add);
        }
        Collections.reverse(all);
        for (Path one : all) {
            Files.deleteIfExists(one);
        }
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream out = System.out;
        // Only replies go to stdout.
        System.setOut(System.err);
        Path below = Files.createTempDirectory(Path.of(arguments[0]), "original");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        out.println("version " + Version.getVersion());
        out.flush();
        Running running = null;
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String answer;
            try {
                String[] words = line.trim().split(" +");
                if (words[0].equals("fresh")) {
                    if (running != null) {
                        running.stop();
                    }
                    running = fresh(below, words);
                    answer = "port " + running.port();
                } else {
                    answer = obey(running, words);
                }
            } catch (Exception fault) {
                answer = "fault " + fault;
            }
            out.println(answer);
            out.flush();
        }
        delete(below);
        Runtime.getRuntime().halt(0);
    }

    private static Running fresh(Path below, String[] words) throws Exception {
        int[] numbers = new int[4];
        for (int i = 0; i < numbers.length; i++) {
            numbers[i] = Integer.parseInt(words[i + 1]);
        }
        return new Running(below, numbers[0], numbers[1], numbers[2], numbers[3]);
    }

    private static String obey(Running running, String[] words) throws Exception {
        if (running == null) {
            throw new IOException("no server; send fresh first");
        }
        switch (words[0]) {
            case "zxid":
                return "ok " + running.zxid();
            case "expire":
                boolean was = running.end(Long.parseUnsignedLong(words[1], 16));
                return "ok " + running.zxid() + (was ? " " + words[1] : "");
            case "advance":
                List<Long> expired = running.advance(Long.parseLong(words[1]));
                StringBuilder answer = new StringBuilder("ok " + running.zxid());
                for (long session : expired) {
                    answer.append(' ').append(Long.toHexString(session));
                }
                return answer.toString();
            default:
                throw new IOException("unknown command " + words[0]);
        }
    }
}
