import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;

/**
 * Contends for locks with Curator's recipes and reports the events.
 *
 * <p>Arguments: HOST:PORT, the session timeout in milliseconds. Orders come on standard input, one
 * per line: a word, and options as NAME=VALUE. Times are those of System.nanoTime().
 *
 * <pre>
 * clock                      clock AT_NS
 * connect                    connected SESSION, the session of the orders hold and release
 * contest OPTIONS            a history; the options are those of {@link Contest}
 * hold path=P limit_ms=N     held AT_NS (kept until the order release), or refused AT_NS
 * release                    released AT_NS
 * </pre>
 *
 * <p>A history is a line "history N", a line "session I HEX" for each contender, N lines "I AT_NS
 * CODE" (d due, a asked, s asked to read, g granted, r releasing, R released, f refused, u failed
 * with an unknown outcome), and "end CPU_NS", the CPU time of this process from the start to the last
 * event, except for the thread that only waits. The reply to an order that cannot be carried out is
 * "error TEXT".
 *
 * <p>Curator's reports on the connection of connect, hold and release come between replies, as
 * "belief WORD": held, unsure, or lost, which remains until the next hold.
 *
 * <p>Contender I has its own client and session, which it keeps between orders.
 */
public final class CuratorContest {
    private final Clients clients;
    /** Clients for other addresses of the server, by address. */
    private final Map<String, Clients> elsewhere = new HashMap<>();
    private final PrintStream replies;
    /** The client of the orders connect, hold and release. */
    private CuratorFramework first;
    private InterProcessMutex held;
    private boolean isLost;

    private CuratorContest(Clients clients, PrintStream replies) {
        this.clients = clients;
        this.replies = replies;
    }

    public static void main(String[] args) throws Exception {
        // Not flushed with every line: a history has many.
        PrintStream replies = new PrintStream(new FileOutputStream(FileDescriptor.out), false);
        Clients clients = new Clients(args[0], Integer.parseInt(args[1]));
        CuratorContest contest = new CuratorContest(clients, replies);
        BufferedReader orders = new BufferedReader(new InputStreamReader(System.in));
        for (String line = orders.readLine(); line != null; line = orders.readLine()) {
            try {
                String[] words = line.split(" ");
                contest.obey(words[0], options(words));
            } catch (Exception e) {
                contest.reply("error " + e.toString().replace('\n', ' '));
            }
        }
        // No more orders.
        clients.endSessions();
        for (Clients others : contest.elsewhere.values()) {
            others.endSessions();
        }
        System.exit(0);
    }

    private static Map<String, String> options(String[] words) {
        Map<String, String> options = new HashMap<>();
        for (String word : Arrays.asList(words).subList(1, words.length)) {
            String[] parts = word.split("=", 2);
            if (parts.length != 2) {
                throw new IllegalArgumentException("option " + word + " is not NAME=VALUE");
            }
            options.put(parts[0], parts[1]);
        }
        return options;
    }

    private void obey(String order, Map<String, String> options) throws Exception {
        switch (order) {
            case "clock" -> reply("clock " + System.nanoTime());
            case "connect" -> reply("connected " + Clients.session(first()));
            case "contest" -> contest(options);
            case "hold" -> hold(options.get("path"), Long.parseLong(options.get("limit_ms")));
            case "release" -> release();
            default -> throw new IllegalArgumentException("unknown order " + order);
        }
    }

    private synchronized void reply(String line) {
        replies.println(line);
        replies.flush();
    }

    private void contest(Map<String, String> options) throws Exception {
        String address = options.get("address");
        Clients own = address == null ? clients : elsewhere.computeIfAbsent(address, clients::at);
        List<String> history = Contest.run(own, options);
        synchronized (this) {
            history.forEach(replies::println);
            replies.flush();
        }
    }

    /** Curator's locks belong to threads: this and release() run in the same thread. */
    private void hold(String path, long limitMs) throws Exception {
        if (held != null) {
            throw new IllegalStateException("a lock is held already");
        }
        CuratorFramework client = first();
        synchronized (this) {
            isLost = false;
        }
        InterProcessMutex lock = new InterProcessMutex(client, path);
        boolean isHeld = lock.acquire(limitMs, TimeUnit.MILLISECONDS);
        long atNs = System.nanoTime();
        held = isHeld ? lock : null;
        reply((isHeld ? "held " : "refused ") + atNs);
    }

    private CuratorFramework first() throws Exception {
        if (first == null) {
            first = clients.connect(1).get(0);
            first.getConnectionStateListenable().addListener((of, state) -> believe(switch (state) {
                case LOST -> "lost";
                case SUSPENDED -> "unsure";
                default -> "held";
            }));
        }
        return first;
    }

    private synchronized void believe(String word) {
        isLost |= word.equals("lost");
        reply("belief " + (isLost ? "lost" : word));
    }

    private void release() throws Exception {
        if (held == null) {
            throw new IllegalStateException("no lock is held");
        }
        held.release();
        held = null;
        reply("released " + System.nanoTime());
    }
}
