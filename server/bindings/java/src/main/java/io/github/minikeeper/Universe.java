package io.github.minikeeper;

import java.net.InetSocketAddress;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/**
 * A tree with its own sessions, clock and faults, and every verb of a test. A {@link MinikeeperServer} is its own first
 * one.
 *
 * <p>Every verb throws {@link MinikeeperException} with the server's sentence if it cannot be done, and may be called from
 * any thread.
 */
public class Universe {
  private final String name;
  private String connectString;
  private Control control;

  Universe(String connectString, String token, String name) {
    this.name = name;
    if (connectString != null) connect(connectString, token);
  }

  /** The universe of a server that somebody else has started with {@code --control}. The token may be null. */
  public static Universe at(String connectString, String token) {
    return new Universe(connectString, token, null);
  }

  final void connect(String connectString, String token) {
    String address = connectString.split("/", 2)[0];
    InetSocketAddress socket = Control.address(address);
    this.connectString = connectString;
    this.control = new Control(socket.getHostString(), socket.getPort(), token, name);
  }

  private Control control() {
    if (control == null) throw new MinikeeperException("the server does not run: call start()");
    return control;
  }

  /** What a ZooKeeper client connects to: HOST:PORT, and the chroot of a universe that has one. */
  public String connectString() {
    control();
    return connectString;
  }

  /** The port its server listens on. */
  public int port() {
    return control().port;
  }

  // Time.

  /** What the clock shows. */
  public Now now() {
    return new Now(read("now"));
  }

  /**
   * Moves the clock ahead, deadline by deadline. When it returns, all that was due has happened and been sent.
   *
   * <p>Connected sessions live on, however far it moves: their clients would have sent pings on the way. Those without a
   * connection, silenced, or whose pings a fault loses, expire.
   */
  public void advance(Duration by) {
    act("advance", Map.of("by_ms", by.toMillis()));
  }

  /** The same as if no client had said a word on the way: connected sessions expire too. */
  public void advanceStrictly(Duration by) {
    act("advance", Map.of("by_ms", by.toMillis(), "strict", true));
  }

  /** Stops the clock: nothing expires, whoever sleeps or is stopped at a breakpoint. */
  public void freeze() {
    act("freeze", Map.of());
  }

  /** Lets the clock go on from where it stands. */
  public void unfreeze() {
    act("unfreeze", Map.of());
  }

  /** Moves the clock to its next deadline whenever no client has asked anything for so long; null switches that off. */
  public void autoAdvance(Duration idle) {
    act("auto_advance", Collections.singletonMap("idle_ms", idle == null ? null : idle.toMillis()));
  }

  // Sessions.

  /**
   * Every session, connected or not. A client shows by its first request with a path which universe its session belongs to:
   * until then it is found by its id, or by its address with the port, from every universe of the server; and listed in one
   * that is the only one beside the server's own.
   */
  public List<Session> sessions() {
    List<Session> sessions = new ArrayList<>();
    for (Map<String, Object> session : objects(read("sessions").get("sessions"))) sessions.add(new Session(session));
    return sessions;
  }

  /**
   * Ends sessions as if their time were up. When it returns, their ephemerals are gone and the events about it have been
   * sent. That it meets none is an error (404), here and in the verbs below, unless {@link Who#allowNone} says that this is
   * fine.
   *
   * @return how many
   */
  public int expire(Who who) {
    return count(act("expire", who.json));
  }

  /** The same for one session: {@code expire(zooKeeper.getSessionId())}. */
  public int expire(long session) {
    return expire(Who.session(session));
  }

  /**
   * Cuts the connections of sessions, which live on.
   *
   * @return how many had one
   */
  public int disconnect(Who who) {
    return count(act("disconnect", who.json));
  }

  /** The same for one session. */
  public int disconnect(long session) {
    return disconnect(Who.session(session));
  }

  /** Cuts every connection of a client; all sessions live on. */
  public void disconnectAll() {
    act("disconnect_all", Map.of());
  }

  /**
   * Stops serving sessions: they are not heard and get no answers, as in a long pause of a collector.
   *
   * @return how many
   */
  public int silence(Who who) {
    return count(act("silence", who.json));
  }

  /** Serves silenced sessions again. */
  public int unsilence(Who who) {
    return count(act("unsilence", who.json));
  }

  // Faults.

  /**
   * Adds a rule: the fields of a fault in the control API. Closing it takes it back, and throws if it has never acted, unless
   * {@code "optional", true} is among them.
   */
  public Fault inject(Map<String, ?> fault) {
    return new Fault(this, act("inject", fault).get("fault"));
  }

  /** The rules in force, each with its id and its hits. */
  public List<Map<String, Object>> faults() {
    return objects(read("faults").get("faults"));
  }

  /** Takes a rule back: see {@link Fault#remove}. */
  public long removeFault(Fault fault) {
    return fault.remove();
  }

  final long removeFault(Object id) {
    Object hits = act("remove_fault", Map.of("fault", id)).get("hits");
    return hits == null ? 0 : ((Number) hits).longValue();
  }

  /** Takes all rules back, whether they have acted or not. */
  public void resetFaults() {
    act("reset_faults", Map.of());
  }

  /** Waits until a rule has been met so often. */
  public void untilHit(Fault fault, int hits, Duration within) {
    act("until_hit", Map.of("fault", fault.id, "hits", hits, "within_ms", within.toMillis()));
  }

  // State.

  /** A znode. */
  public Znode get(String path) {
    return new Znode(control().read("get", Map.of("path", path)));
  }

  /** The names of a znode's children. */
  public List<String> children(String path) {
    List<String> names = new ArrayList<>();
    for (Object name : list(control().read("children", Map.of("path", path)).get("children"))) names.add((String) name);
    return names;
  }

  /** Znodes, sessions and watches as text, to be read and compared: equal trees give equal text. */
  public String dump() {
    return (String) read("dump").get("dump");
  }

  /** The tree, in the form {@link #seed(Map)} takes. */
  public Map<String, Object> exportTree() {
    return Control.object(control().read("export_tree", Map.of("format", "json")).get("tree"));
  }

  /** The tree, in the form {@link #seed(String)} takes. */
  public String exportTreeAsYaml() {
    return (String) control().read("export_tree", Map.of("format", "yaml")).get("tree");
  }

  /**
   * Puts znodes there, by path: {@code Map.of("/app/config", "on")}. Parents need not be named. Data may be a byte array too, by
   * itself or as {@code data} of a znode: {@code Map.of("/c", Map.of("data", bytes, "container", true))}.
   */
  public void seed(Map<String, ?> tree) {
    Map<String, Object> znodes = new LinkedHashMap<>();
    tree.forEach((path, znode) -> znodes.put(path, znodeJson(znode)));
    act("seed", Map.of("tree", znodes));
  }

  /** A znode of a tree, with bytes as JSON has them. */
  private static Object znodeJson(Object znode) {
    if (znode instanceof byte[]) return Map.of("data_base64", Base64.getEncoder().encodeToString((byte[]) znode));
    if (!(znode instanceof Map) || !(((Map<?, ?>) znode).get("data") instanceof byte[])) return znode;
    Map<Object, Object> fields = new LinkedHashMap<>((Map<?, ?>) znode);
    fields.putAll((Map<?, ?>) znodeJson(fields.remove("data")));
    return fields;
  }

  /** The same from a text in YAML. */
  public void seed(String yaml) {
    act("seed", Map.of("yaml", yaml));
  }

  /** Marks the state of now, sessions and watches included. */
  public Object snapshot() {
    return act("snapshot", Map.of()).get("snapshot");
  }

  /** Goes back to a mark, which stays. */
  public void restore(Object snapshot) {
    act("restore", Map.of("snapshot", snapshot));
  }

  /** Forgets a mark. */
  public void dropSnapshot(Object snapshot) {
    act("drop_snapshot", Map.of("snapshot", snapshot));
  }

  /** Saves to the data directory now. About the whole server: a universe that was created cannot. */
  public void save() {
    act("save", Map.of());
  }

  /** Writes a data directory that an Apache ZooKeeper 3.8 or 3.9 starts from. */
  public void exportData(Path dir) {
    act("export_data", Map.of("dir", dir.toAbsolutePath().toString()));
  }

  /** Loads the data directory of an Apache ZooKeeper 3.4 to 3.9, instead of what is here. */
  public void importData(Path dir) {
    act("import_data", Map.of("dir", dir.toAbsolutePath().toString()));
  }

  // Restart, as clients see it: on the same port, without a new process. About the whole server: a universe that was created
  // cannot, and says so.

  /**
   * Cuts every connection of a client and refuses new ones until {@link #comeUp}. The verbs of this object work meanwhile;
   * others reach the server at the address that is returned.
   *
   * @return HOST:PORT, as {@link #at} takes it
   */
  public String goDown() {
    return (String) act("go_down", Map.of()).get("control");
  }

  /** Listens again. */
  public void comeUp(Keep keep) {
    act("come_up", Map.of("keep", word(keep)));
  }

  /** Goes down and comes up. */
  public void restart(Keep keep) {
    act("restart", Map.of("keep", word(keep)));
  }

  // Universes.

  /** Creates an isolated universe behind the same port. */
  public Universe createUniverse(String name) {
    Object connectString = act("create_universe", Map.of("name", name)).get("connect_string");
    return new Universe((String) connectString, control.token, name);
  }

  /** Creates a universe that begins as a copy of this one. */
  public Universe fork(String name) {
    Object connectString = act("fork", Map.of("name", name)).get("connect_string");
    return new Universe((String) connectString, control.token, name);
  }

  /** The universes created and not dropped yet, as the control API tells them. */
  public List<?> universes() {
    return list(read("universes").get("universes"));
  }

  /** Ends a universe with all its connections. */
  public void dropUniverse(String name) {
    Control server = control();
    // It may not be asked to end itself.
    new Control(server.host, server.port, server.token, null).act("drop_universe", Map.of("name", name));
  }

  // Waiting without sleeping.

  /** Waits until somebody watches a path. */
  public void untilWatched(String path, Duration within) {
    act("until_watched", Map.of("path", path, "within_ms", within.toMillis()));
  }

  /** Waits until a znode has so many children. */
  public void untilChildren(String path, int count, Duration within) {
    act("until_children", Map.of("path", path, "count", count, "within_ms", within.toMillis()));
  }

  /** Waits until so many contenders stand in the queue of a lock, its holder included. */
  public void untilContenders(String lock, int count, Duration within) {
    act("until_contenders", Map.of("lock", lock, "count", count, "within_ms", within.toMillis()));
  }

  /** Waits until there are exactly so many sessions, connected or not: those that {@link #sessions} lists. */
  public void untilSessions(int count, Duration within) {
    act("until_sessions", Map.of("count", count, "within_ms", within.toMillis()));
  }

  /** Waits until no client has asked anything but pings for so long. */
  public void untilIdle(Duration quiet, Duration within) {
    act("until_idle", Map.of("quiet_ms", quiet.toMillis(), "within_ms", within.toMillis()));
  }

  @Override
  public String toString() {
    return getClass().getSimpleName() + " " + connectString;
  }

  private Map<String, Object> read(String verb) {
    return control().read(verb, Map.of());
  }

  private Map<String, Object> act(String verb, Map<String, ?> body) {
    return control().act(verb, body);
  }

  private static int count(Map<String, Object> answer) {
    return ((Number) answer.get("count")).intValue();
  }

  private static String word(Keep keep) {
    return keep.name().toLowerCase(Locale.ROOT);
  }

  private static List<?> list(Object value) {
    return value instanceof List ? (List<?>) value : List.of();
  }

  private static List<Map<String, Object>> objects(Object value) {
    List<Map<String, Object>> objects = new ArrayList<>();
    for (Object one : list(value)) objects.add(Control.object(one));
    return objects;
  }
}
