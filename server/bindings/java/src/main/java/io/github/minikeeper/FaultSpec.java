package io.github.minikeeper;

import java.net.Inet6Address;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;

/**
 * A fault to inject: what it does, and what it matches. {@link Fault} creates it, {@link Universe#inject(FaultSpec)} injects
 * it:
 *
 * <pre>{@code
 * try (Fault lost = universe.inject(Fault.loseReply().on(FaultOp.CREATE).at("/locks/*").once())) {
 *   ...
 * }
 * }</pre>
 *
 * <p>By default it matches every request of every client, any number of times. If several faults match a request, the one
 * injected first acts.
 *
 * <p>Immutable: each method returns a copy, so that a constant can be shared and restricted further. A method throws {@link
 * IllegalArgumentException} if its value, or the combination with what was said before, makes no sense.
 */
public final class FaultSpec {
  private static final int PATTERN_BYTES_MAX = 1_024;
  /** The operations whose path may end with a slash. */
  private static final Set<FaultOp> CREATES =
      EnumSet.of(FaultOp.CREATE, FaultOp.CREATE2, FaultOp.CREATE_CONTAINER, FaultOp.CREATE_TTL, FaultOp.MULTI);

  private final String action;
  /** In the order in which they were given, by the names of the control API. */
  private final Map<String, Object> fields;
  private final Set<FaultOp> ops;

  private FaultSpec(String action, Map<String, Object> fields, Set<FaultOp> ops) {
    this.action = action;
    this.fields = fields;
    this.ops = ops;
  }

  FaultSpec(String action) {
    this(action, Map.of(), Set.of());
  }

  static FaultSpec delay(String action, Duration by) {
    // A longer one is cut off as the verb would.
    if (by.toMillis() < 1) {
      throw wrong("action \"" + action + "\": needs a duration of at least 1 ms, not " + by.toNanos() + " ns");
    }
    return new FaultSpec(action).with("delay_ms", by.toMillis());
  }

  static FaultSpec error(ErrorCode code) {
    return new FaultSpec("error").with("error", Objects.requireNonNull(code, "code").name());
  }

  /**
   * Matches only these operations, and those of earlier calls.
   *
   * @throws IllegalArgumentException for {@link Fault#refuse}, {@link Fault#holdEvents} and {@link Fault#delayEvents}, which
   *     match no operation
   */
  public FaultSpec on(FaultOp first, FaultOp... more) {
    if (action.equals("refuse")) throw pointless("an operation: there is no request yet");
    if (action.equals("hold-events") || action.equals("delay-events")) throw pointless("an operation: an event has none");
    Set<FaultOp> all = EnumSet.of(first, more);
    all.addAll(ops);
    return new FaultSpec(action, fields, all);
  }

  /**
   * Matches only paths with this pattern; in a multi, any of its paths. {@code *} matches any characters within one name,
   * {@code **} any characters at all. The path of a sequential create is the one that the client sends, without the number.
   *
   * @throws IllegalArgumentException if no path can match, and for {@link Fault#refuse}
   */
  public FaultSpec at(String pattern) {
    if (action.equals("refuse")) throw pointless("a path: there is no request yet");
    String why = wrongWith(pattern);
    if (why != null) throw wrong("path pattern \"" + shortened(pattern) + "\": " + why);
    return with("path", pattern);
  }

  private static String wrongWith(String pattern) {
    if (pattern.getBytes(StandardCharsets.UTF_8).length > PATTERN_BYTES_MAX) {
      return "longer than " + PATTERN_BYTES_MAX + " bytes";
    }
    if (!pattern.startsWith("/") && !pattern.startsWith("*")) return "must begin with \"/\" or \"*\" to match a path";
    if (pattern.indexOf('\0') >= 0) return "has a null character, which no path can have";
    String[] names = pattern.split("/", -1);
    for (int i = 1; i < names.length; i++) {
      // The last name may be empty: the path is the root, or that of a sequential create.
      if (names[i].isEmpty() && i < names.length - 1) return "has an empty name (//), which no path can have";
      if (names[i].equals(".") || names[i].equals("..")) return "has a name . or .., which no path can have";
    }
    return null;
  }

  /**
   * Matches only this session: {@code zooKeeper.getSessionId()}. In place of an earlier session, client or address.
   *
   * @throws IllegalArgumentException for {@link Fault#refuse}: the session of a new connection is not known yet
   */
  public FaultSpec of(long session) {
    if (action.equals("refuse")) throw pointless("a session: it is not known yet");
    return ofAnyone().with("session", "0x" + Long.toHexString(session));
  }

  /** Matches only this session. See {@link #of(long)}. */
  public FaultSpec of(Session session) {
    return of(session.id());
  }

  /**
   * Matches only the client with this number, from 1: sessions are numbered in the order of their first requests since
   * there has been any fault. In place of an earlier session, client or address.
   *
   * @throws IllegalArgumentException if the number is less than 1, and for {@link Fault#refuse}: the session of a new
   *     connection is not known yet
   */
  public FaultSpec client(int number) {
    if (action.equals("refuse")) throw pointless("a session: it is not known yet");
    if (number < 1) throw wrong("client " + number + ": the first one is number 1");
    return ofAnyone().with("client", number);
  }

  /** Matches only clients of this address, from any port. In place of an earlier session, client or address. */
  public FaultSpec from(InetAddress address) {
    return ofAnyone().with("address", text(address));
  }

  /**
   * Matches only the client that is connected from this address and port. In place of an earlier session, client or address.
   *
   * @throws IllegalArgumentException if the address is not resolved
   */
  public FaultSpec from(InetSocketAddress address) {
    if (address.isUnresolved()) throw wrong("address " + address + ": not resolved; use an IP address");
    String host = text(address.getAddress());
    boolean isIpv6 = address.getAddress() instanceof Inet6Address;
    return ofAnyone().with("address", (isIpv6 ? "[" + host + "]" : host) + ":" + address.getPort());
  }

  private static String text(InetAddress address) {
    String text = address.getHostAddress();
    int scope = text.indexOf('%');
    return scope < 0 ? text : text.substring(0, scope);
  }

  /**
   * Does not act on the first matches.
   *
   * @throws IllegalArgumentException if the number is negative
   */
  public FaultSpec skip(long matches) {
    if (matches < 0) throw wrong("skip " + matches + ": must not be negative");
    return with("skip", matches);
  }

  /**
   * Acts at most this many times.
   *
   * @throws IllegalArgumentException if the number is less than 1
   */
  public FaultSpec times(long count) {
    if (count < 1) throw wrong("count " + count + ": the fault would never act; must be at least 1");
    return with("count", count);
  }

  /** Acts once. */
  public FaultSpec once() {
    return times(1);
  }

  /**
   * Acts once, on the match with this number; 1 is the first.
   *
   * @throws IllegalArgumentException if the number is less than 1
   */
  public FaultSpec nth(long number) {
    if (number < 1) throw wrong("match " + number + ": the first one is number 1");
    return skip(number - 1).once();
  }

  /**
   * Acts on each match with this probability. The same seed makes the same choices for the same matches.
   *
   * @throws IllegalArgumentException if the probability is not from 0 to 1, or the seed is negative
   */
  public FaultSpec withProbability(double probability, long seed) {
    if (!(probability >= 0 && probability <= 1)) {
      throw wrong("probability " + probability + ": outside the range of 0 to 1");
    }
    if (seed < 0) throw wrong("seed " + seed + ": must not be negative");
    return with("probability", probability).with("seed", seed);
  }

  /** May end without having acted. Otherwise that is an error: see {@link Fault}. */
  public FaultSpec optional() {
    return with("optional", true);
  }

  /** Returns the fields of the verb {@code inject}. Throws if the fault cannot act, as no later call can mend that. */
  Map<String, Object> json() {
    String path = (String) fields.get("path");
    if (path != null && path.length() > 1 && path.endsWith("/") && ops.stream().noneMatch(CREATES::contains)) {
      throw wrong("path pattern \"" + shortened(path) + "\": ends with a slash, which only the path of a sequential create "
          + "does: also name that operation with on(FaultOp.CREATE), or write /q for the znode and /q/* for its children");
    }
    if (action.equals("error") && ops.equals(EnumSet.of(FaultOp.CONNECT))) {
      throw pointless("the handshake, whose reply has no field for an error: use cut or refuse");
    }
    if ((action.equals("pause") || action.equals("client-outage")) && ops.equals(EnumSet.of(FaultOp.CONNECT))) {
      throw pointless("the handshake: the client has no session yet");
    }
    if (fields.containsKey("client") && ops.equals(EnumSet.of(FaultOp.CONNECT))) {
      throw pointless("the handshakes of a client: its number is not known yet");
    }
    Map<String, Object> all = new LinkedHashMap<>();
    all.put("action", action);
    if (!ops.isEmpty()) all.put("op", ops());
    all.putAll(fields);
    return all;
  }

  private String ops() {
    List<String> names = new ArrayList<>();
    for (FaultOp op : ops) names.add(op.toString());
    return String.join(",", names);
  }

  private FaultSpec with(String field, Object value) {
    Map<String, Object> more = new LinkedHashMap<>(fields);
    more.put(field, value);
    return new FaultSpec(action, more, ops);
  }

  private FaultSpec ofAnyone() {
    Map<String, Object> less = new LinkedHashMap<>(fields);
    less.keySet().removeAll(Set.of("session", "client", "address"));
    return new FaultSpec(action, less, ops);
  }

  private static String shortened(String pattern) {
    return pattern.length() <= 100 ? pattern : pattern.substring(0, 100) + "...";
  }

  private IllegalArgumentException pointless(String by) {
    return wrong("action \"" + action + "\": cannot be restricted to " + by);
  }

  private static IllegalArgumentException wrong(String text) {
    return new IllegalArgumentException(text);
  }

  /** The fault in words, such as {@code lose-reply, op create, path /locks/*, count 1}. */
  @Override
  public String toString() {
    StringBuilder text = new StringBuilder(action);
    if (!ops.isEmpty()) text.append(", op ").append(ops());
    fields.forEach((name, value) -> text.append(", ").append(name).append(' ').append(value));
    return text.toString();
  }
}
