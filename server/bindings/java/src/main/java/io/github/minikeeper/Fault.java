package io.github.minikeeper;

import java.time.Duration;
import java.util.Optional;

/**
 * An injected fault. Closing removes it. The static methods describe faults to inject.
 *
 * <p>A fault that has never acted has tested nothing: then closing it throws {@link MinikeeperException} (409), unless
 * it is {@link FaultSpec#optional} or already removed. In try-with-resources this does not hide an exception of the block.
 */
public final class Fault implements AutoCloseable {
  private final Universe universe;
  final long id;
  private volatile long hits = -1;

  Fault(Universe universe, long id) {
    this.universe = universe;
    this.id = id;
  }

  /**
   * Resets connections when they are accepted. Only a {@link MinikeeperServer} has it, not a universe that it created. Limit
   * it with {@link FaultSpec#times} or {@link FaultSpec#from}: the verbs of this package, {@link #remove} among them, connect
   * to the same port.
   */
  public static FaultSpec refuse() {
    return new FaultSpec("refuse");
  }

  /**
   * Serves requests later, by this time of the server's clock. Later requests of the connection wait behind a delayed one.
   *
   * @throws IllegalArgumentException if it is less than 1 ms
   */
  public static FaultSpec delay(Duration by) {
    return FaultSpec.delay("delay", by);
  }

  /** Loses requests: they are not carried out, not answered, and do not renew the session. */
  public static FaultSpec dropRequest() {
    return new FaultSpec("drop-request");
  }

  /** Carries requests out and closes the connection instead of replying. */
  public static FaultSpec loseReply() {
    return new FaultSpec("lose-reply");
  }

  /** Carries requests out and never replies. The connection stays open. */
  public static FaultSpec neverAnswer() {
    return new FaultSpec("never-answer");
  }

  /** Replies with this error and does not carry the request out. */
  public static FaultSpec error(ErrorCode code) {
    return FaultSpec.error(code);
  }

  /** Closes the connection instead of serving the request. */
  public static FaultSpec cut() {
    return new FaultSpec("cut");
  }

  /** Carries requests out and closes the connection in the middle of the reply. */
  public static FaultSpec cutReply() {
    return new FaultSpec("cut-reply");
  }

  /**
   * Keeps watch events back until the fault is removed; replies overtake them. Its path is that of the event, its session
   * that of the watcher.
   */
  public static FaultSpec holdEvents() {
    return new FaultSpec("hold-events");
  }

  /**
   * Keeps each watch event back until the watcher's next request was answered and another one arrives, pings aside, but no
   * longer than this time of the server's clock. Otherwise like {@link #holdEvents}.
   *
   * @throws IllegalArgumentException if it is less than 1 ms
   */
  public static FaultSpec delayEvents(Duration atMost) {
    return FaultSpec.delay("delay-events", atMost);
  }

  /**
   * Carries requests out now, and replies later, by this time of the server's clock. Until then the server sends the client
   * nothing and reads nothing from it, and its session counts as silent: if it expires, the reply is lost.
   *
   * @throws IllegalArgumentException if it is less than 1 ms
   */
  public static FaultSpec delayReply(Duration by) {
    return FaultSpec.delay("delay-reply", by);
  }

  /** Carries requests out, replies, and then closes the connection. */
  public static FaultSpec cutAfter() {
    return new FaultSpec("cut-after");
  }

  /** Carries requests out, replies, and then expires the client's session. */
  public static FaultSpec expire() {
    return new FaultSpec("expire");
  }

  /**
   * Carries requests out and expires the client's session, but sends the reply, later, by this time of the server's clock,
   * and closes the connection after the same time again. To the client this looks as if its process had stood still for longer
   * than the session's timeout.
   *
   * @throws IllegalArgumentException if it is less than 1 ms
   */
  public static FaultSpec pause(Duration by) {
    return FaultSpec.delay("pause", by);
  }

  /**
   * From the request on, closes all connections, and new ones at their handshake, until the fault is removed. Sessions live on,
   * and expire as usual. The verbs of this package still work.
   */
  public static FaultSpec outage() {
    return new FaultSpec("outage");
  }

  /**
   * Like {@link #outage()}, for this time of the server's clock.
   *
   * @throws IllegalArgumentException if it is less than 1 ms
   */
  public static FaultSpec outage(Duration lasting) {
    return FaultSpec.delay("outage", lasting);
  }

  /** Like {@link #outage()}, for the session of the request alone. */
  public static FaultSpec clientOutage() {
    return new FaultSpec("client-outage");
  }

  /**
   * Like {@link #clientOutage()}, for this time of the server's clock.
   *
   * @throws IllegalArgumentException if it is less than 1 ms
   */
  public static FaultSpec clientOutage(Duration lasting) {
    return FaultSpec.delay("client-outage", lasting);
  }

  /**
   * Carries the request out, closes all connections without a reply, and from then on serves nothing for the sessions that exist
   * now, as if the processes of all clients had been killed. The sessions live on until they expire. New ones are served.
   */
  public static FaultSpec crash() {
    return new FaultSpec("crash");
  }

  /**
   * Carries the request out, replies, takes the last change back, and closes all connections, as a server that comes back with
   * an older disk.
   */
  public static FaultSpec rollback() {
    return new FaultSpec("rollback");
  }

  /**
   * Does nothing but count: {@link #untilHit} waits for the request, and {@link #lastHit} tells which it was. The faults
   * injected after it are checked, too.
   */
  public static FaultSpec trigger() {
    return new FaultSpec("trigger");
  }

  /** How often it has acted so far. Throws {@link MinikeeperException} (404) if another caller has removed it. */
  public long hits() {
    return hits >= 0 ? hits : listed().hits();
  }

  /**
   * What it has acted on last; empty if it has not acted. Throws {@link MinikeeperException} (404) if it was removed: ask
   * before that.
   */
  public Optional<FaultHit> lastHit() {
    return Optional.ofNullable(listed().lastHit());
  }

  private InjectedFault listed() {
    for (InjectedFault fault : universe.faults()) {
      if (fault.fault() == id) return fault;
    }
    throw new MinikeeperException(this + ": unknown, or removed", 404, null);
  }

  /** Waits until it has acted this often, and returns how often it has; or throws {@link MinikeeperException} (408). */
  public long untilHit(long hits, Duration within) {
    return universe.untilHit(this, hits, within);
  }

  /**
   * Removes it. Throws {@link MinikeeperException}: 404 if it was already removed; 409 if it has never acted and is not
   * optional, in which case it is removed anyway.
   *
   * @return how often it has acted
   */
  public long remove() {
    try {
      hits = universe.removeNow(this);
    } catch (MinikeeperException error) {
      if (error.status() == 409) hits = 0;
      throw error;
    }
    return hits;
  }

  /** Removes it unless it was already removed. Throws {@link MinikeeperException} (409) if it has never acted. */
  @Override
  public void close() {
    if (hits >= 0) return;
    try {
      remove();
    } catch (MinikeeperException error) {
      // A missing fault was removed on purpose.
      if (error.status() != 404) throw error;
    }
  }

  @Override
  public String toString() {
    return "fault " + id;
  }
}
