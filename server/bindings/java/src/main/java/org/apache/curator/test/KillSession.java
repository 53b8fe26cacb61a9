package org.apache.curator.test;

import io.github.minikeeper.MinikeeperException;
import io.github.minikeeper.MinikeeperServer;
import io.github.minikeeper.Session;
import io.github.minikeeper.Universe;
import io.github.minikeeper.Who;
import java.util.List;
import org.apache.zookeeper.ZooKeeper;

/**
 * Replaces Curator's class of the same name. As Curator's, it makes the client believe that its session has expired, so that
 * a Curator client is LOST and reconnects with a new session. Curator's leaves the session on the server until it times out;
 * here the server ends it: when this returns, its ephemerals are deleted and watchers notified.
 */
public class KillSession {
  /**
   * Ends the session of a client on the {@link TestingServer} or {@link TestingCluster} of this process that it is connected to;
   * if it is not connected, on the only running one.
   *
   * @throws IllegalStateException if there is no such server, or the server does not have the session
   */
  public static void kill(ZooKeeper client) {
    String text = client.toString();
    List<MinikeeperServer> running = List.copyOf(TestingServer.RUNNING);
    for (MinikeeperServer server : running) {
      // Two servers may have sessions with the same id.
      boolean isAsked = running.size() == 1;
      for (String address : server.connectString().split(",")) {
        isAsked |= text.contains(address.substring(address.lastIndexOf(':')) + " ");
      }
      if (isAsked && kill(client, server)) return;
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
    if (!kill(client, Universe.at(connectString, null))) {
      String session = "session 0x" + Long.toHexString(client.getSessionId());
      throw new IllegalStateException("no " + session + " on " + connectString);
    }
  }

  /** Like {@link #kill(ZooKeeper, String)}; ignores the time limit. */
  public static void kill(ZooKeeper client, String connectString, int maxMs) throws Exception {
    kill(client, connectString);
  }

  /** Ends the session of a client on this server. Returns false if the server does not have it. */
  private static boolean kill(ZooKeeper client, Universe server) {
    long id = client.getSessionId();
    boolean isThere = false;
    for (Session session : server.sessions()) isThere |= session.id() == id;
    if (!isThere) return false;
    // Before the server closes the connection: the client would sometimes report that first, as in no test of Curator's.
    client.getTestable().injectSessionExpiration();
    // Its client may have closed the session meanwhile.
    server.expire(Who.session(id).allowNone());
    return true;
  }
}
