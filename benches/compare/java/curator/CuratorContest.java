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
 * Contends for locks with Curator's recipes, and tells what happened.
 *
 * <p>Arguments: HOST:PORT, the session timeout in milliseconds. Orders come on standard input, a
 * line each: a word, and options as NAME=VALUE. Times are those of System.nanoTime().
 *
 * <pre>
 * clock                      clock AT_NS
 * connect                    connected SESSION, which is that of the orders hold and release
 * contest OPTIONS            a history; the options are those of {@link Contest}
 * hold path=P limit_ms=N     held AT_NS (kept until the order release), or refused AT_NS
 * release                    released AT_NS
 * </pre>
 *
 * <p>A history is a line "history N", a line "session I HEX" for each contender, N lines "I AT_NS
 * CODE" (d due, a asked, s asked to read, g granted, r releasing, R released, f refused, u failed
 * with an unknown outcome), and "end CPU_NS", the CPU time of this process from the start to the last
 * event, without the thread that only waits for it. The reply to an order that cannot be carried out
 * is "error TEXT".
 *
 * <p>What Curator tells of the connection of connect, hold and release comes between answers, as
 * "belief WORD": held, unsure, or lost, which it remains until the next hold.
 *
 * <p>Contender I has a client and with it a session of its own, which it keeps from order to order.
 */
public final class CuratorContest {
    private final Clients clients;
    /** Clients that reach the server in another way, by address. */
    private final Map<String, Clients> elsewhere = new HashMap<>();
    private final PrintStream answers;
    /** That of the orders connect, hold and release. */
    private CuratorFramework first;
    private InterProcessMutex held;
    private boolean isLost;

    private CuratorContest(Clients clients, PrintStream answers) {
        this.clients = clients;
        this.answers = answers;
    }

    public static void main(String[] args) throws Exception {
        // Not flushed with every line: a history has many.
        PrintStream answers = new PrintStream(new FileOutputStream(FileDescriptor.out), false);
        Clients clients = new Clients(args[0], Integer.parseInt(args[1]));
        CuratorContest contest = new CuratorContest(clients, answers);
        BufferedReader orders = new BufferedReader(new InputStreamReader(System.in));
        for (String line = orders.readLine(); line != null; line = orders.readLine()) {
            try {
                String[] words = line.split(" ");
                contest.obey(words[0], options(words));
            } catch (Exception e) {
                contest.answer("error " + e.toString().replace('\n', ' '));
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
            case "clock" -> answer("clock " + System.nanoTime());
            case "connect" -> answer("connected " + Clients.session(first()));
            case "contest" -> contest(options);
            case "hold" -> hold(options.get("path"), Long.parseLong(options.get("limit_ms")));
            case "release" -> release();
            default -> throw new IllegalArgumentException("no order is called " + order);
        }
    }

    private synchronized void answer(String line) {
        answers.println(line);
        answers.flush();
    }

    private void contest(Map<String, String> options) throws Exception {
        String address = options.get("address");
        Clients own = address == null ? clients : elsewhere.computeIfAbsent(address, clients::at);
        List<String> history = Contest.run(own, options);
        synchronized (this) {
            history.forEach(answers::println);
            answers.flush();
        }
    }

    /** Curator's locks belong to threads: this one and release() are called in the same. */
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
        answer((isHeld ? "held " : "refused ") + atNs);
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
        answer("belief " + (isLost ? "lost" : word));
    }

    private void release() throws Exception {
        if (held == null) {
            throw new IllegalStateException("no lock is held");
        }
        held.release();
        held = null;
        answer("released " + System.nanoTime());
    }
}
