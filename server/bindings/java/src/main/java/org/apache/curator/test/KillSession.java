package org.apache.curator.test;

import io.github.minikeeper.MinikeeperException;
import io.github.minikeeper.MinikeeperServer;
import io.github.minikeeper.Universe;
import io.github.minikeeper.Who;
import io.github.minikeeper.junit.RunningServers;
import java.util.List;
import org.apache.zookeeper.ZooKeeper;

/**
 * Replaces Curator's class of the same name. As Curator's, it makes the client believe that its session has expired, so that
 * a Curator client is LOST and reconnects with a new session. Curator's leaves the session on the server until it times out;
 * here the server ends it: when this returns, its ephemerals are deleted and watchers notified.
 *
 * <p>As Curator's, it never fails: a session that has ended, or that no server can be asked about, is ended in the client only.
 */
public class KillSession {
  /** Ends the session of a client, in the client and on the {@link TestingServer} or {@link TestingCluster} of this process. */
  public static void kill(ZooKeeper client) {
    long id = client.getSessionId();
    String text = client.toString();
    // Before the server closes the connection: the client would sometimes report that first, as in no test of Curator's.
    client.getTestable().injectSessionExpiration();
    List<MinikeeperServer> running = RunningServers.all();
    for (MinikeeperServer server : running) {
      // Two servers may have sessions with the same id.
      boolean isAsked = running.size() == 1;
      for (String address : server.connectString().split(",")) {
        isAsked |= text.contains(address.substring(address.lastIndexOf(':')) + " ");
      }
      if (isAsked) expire(id, server);
    }
  }

  /** Ends the session of a client, in the client and on the server with this connect string, if that has a control API. */
  public static void kill(ZooKeeper client, String connectString) throws Exception {
    long id = client.getSessionId();
    client.getTestable().injectSessionExpiration();
    expire(id, Universe.at(connectString, null));
  }

  /** Like {@link #kill(ZooKeeper, String)}; ignores the time limit. */
  public static void kill(ZooKeeper client, String connectString, int maxMs) throws Exception {
    kill(client, connectString);
  }

  private static void expire(long id, Universe server) {
    try {
      server.expire(Who.session(id).allowNone());
    } catch (MinikeeperException error) {
      // The server is down, or is another one: as in Curator, the session remains until it times out.
    }
  }
}
