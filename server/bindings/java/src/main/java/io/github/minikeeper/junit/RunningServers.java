package io.github.minikeeper.junit;

import io.github.minikeeper.MinikeeperServer;
import io.github.minikeeper.Story;
import io.github.minikeeper.Universe;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArraySet;

/**
 * The servers of {@code TestingServer} and {@code TestingCluster} that run in this process: those classes add and remove them,
 * and {@link TestingServerExtension} tells their stories. Uses neither JUnit 4 nor 5, so that either may be missing.
 */
public final class RunningServers {
  private static final Set<MinikeeperServer> RUNNING = new CopyOnWriteArraySet<>();
  /** The test of this thread, if its stories may have to be told. */
  private static final ThreadLocal<RunningServers> CURRENT = new ThreadLocal<>();

  private final String title;
  /** The stories of the servers that this test has stopped, by connect string: a server that has stopped has none. */
  private final Map<String, Story> stopped = new LinkedHashMap<>();

  private RunningServers(String title) {
    this.title = title;
  }

  /** Adds a server that has started. */
  public static void add(MinikeeperServer server) {
    RUNNING.add(server);
  }

  /** Removes a server that is about to be stopped. */
  public static void remove(MinikeeperServer server) {
    RUNNING.remove(server);
    RunningServers current = CURRENT.get();
    if (current != null) current.keep(server);
  }

  /** Returns them. */
  public static List<MinikeeperServer> all() {
    return List.copyOf(RUNNING);
  }

  /** Keeps the stories of the servers that this thread stops, until {@link #end}. */
  static void begin(String title) {
    CURRENT.set(new RunningServers(title));
  }

  /** Tells the stories of all servers, and of those that this thread has stopped, once for each test. */
  static void tell(Optional<String> folder, Throwable failure) {
    RunningServers current = CURRENT.get();
    if (current == null) return;
    CURRENT.remove();
    List<MinikeeperServer> running = all();
    for (MinikeeperServer server : running) {
      current.stopped.remove(server.connectString());
      Stories.tell(running.size() == 1 ? current.title : current.title(server), folder, server, failure);
    }
    current.stopped.forEach((connectString, story) -> Stories.tell(folder, connectString, () -> story));
  }

  static void end() {
    CURRENT.remove();
  }

  private String title(Universe server) {
    return title + " " + server.connectString();
  }

  private void keep(MinikeeperServer server) {
    try {
      stopped.put(server.connectString(), server.story(Map.of("title", title(server))));
    } catch (RuntimeException error) {
      // The test has taken it down.
    }
  }
}
