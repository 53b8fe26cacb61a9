package io.github.minikeeper.junit;

import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import org.apache.zookeeper.client.HostProvider;

/**
 * The addresses of a client that reconnects at once. ZooKeeper's own class pauses for a second when it has tried all addresses,
 * which is before the first attempt to reconnect if there is only one; and the client sleeps for up to a second before each such
 * attempt. Its thread asks for an address directly before that sleep, which ends when the thread is interrupted.
 */
final class QuickHosts implements HostProvider {
  /** Between attempts that fail. */
  private static final long PAUSE_MS = 20;

  private volatile List<InetSocketAddress> addresses;
  private int next;
  private int attempts;
  /** Whether the client sleeps before the next attempt: it does once it has been connected. */
  private boolean sleeps;

  /** With the addresses of a connect string. */
  QuickHosts(String connectString) {
    List<InetSocketAddress> all = new ArrayList<>();
    for (String address : connectString.split("/", 2)[0].split(",")) {
      int colon = address.lastIndexOf(':');
      all.add(new InetSocketAddress(address.substring(0, colon), Integer.parseInt(address.substring(colon + 1))));
    }
    addresses = all;
  }

  @Override
  public int size() {
    return addresses.size();
  }

  @Override
  public InetSocketAddress next(long pauseMs) {
    attempts += 1;
    if (attempts > size()) pause();
    // A client that has not slept after all would not connect.
    boolean hasSlept = !Thread.interrupted();
    if (sleeps && hasSlept) Thread.currentThread().interrupt();
    List<InetSocketAddress> known = addresses;
    next += 1;
    return known.get((next - 1) % known.size());
  }

  private static void pause() {
    try {
      Thread.sleep(PAUSE_MS);
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
    }
  }

  @Override
  public void onConnected() {
    attempts = 0;
    sleeps = true;
  }

  @Override
  public boolean updateServerList(Collection<InetSocketAddress> servers, InetSocketAddress current) {
    addresses = new ArrayList<>(servers);
    return false;
  }
}
