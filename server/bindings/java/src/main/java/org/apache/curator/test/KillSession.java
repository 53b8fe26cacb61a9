package org.apache.curator.test;

import io.github.minikeeper.MinikeeperException;
import io.github.minikeeper.Universe;
import io.github.minikeeper.Who;
import java.util.ArrayList;
import java.util.List;
import org.apache.zookeeper.ZooKeeper;

/**
 * Replaces Curator's class of the same name. Curator's only tells the client that its session has expired, while the
 * server keeps it. Here the server ends the session: when this returns, its ephemerals are deleted and watchers
 * notified. The client learns it when it has reconnected.
 */
public class KillSession {
  /**
   * Ends the session of a client on the {@link TestingServer} of this process that it is connected to; if it is not
   * connected, on the only running one.
   *
   * @throws IllegalStateException if there is no such server, or the server does not have the session
   */
  public static void kill(ZooKeeper client) {
    String text = client.toString();
    List<TestingServer> running = List.copyOf(TestingServer.open());
    List<TestingServer> asked = new ArrayList<>(running);
    // Two servers may have sessions with the same id.
    if (running.size() > 1) asked.removeIf(server -> !text.contains(":" + server.getPort() + " "));
    for (TestingServer server : asked) {
      if (server.minikeeper().expire(Who.session(client.getSessionId()).allowNone()) > 0) return;
    }
    String session = "session 0x" + Long.toHexString(client.getSessionId());
    throw new IllegalStateException(
        "no " + session + " on any of " + running.size() + " running TestingServers; pass its connect string");
  }

  /**
   * Ends the session of a client on the server with this connect string.
   *
   * @throws MinikeeperException if the server has no control API
   * @throws IllegalStateException if the server does not have the session
   */
  public static void kill(ZooKeeper client, String connectString) throws Exception {
    long session = client.getSessionId();
    if (Universe.at(connectString, null).expire(Who.session(session).allowNone()) == 0) {
      throw new IllegalStateException("no session 0x" + Long.toHexString(session) + " on " + connectString);
    }
  }

  /** Like {@link #kill(ZooKeeper, String)}; ignores the time limit. */
  public static void kill(ZooKeeper client, String connectString, int maxMs) throws Exception {
    kill(client, connectString);
  }
}
