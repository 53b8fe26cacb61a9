package suite;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.platform.engine.discovery.DiscoverySelectors.selectClass;

import io.github.minikeeper.JsonTest;
import io.github.minikeeper.SweepFault;
import io.github.minikeeper.Universe;
import io.github.minikeeper.junit.Minikeeper;
import io.github.minikeeper.junit.MinikeeperSweep;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.Watcher;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.data.Stat;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;
import org.junit.platform.launcher.listeners.SummaryGeneratingListener;

/**
 * A job behind a random name, with a bug and without, for sweeps that must find the bug and reach every point. {@link
 * SweepNamesTest} runs it in another process. It uses ZooKeeper's own client, which it replaces instead of waiting for it to
 * reconnect: that takes up to a second.
 */
@Minikeeper
class SweepNames {
  private static final Pattern GENERATOR = Pattern.compile("\\{(\\w+)(?::([^}]*))?\\}");
  private static final Pattern REACHED = Pattern.compile("clean: (\\d+) of \\1 points tried: \\1 passed, .* 0 not reached");
  /** Creates, reads and writes the job, and deletes it; a random parent is created, too. */
  private static final int POINTS_MIN = 8;

  private static String template;
  private static boolean hasBug;

  private ZooKeeper client;
  private String connectString;

  /**
   * Sweeps with the naming schemes of a file: with all, or with every n-th. Prints a line for each, with how often the bug was
   * found, and how often a correct program has reached all points. The exit code is the number of schemes for which that was
   * not each time.
   */
  public static void main(String[] args) throws Exception {
    List<?> schemes = (List<?>) JsonTest.parse(Files.readString(Path.of(args[0])));
    int every = Integer.parseInt(args[1]);
    int times = Integer.parseInt(args[2]);
    int wrong = 0;
    for (int at = 0; at < schemes.size(); at += every) {
      Map<?, ?> scheme = (Map<?, ?>) schemes.get(at);
      template = (String) scheme.get("template");
      int found = 0;
      int reached = 0;
      String unexpected = "";
      for (int i = 0; i < times; i++) {
        String withBug = swept(true);
        if (withBug.contains("FAILED minikeeper sweep: failed: ") && withBug.contains("only='reply-lost:1:setData:1:/jobs/")) {
          found += 1;
        } else {
          unexpected += withBug;
        }
        String sound = swept(false);
        Matcher matcher = REACHED.matcher(sound);
        if (!sound.contains("FAILED") && matcher.find() && Integer.parseInt(matcher.group(1)) >= POINTS_MIN) {
          reached += 1;
        } else {
          unexpected += sound;
        }
      }
      if (found < times || reached < times) wrong += 1;
      System.out.printf("%-40s bug found %d of %d, all points reached %d of %d%n%s",
          scheme.get("name"), found, times, reached, times, unexpected);
    }
    System.exit(wrong);
  }

  /** Does one sweep, and returns what it has printed and why it failed. */
  private static String swept(boolean withBug) {
    hasBug = withBug;
    PrintStream before = System.err;
    ByteArrayOutputStream printed = new ByteArrayOutputStream();
    System.setErr(new PrintStream(printed, true, StandardCharsets.UTF_8));
    SummaryGeneratingListener listener = new SummaryGeneratingListener();
    try {
      LauncherFactory.create().execute(
          LauncherDiscoveryRequestBuilder.request()
              .selectors(selectClass(SweepNames.class))
              .configurationParameter("minikeeper.stories", "off")
              .build(),
          listener);
    } finally {
      System.setErr(before);
    }
    StringBuilder all = new StringBuilder(printed.toString(StandardCharsets.UTF_8));
    listener.getSummary().getFailures()
        .forEach(failure -> all.append("FAILED ").append(failure.getException().getMessage()).append('\n'));
    return all.toString();
  }

  @MinikeeperSweep(faults = {SweepFault.REPLY_LOST, SweepFault.REQUEST_LOST}, all = true)
  void jobIsCountedOnce(Universe universe) throws Exception {
    universe.create("/jobs");
    connectString = universe.connectString();
    connect();
    String path = "/jobs";
    for (String name : name().split("/")) {
      path += "/" + name;
      create(path);
    }
    count(path);
    assertEquals("1", universe.get(path).text());
    delete(path);
    client.close();
  }

  private void connect() throws Exception {
    CountDownLatch connected = new CountDownLatch(1);
    client = new ZooKeeper(connectString, 30_000, event -> {
      if (event.getState() == Watcher.Event.KeeperState.SyncConnected) connected.countDown();
    });
    if (!connected.await(30, TimeUnit.SECONDS)) throw new AssertionError("no connection");
  }

  /** Ends the client without waiting until it is connected again. */
  private void reconnect() throws Exception {
    client.getTestable().injectSessionExpiration();
    connect();
  }

  private void create(String path) throws Exception {
    while (true) {
      try {
        client.create(path, "0".getBytes(), ZooDefs.Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
        return;
      } catch (KeeperException.NodeExistsException own) {
        return;
      } catch (KeeperException.ConnectionLossException lost) {
        reconnect();
      }
    }
  }

  /** Counts again when it does not know whether it has: that is the bug. */
  private void count(String path) throws Exception {
    while (true) {
      try {
        Stat stat = new Stat();
        int count = Integer.parseInt(new String(client.getData(path, false, stat)));
        if (!hasBug && count > 0) return;
        client.setData(path, Integer.toString(count + 1).getBytes(), stat.getVersion());
        return;
      } catch (KeeperException.ConnectionLossException lost) {
        reconnect();
      }
    }
  }

  private void delete(String path) throws Exception {
    while (true) {
      try {
        client.delete(path, -1);
        return;
      } catch (KeeperException.NoNodeException gone) {
        return;
      } catch (KeeperException.ConnectionLossException lost) {
        reconnect();
      }
    }
  }

  /** Returns a new name of the scheme. */
  private static String name() {
    return GENERATOR.matcher(template).replaceAll(match -> generated(match.group(1), match.group(2)));
  }

  private static String generated(String generator, String argument) {
    ThreadLocalRandom random = ThreadLocalRandom.current();
    long now = System.currentTimeMillis();
    switch (generator) {
      case "uuid":
        return UUID.randomUUID().toString();
      case "iso":
        return Instant.ofEpochMilli(now).truncatedTo(ChronoUnit.SECONDS).toString().replace("Z", "")
            + String.format(".%03dZ", now % 1_000);
      case "epoch_ms":
        return Long.toString(now);
      case "epoch_s":
        return Long.toString(now / 1_000);
      case "pid":
        return Integer.toString(random.nextInt(300, 4_194_305));
      case "ulid":
        // 48 bits of time and 80 random ones, 5 bits a letter.
        return letters(CROCKFORD, now >> 2, 9) + random(CROCKFORD, 17);
      case "snowflake":
        return Long.toString((now - 1_288_834_974_657L << 22) + random.nextInt(1 << 22));
      case "pick":
        String[] words = argument.split("\\|");
        return words[random.nextInt(words.length)];
      case "int":
        String[] range = argument.split("-");
        return Integer.toString(random.nextInt(Integer.parseInt(range[0]), Integer.parseInt(range[1]) + 1));
      default:
        String alphabet = ALPHABETS.get(generator);
        if (alphabet == null) throw new IllegalArgumentException("no generator " + generator);
        return random(alphabet, Integer.parseInt(argument));
    }
  }

  private static String random(String alphabet, int length) {
    StringBuilder letters = new StringBuilder();
    for (int i = 0; i < length; i++) letters.append(alphabet.charAt(ThreadLocalRandom.current().nextInt(alphabet.length())));
    return letters.toString();
  }

  private static String letters(String alphabet, long value, int length) {
    StringBuilder letters = new StringBuilder();
    for (int i = length - 1; i >= 0; i--) letters.append(alphabet.charAt((int) (value >> 5 * i & 31)));
    return letters.toString();
  }

  private static final String DIGITS = "0123456789";
  private static final String LOWER = "abcdefghijklmnopqrstuvwxyz";
  private static final String UPPER = LOWER.toUpperCase();
  private static final String CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
  private static final Map<String, String> ALPHABETS = Map.of(
      "hex", "0123456789abcdef",
      "HEX", "0123456789ABCDEF",
      "dec", DIGITS,
      "lower", LOWER,
      "base32", UPPER + "234567",
      "base36", DIGITS + LOWER,
      "base62", DIGITS + UPPER + LOWER,
      "base64url", UPPER + LOWER + DIGITS + "-_",
      "crockford", CROCKFORD);
}
