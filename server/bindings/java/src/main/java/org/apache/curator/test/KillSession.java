package org.apache.curator.test;

import io.github.minikeeper.MinikeeperException;
import io.github.minikeeper.MinikeeperServer;
import io.github.minikeeper.Universe;
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
   * Ends the session of a client.
   *
   * @throws IllegalStateException if no {@link TestingServer} of this process has it
   */
  public static void kill(ZooKeeper client) {
    long session = client.getSessionId();
    String text = client.toString();
    List<String> asked = new ArrayList<>();
    for (TestingServer server : TestingServer.open()) {
      MinikeeperServer minikeeper;
      try {
        minikeeper = server.minikeeper();
      } catch (IllegalStateException error) {
        continue;
      }
      asked.add(server.getConnectString());
      // Two servers may have sessions with the same id; the one it is connected to comes first.
      if (text.contains(":" + server.getPort() + " ") && minikeeper.expire(session) > 0) return;
    }
    for (TestingServer server : TestingServer.open()) {
      try {
        if (server.minikeeper().expire(session) > 0) return;
      } catch (IllegalStateException error) {
        // Stopped meanwhile.
      }
    }
    throw new IllegalStateException(
        "no session 0x" + Long.toHexString(session) + " on any running TestingServer: " + asked);
  }

  /**
   * Ends the session of a client on the server it names.
   *
   * @throws MinikeeperException if there is no control API
   * @throws IllegalStateException if the server does not have the session
   */
  public static void kill(ZooKeeper client, String connectString) throws Exception {
    long session = client.getSessionId();
    if (Universe.at(connectString, null).expire(session) == 0) {
      throw new IllegalStateException("no session 0x" + Long.toHexString(session) + " on " + connectString);
    }
  }

  /** The same; it never takes long. */
  public static void kill(ZooKeeper client, String connectString, int maxMs) throws Exception {
    kill(client, connectString);
  }
}
