package org.apache.curator.test;

import io.github.minikeeper.MinikeeperException;
import io.github.minikeeper.Universe;
import io.github.minikeeper.Who;
import java.util.ArrayList;
import java.util.List;
import org.apache.zookeeper.ZooKeeper;

/**
 * Stands in for Curator's class of the same name. That one tells the client that its session is over, which it is not;
 * here the server ends it: when this returns, its ephemerals are gone and watchers have been told. The client learns it as
 * soon as it has connected again.
 */
public class KillSession {
  /**
   * Ends the session of a client, on the {@link TestingServer} of this process that it is connected to; while it is not
   * connected, on the only one that runs.
   *
   * @throws IllegalStateException if there is no such server, or it does not have the session
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
        "no " + session + " on any of " + running.size() + " running TestingServers; name the one it is on");
  }

  /**
   * Ends the session of a client on the server it names.
   *
   * @throws MinikeeperException if there is no control API
   * @throws IllegalStateException if the server does not have the session
   */
  public static void kill(ZooKeeper client, String connectString) throws Exception {
    long session = client.getSessionId();
    if (Universe.at(connectString, null).expire(Who.session(session).allowNone()) == 0) {
      throw new IllegalStateException("no session 0x" + Long.toHexString(session) + " on " + connectString);
    }
  }

  /** The same; it never takes long. */
  public static void kill(ZooKeeper client, String connectString, int maxMs) throws Exception {
    kill(client, connectString);
  }
}
