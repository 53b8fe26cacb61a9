// Generated from the table of verbs, server/src/control/verbs. To generate it again:
// UPDATE_EXPECT=1 cargo test -p minikeeper --test bindings
package io.github.minikeeper;

import static io.github.minikeeper.Values.fields;
import static io.github.minikeeper.Values.with;

import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;

/** Every verb of a universe. Each throws {@link MinikeeperException} if the server refuses it. */
abstract class Verbs {
  Verbs() {}

  abstract Control control();

  /** The universe that a verb has created. */
  abstract Universe universe(String name, String connectString);

  abstract Fault fault(long id);

  /** Read the server's clock: since the start, wall clock, and whether it is frozen. */
  public Now now() {
    return new Now(control().read("now", Map.of()));
  }

  /**
   * Advance the clock; returns when everything due has happened. Connected sessions live on.
   *
   * <p>The clock moves from deadline to deadline. A connected session lives on however far the clock moves, because
   * its client would have sent pings meanwhile. A session expires if it has no connection, is silenced, or a fault
   * drops its pings.
   *
   * @param by How far to advance
   * @param strict Whether connected sessions expire too, as if no client had sent anything meanwhile
   */
  public void advance(Duration by, boolean strict) {
    control().act("advance", fields("by_ms", by, "strict", strict));
  }

  /** Calls {@code advance} with the defaults. */
  public void advance(Duration by) {
    advance(by, false);
  }

  /**
   * Freeze the clock.
   *
   * <p>While the clock is frozen nothing expires, even if a client stops at a breakpoint.
   */
  public void freeze() {
    control().act("freeze", Map.of());
  }

  /** Unfreeze the clock. */
  public void unfreeze() {
    control().act("unfreeze", Map.of());
  }

  /**
   * Advance a frozen clock to the next deadline whenever all clients are idle.
   *
   * <p>Connected sessions live on, as with {@code advance}. Off by default.
   *
   * @param idle How long all clients must have been idle, in real time; null disables it
   */
  public void autoAdvance(Duration idle) {
    control().act("auto_advance", fields("idle_ms", idle));
  }

  /**
   * List every session, connected or not.
   *
   * <p>The first request with a path binds a session to a universe. Until then the session is unbound: every universe
   * of the server finds it by its id, or by its address with the port. The server's own universe lists it, and so
   * does a created universe if it is the only one.
   */
  public List<Session> sessions() {
    return Values.list(control().read("sessions", Map.of()).get("sessions"), it -> new Session(Control.object(it)));
  }

  /**
   * Expire sessions; returns when their watchers have been notified.
   *
   * <p>Returns how many sessions matched. Their ephemerals are deleted and the events are in the sockets of the
   * watchers. No matching session is an error (404) unless {@code allowNone} is set.
   *
   * @param who A session (0x... or decimal), an address (127.0.0.1:4711 or 127.0.0.1), an identity (digest:alice) or
   * a path that it owns (/locks/x)
   */
  public long expire(Who who) {
    return Values.number(control().act("expire", who.json).get("count"));
  }

  /** Calls {@code expire} for one session. */
  public long expire(long session) {
    return expire(Who.session(session));
  }

  /**
   * Close the connections of sessions; the sessions live on.
   *
   * <p>Returns how many sessions were connected. No matching session is an error (404) unless {@code allowNone} is
   * set.
   *
   * @param who A session (0x... or decimal), an address (127.0.0.1:4711 or 127.0.0.1), an identity (digest:alice) or
   * a path that it owns (/locks/x)
   */
  public long disconnect(Who who) {
    return Values.number(control().act("disconnect", who.json).get("count"));
  }

  /** Calls {@code disconnect} for one session. */
  public long disconnect(long session) {
    return disconnect(Who.session(session));
  }

  /**
   * Ignore everything that sessions send, pings too, as in a long pause of their clients.
   *
   * <p>Returns how many sessions matched. A silenced session expires unless {@code unsilence} comes first. No
   * matching session is an error (404) unless {@code allowNone} is set.
   *
   * @param who A session (0x... or decimal), an address (127.0.0.1:4711 or 127.0.0.1), an identity (digest:alice) or
   * a path that it owns (/locks/x)
   */
  public long silence(Who who) {
    return Values.number(control().act("silence", who.json).get("count"));
  }

  /** Calls {@code silence} for one session. */
  public long silence(long session) {
    return silence(Who.session(session));
  }

  /**
   * Serve silenced sessions again.
   *
   * <p>Returns how many sessions matched. No matching session is an error (404) unless {@code allowNone} is set.
   *
   * @param who A session (0x... or decimal), an address (127.0.0.1:4711 or 127.0.0.1), an identity (digest:alice) or
   * a path that it owns (/locks/x)
   */
  public long unsilence(Who who) {
    return Values.number(control().act("unsilence", who.json).get("count"));
  }

  /** Calls {@code unsilence} for one session. */
  public long unsilence(long session) {
    return unsilence(Who.session(session));
  }

  /** Close every client's connection; the sessions live on. */
  public void disconnectAll() {
    control().act("disconnect_all", Map.of());
  }

  /**
   * Inject a fault, until {@code removeFault} or {@code resetFaults}.
   *
   * <p>The fields:
   * <ul>
   * <li>{@code action}: What the fault does to a matching operation
   * <li>{@code op}: Operations that the fault applies to, separated by commas: create, connect, ping
   * <li>{@code path}: Paths that the fault applies to: * matches within a name, ** across names
   * <li>{@code session}: The session that the fault applies to
   * <li>{@code client}: The session that the fault applies to, by its number: sessions are numbered from 1 in the
   * order of their first requests since there has been any fault
   * <li>{@code address}: The client address that the fault applies to
   * <li>{@code skip}: How many matching operations to skip first
   * <li>{@code count}: How many times the fault acts; without a limit if absent
   * <li>{@code probability}: The probability that the fault acts on a match, from 0 to 1
   * <li>{@code seed}: The seed of the random numbers for probability
   * <li>{@code delay_ms}: The delay, for the actions delay and delay-reply, in milliseconds; the longest delay for
   * delay-events
   * <li>{@code error}: The error, for the action error: NODEEXISTS
   * <li>{@code optional}: Whether removing the fault succeeds even if it never acted
   * </ul>
   */
  public Fault inject(Map<String, ?> fields) {
    return fault(Values.number(control().act("inject", fields).get("fault")));
  }

  /** List the injected faults and how often each has acted. */
  public List<InjectedFault> faults() {
    Map<String, Object> answer = control().read("faults", Map.of());
    return Values.list(answer.get("faults"), it -> new InjectedFault(Control.object(it)));
  }

  /**
   * Remove a fault and release what it holds back; fails if it never acted, unless it is optional.
   *
   * <p>Returns how often it has acted. A fault that never acted has tested nothing: it is removed, and the verb fails
   * (409). An unknown fault is an error (404).
   *
   * @param fault The fault that inject returned
   */
  public long removeFault(Fault fault) {
    return Values.number(control().act("remove_fault", fields("fault", fault)).get("hits"));
  }

  /** Remove all faults and release what they hold back. */
  public void resetFaults() {
    control().act("reset_faults", Map.of());
  }

  /**
   * Wait until a fault has acted N times.
   *
   * <p>Returns how often it has acted. The JSON also has `last_hit`: the session, op, path and xid of what it acted
   * on last, as {@code faults} has. Fails (408) if it times out.
   *
   * @param fault The fault that inject returned
   * @param hits How many times; by default 1
   * @param within The limit of the wait, in real time; by default 10000 ms
   */
  public long untilHit(Fault fault, long hits, Duration within) {
    Map<String, Object> answer = control().act("until_hit", fields("fault", fault, "hits", hits, "within_ms", within));
    return Values.number(answer.get("hits"));
  }

  /** Calls {@code untilHit} with the defaults. */
  public long untilHit(Fault fault) {
    return untilHit(fault, 1, Duration.ofMillis(10000));
  }

  /**
   * List what happened: requests and their results, events, deletions, faults, sessions, the clock.
   *
   * <p>Returns the newest matching entries, oldest first, and in {@code next} the number that the next entry gets:
   * pass it as {@code since} to read what follows. {@code text} is the entry in a line. Entries never contain data of
   * znodes. The journal keeps what happened last, within the setting `journal_bytes`; {@code oldest} is the number of
   * the oldest entry that it still has.
   *
   * <p>The fields:
   * <ul>
   * <li>{@code path}: Only entries with a path that matches: `*` is any part of a name, `**` any part of a path
   * <li>{@code op}: Only requests of this operation, such as `getData`; `create` is every kind of create
   * <li>{@code result}: Only requests with this result: `OK`, an error such as `NONODE`, `error` for any error,
   * `NONE` for no reply
   * <li>{@code session}: Only entries of this session, hexadecimal or decimal
   * <li>{@code kind}: Only entries of this kind; `session` and `connection` are all kinds that begin so
   * <li>{@code since}: Only entries from this number on
   * <li>{@code limit}: The maximum number of entries; by default 1000
   * </ul>
   */
  public Journal journal(Map<String, ?> fields) {
    return new Journal(control().read("journal", fields));
  }

  /**
   * Count entries of the journal.
   *
   * <p>An error (409) if entries that might match have been dropped.
   *
   * <p>The fields:
   * <ul>
   * <li>{@code path}: Only entries with a path that matches: `*` is any part of a name, `**` any part of a path
   * <li>{@code op}: Only requests of this operation, such as `getData`; `create` is every kind of create
   * <li>{@code result}: Only requests with this result: `OK`, an error such as `NONODE`, `error` for any error,
   * `NONE` for no reply
   * <li>{@code session}: Only entries of this session, hexadecimal or decimal
   * <li>{@code kind}: Only entries of this kind; `session` and `connection` are all kinds that begin so
   * <li>{@code since}: Only entries from this number on
   * </ul>
   */
  public long count(Map<String, ?> fields) {
    return Values.number(control().read("count", fields).get("count"));
  }

  /**
   * Verify what the journal contains.
   *
   * <p>Give {@code exactly} (0 for none), {@code atLeast} or {@code atMost}; without them at least one entry must
   * match. Or give {@code inOrder}: a list of filters such as `create /locks/** -> OK`, which entries must match in
   * this order, with others between them. If the journal differs, the error (409) lists what matches or comes
   * nearest; in Python, Java and Node it is an AssertionError. Returns how many entries match.
   *
   * <p>The fields:
   * <ul>
   * <li>{@code path}: Only entries with a path that matches: `*` is any part of a name, `**` any part of a path
   * <li>{@code op}: Only requests of this operation, such as `getData`; `create` is every kind of create
   * <li>{@code result}: Only requests with this result: `OK`, an error such as `NONODE`, `error` for any error,
   * `NONE` for no reply
   * <li>{@code session}: Only entries of this session, hexadecimal or decimal
   * <li>{@code kind}: Only entries of this kind; `session` and `connection` are all kinds that begin so
   * <li>{@code since}: Only entries from this number on
   * <li>{@code exactly}: The number of entries that must match
   * <li>{@code at_least}: The least number of entries that must match
   * <li>{@code at_most}: The greatest number of entries that may match
   * <li>{@code in_order}: Filters that entries must match in this order
   * </ul>
   */
  public long verify(Map<String, ?> fields) {
    return Values.number(control().act("verify", fields).get("count"));
  }

  /** Forget every entry of the journal; the numbers of entries continue. */
  public void clearJournal() {
    control().act("clear_journal", Map.of());
  }

  /**
   * Find known mistakes of clients in the journal: what, why it matters, what to do.
   *
   * <p>Such as a sequential ephemeral that a lost reply orphans, polling, or a write that loses an update. Each
   * finding has the numbers of the entries that show it. It is about what the journal still has; {@code first} is the
   * number of the oldest entry read.
   *
   * <p>The fields:
   * <ul>
   * <li>{@code ignore}: Rules such as `herd`, and paths such as `/config/**`, to leave out, separated by commas
   * </ul>
   */
  public Advice advise(Map<String, ?> fields) {
    return new Advice(control().read("advise", fields));
  }

  /**
   * List every lock, semaphore and election: who holds it, who waits for whom, what is wrong.
   *
   * <p>Recognises the znodes of Curator, kazoo, go-zookeeper, ZooKeeper's own recipes and the Rust crates by their
   * names. A deadlock is a cycle of sessions that wait for each other over several locks. Lists at most 1000 locks
   * and 10000 contenders, 1000 of one lock.
   */
  public Locks locks() {
    return new Locks(control().read("locks", Map.of()));
  }

  /**
   * Show what helps to understand a failed test: locks, sessions, faults, the last requests.
   *
   * <p>The fixtures of the packages print {@code text} when a test fails, and save {@code html} and {@code json}. A
   * story has the newest 10000 entries of the journal, and its text the last 50.
   *
   * <p>The fields:
   * <ul>
   * <li>{@code title}: Its title, such as the name of the test; cut after 200 characters
   * <li>{@code failure}: Why the test failed, which the page shows; cut after 4000 characters
   * </ul>
   */
  public Story story(Map<String, ?> fields) {
    return new Story(control().read("story", fields));
  }

  /**
   * Record what clients send, and what follows, for `minikeeper replay`.
   *
   * <p>The recording is in memory and ends at its limit. If there are sessions, this closes their connections, as a
   * restart that keeps everything does: clients connect again, and the recording has their watches.
   *
   * @param bytesMax The size limit of the recording; by default 67108864
   */
  public void startRecording(long bytesMax) {
    control().act("start_recording", fields("bytes_max", bytesMax));
  }

  /** Calls {@code startRecording} with the defaults. */
  public void startRecording() {
    startRecording(67108864);
  }

  /**
   * Stop the recording and return it.
   *
   * <p>`minikeeper ctl stop-recording | base64 -d >FILE` writes the file for `minikeeper replay FILE`. It contains
   * the data of znodes, and what clients sent to authenticate.
   */
  public String stopRecording() {
    return (String) control().act("stop_recording", Map.of()).get("base64");
  }

  /**
   * Enter a resource that a lock protects, until {@code resourceLeave}.
   *
   * <p>{@code resourceVerdict} says whether two were inside at a time. Call it while the lock is held, and wait for
   * the answer. A run of a sweep in which a resource is not safe fails.
   *
   * <p>The fields:
   * <ul>
   * <li>{@code resource}: Its name, at most 200 characters
   * <li>{@code holder}: Who enters, for the verdict
   * <li>{@code fencing_token}: The fencing token of the lock: the resource refuses those that are lower than one that
   * it has seen
   * </ul>
   */
  public long resourceEnter(Map<String, ?> fields) {
    return Values.number(control().act("resource_enter", fields).get("entry"));
  }

  /**
   * Write to a resource, and say whether it accepts that.
   *
   * <p>It does unless it has seen a higher token.
   *
   * @param entry The number that resource_enter returned
   */
  public boolean resourceWrite(long entry) {
    return Boolean.TRUE.equals(control().act("resource_write", fields("entry", entry)).get("is_accepted"));
  }

  /**
   * Leave a resource, before the lock is released.
   *
   * @param entry The number that resource_enter returned
   */
  public void resourceLeave(long entry) {
    control().act("resource_leave", fields("entry", entry));
  }

  /**
   * Say whether what was done to a resource was safe.
   *
   * <p>It was "safe" if no two holders were inside at a time, or the resource has refused the lower of their tokens.
   * It is "undecided" if no holder has entered, or a holder that has not left may have been inside when another one
   * entered.
   *
   * @param resource Its name, at most 200 characters
   */
  public ResourceVerdict resourceVerdict(String resource) {
    return new ResourceVerdict(control().read("resource_verdict", fields("resource", resource)));
  }

  /**
   * Start a sweep: a test runs once for every fault at every place where it can happen.
   *
   * <p>Then, until {@code sweepNext} returns run 0: call {@code sweepNext} on a universe that no client uses yet, run
   * the test with it, and call {@code sweepEnd}. The fixtures of the packages do so.
   *
   * <p>The fields:
   * <ul>
   * <li>{@code all}: Whether to try equivalent points, too
   * <li>{@code depth}: How many faults a run has; with 2, pairs are tried until a budget ends, or with `orders` one
   * fault in an order; by default 1
   * <li>{@code seed}: The order in which points are tried; by default 0
   * <li>{@code runs}: The maximum number of runs
   * <li>{@code time_ms}: The time after which no run begins, in milliseconds
   * <li>{@code faults}: The faults to try, separated by commas, or `all`: reply-lost,session-expired; by default all
   * but outage, client-outage, client-crash and rollback
   * <li>{@code outage_ms}: How long an outage lasts, by the server's clock, in milliseconds; 0 if it does not end; by
   * default 1,000
   * <li>{@code rollback}: How many changes a rollback takes back; by default 1
   * <li>{@code allow}: The failures that the test expects, a rule a line: session-expired:*:create raises
   * SessionExpired because the caller asks again
   * <li>{@code leave_out}: The points that are not tried, a rule a line: reply-late because the timeout is an hour
   * <li>{@code first}: Whether to end with the first failure, once it is confirmed
   * <li>{@code compare}: Whether a run also fails if it leaves other znodes, clients or watches than the runs without
   * faults
   * <li>{@code only}: The points of the only run, as a report names them, with + between two; or its order
   * <li>{@code orders}: Whether to try the orders in which requests can be served, instead of faults
   * <li>{@code changes}: With `orders`: up to how many unforced changes (of client, late events, with `depth` 2 a
   * fault) all orders are tried, or `all`; by default 2
   * <li>{@code more}: With `orders`: how many further orders are tried then, random ones among them; by default
   * 1,000, or until a budget ends
   * <li>{@code alike}: With `orders`: whether the clients that begin a run, up to 4, do the same, so that orders
   * which differ only in which of them is which are equivalent
   * <li>{@code clients}: With `orders`: the number of clients with which a run begins, if it is known; then their
   * requests are served as soon as each of them has one
   * <li>{@code process}: With `orders`: the number of the process, on the server's machine, that runs the test; then
   * its threads tell when no further request is coming
   * <li>{@code allow_unreached}: How many points may stay unreached in a sweep that is clean nevertheless; by default
   * 0
   * <li>{@code allow_untried}: How many points the budget may leave untried in a sweep that is clean nevertheless; by
   * default 0
   * <li>{@code test}: The name of the test, if it is one of a suite, whose options it takes in place of these: see
   * `suite_start`
   * <li>{@code tests_left}: With `test`: how many tests are still to come, this one included; it may take four equal
   * shares of the time that is left
   * <li>{@code repeat}: With `test`: the command that does a run of it again, with {} in place of its points
   * </ul>
   */
  public long sweepStart(Map<String, ?> fields) {
    return Values.number(control().act("sweep_start", fields).get("sweep"));
  }

  /**
   * Start a suite, whose tests share a budget, a report and equivalent points.
   *
   * <p>Then call {@code sweepStart} with {@code test} for each test, and {@code suiteReport} at the end. `minikeeper
   * sweep --suite` does so.
   *
   * <p>The fields:
   * <ul>
   * <li>{@code faults}: As in `sweep_start`
   * <li>{@code outage_ms}: As in `sweep_start`, in milliseconds
   * <li>{@code rollback}: As in `sweep_start`; by default 1
   * <li>{@code all}: As in `sweep_start`
   * <li>{@code depth}: As in `sweep_start`; by default 1
   * <li>{@code seed}: As in `sweep_start`; by default 0
   * <li>{@code time_ms}: The time of the whole suite, after which no run begins, in milliseconds
   * <li>{@code first}: As in `sweep_start`, for each test
   * <li>{@code compare}: As in `sweep_start`
   * <li>{@code allow}: As in `sweep_start`
   * <li>{@code leave_out}: As in `sweep_start`
   * <li>{@code allow_unreached}: As in `sweep_start`, for each test and for all
   * <li>{@code allow_untried}: As in `sweep_start`, for each test and for all
   * </ul>
   */
  public void suiteStart(Map<String, ?> fields) {
    control().act("suite_start", fields);
  }

  /**
   * Show what the sweeps of a suite have found so far.
   *
   * <p>The fields:
   * <ul>
   * <li>{@code title}: The name of the suite
   * </ul>
   */
  public String suiteReport(Map<String, ?> fields) {
    return (String) control().read("suite_report", fields).get("text");
  }

  /**
   * Inject the faults of a sweep's next run into this universe, which no client uses yet.
   *
   * <p>Returns the number of the run, 0 if the sweep is over. The first runs have no faults. Several runs may be done
   * at a time, each in a universe of its own, but not with {@code orders}: waits until one ends if that decides what
   * is next.
   *
   * @param sweep The number that sweep_start returned
   */
  public SweepNext sweepNext(long sweep) {
    return new SweepNext(control().act("sweep_next", fields("sweep", sweep)));
  }

  /**
   * Show what the sweep tries in this run.
   *
   * <p>A test that expects an error of one fault asks so.
   */
  public SweepFaults sweepFaults() {
    return new SweepFaults(control().read("sweep_faults", Map.of()));
  }

  /**
   * Note a goal that some run of the sweep must reach, such as "the second contender waited".
   *
   * <p>Call it where the goal may hold, in every run. If no run reaches it, the sweep is incomplete. Does nothing
   * without a sweep.
   *
   * @param goal The goal, at most 200 characters
   * @param holds Whether it is reached
   */
  public void sometimes(String goal, boolean holds) {
    control().act("sometimes", fields("goal", goal, "holds", holds));
  }

  /** Calls {@code sometimes} with the defaults. */
  public void sometimes(String goal) {
    sometimes(goal, true);
  }

  /**
   * Wait until the clients of a sweep's run have died, by the fault `client-crash`.
   *
   * <p>Then stop the test where it is, and begin it again in the same universe: the server serves nothing of the
   * sessions from before. The outcome of the run is that of the second start. Returns false if it times out, the run
   * ends, or has no such fault.
   *
   * <p>The fields:
   * <ul>
   * <li>{@code sweep}: The number that sweep_start returned
   * <li>{@code run}: The number of the run, if several are being done
   * <li>{@code within_ms}: The limit of the wait, in real time, in milliseconds; by default 10000
   * </ul>
   */
  public boolean sweepCrashed(Map<String, ?> fields) {
    return Boolean.TRUE.equals(control().act("sweep_crashed", fields).get("is_crashed"));
  }

  /**
   * End the run of a sweep with the outcome of the test, and remove its faults.
   *
   * <p>The fields:
   * <ul>
   * <li>{@code sweep}: The number that sweep_start returned
   * <li>{@code run}: The number of the run, if several are being done
   * <li>{@code outcome}: How the test ended
   * <li>{@code message}: Why it failed
   * <li>{@code place}: Where in the program it failed, such as test_job.py:17; failures with the same message, place
   * and first difference in the journal are one group
   * <li>{@code story}: The page with the story of the failure, which the report names
   * </ul>
   */
  public boolean sweepEnd(Map<String, ?> fields) {
    return Boolean.TRUE.equals(control().act("sweep_end", fields).get("is_reached"));
  }

  /**
   * Show what a sweep has found so far.
   *
   * <p>The fields:
   * <ul>
   * <li>{@code sweep}: The number that sweep_start returned
   * <li>{@code repeat}: The command that does a run again, with {} in place of its points
   * <li>{@code title}: The name of the test
   * </ul>
   */
  public String sweepReport(Map<String, ?> fields) {
    return (String) control().read("sweep_report", fields).get("text");
  }

  /**
   * Read the data and stat of a znode.
   *
   * <p>Fails (404) if there is no such znode.
   *
   * @param path The znode's path
   */
  public Znode get(String path) {
    return new Znode(control().read("get", fields("path", path)));
  }

  /**
   * List the names of a znode's children, oldest first.
   *
   * <p>The root of an empty tree has the child zookeeper, as in ZooKeeper; {@code exportTree} leaves it out. Fails
   * (404) if there is no such znode.
   *
   * @param path The znode's path
   */
  public List<String> children(String path) {
    return Values.texts(control().read("children", fields("path", path)).get("children"));
  }

  /**
   * List a znode's children sorted by name, some at a time.
   *
   * <p>Pass the last name as {@code after} to read on. In another order the first ones are listed, and equal ones by
   * name. {@code total} is the number of children that contain the text, and {@code isTruncated} says whether there
   * are more after the last one. Fails (404) if there is no such znode.
   *
   * @param path The znode's path
   * @param after Only children whose names are after this one; by default
   * @param containing Only children whose names contain this text; by default
   * @param max The limit of the znodes to list, at most 10000; by default 1000
   * @param sortBy By name, the newest first, or those with the most children first; by default name
   */
  public ListChildren listChildren(String path, String after, String containing, long max, SortBy sortBy) {
    return new ListChildren(control().read("list_children", fields("path", path, "after", after, "containing", containing, "max", max, "sort_by", sortBy)));
  }

  /** Calls {@code listChildren} with the defaults. */
  public ListChildren listChildren(String path) {
    return listChildren(path, "", "", 1000, SortBy.NAME);
  }

  /**
   * Find znodes whose path contains a text, or whose data does.
   *
   * <p>Returns the paths, children by name below their parent. Upper and lower case differ. Fails (404) if there is
   * no znode to begin at.
   *
   * @param containing The text to find
   * @param path The top of the subtree; by default /
   * @param inData Whether to search the data of znodes too
   * @param max The limit of the znodes to list, at most 10000; by default 1000
   */
  public FindZnodes findZnodes(String containing, String path, boolean inData, long max) {
    return new FindZnodes(control().read("find_znodes", fields("containing", containing, "path", path, "in_data", inData, "max", max)));
  }

  /** Calls {@code findZnodes} with the defaults. */
  public FindZnodes findZnodes(String containing) {
    return findZnodes(containing, "/", false, 1000);
  }

  /**
   * Read the access list of a znode in ZooKeeper's notation, as in world:anyone:cdrwa.
   *
   * <p>Fails (404) if there is no such znode.
   *
   * @param path The znode's path
   */
  public List<String> acl(String path) {
    return Values.texts(control().read("acl", fields("path", path)).get("acl"));
  }

  /**
   * List a znode and everything below it, with data lengths and the owners of ephemerals.
   *
   * <p>Children are sorted by name below their parent. {@code isTruncated} says whether znodes after the last one are
   * omitted; paths of more than 4 MiB are omitted too. Fails (404) if there is no such znode.
   *
   * @param path The top of the subtree; by default /
   * @param max The limit of the znodes to list, at most 10000; by default 1000
   */
  public TreeListing tree(String path, long max) {
    return new TreeListing(control().read("tree", fields("path", path, "max", max)));
  }

  /** Calls {@code tree} with the defaults. */
  public TreeListing tree() {
    return tree("/", 1000);
  }

  /**
   * Create a znode outside of any session; returns its path.
   *
   * <p>The parent must exist. Watches fire as after a client's create; access lists are not checked, and the znode is
   * open to all clients. It cannot be ephemeral, because no session would own it. Fails (409) if it exists already,
   * and (404) without a parent.
   *
   * @param path The znode's path
   * @param data The data; empty by default
   * @param sequential Whether to append a number to the name
   * @param container Whether the znode ends some time after its last child
   * @param ttl The time to live without children and new data; 0 for no limit; by default 0 ms
   */
  public String create(String path, byte[] data, boolean sequential, boolean container, Duration ttl) {
    Map<String, Object> answer = control().act("create", with(Values.data(data), "path", path, "sequential", sequential, "container", container, "ttl_ms", ttl));
    return (String) answer.get("path");
  }

  /** Calls {@code create} with the defaults. */
  public String create(String path) {
    return create(path, new byte[0], false, false, Duration.ofMillis(0));
  }

  /** Calls {@code create} with data, and the other defaults. */
  public String create(String path, byte[] data) {
    return create(path, data, false, false, Duration.ofMillis(0));
  }

  /** Calls {@code create} with text as data, in UTF-8. */
  public String create(String path, String data) {
    return create(path, data.getBytes(StandardCharsets.UTF_8));
  }

  /**
   * Set the data of a znode outside of any session; returns its new version.
   *
   * <p>Watches fire as after a client's setData; access lists are not checked. Fails (404) if there is no such znode,
   * and (409) if it has another version.
   *
   * @param path The znode's path
   * @param data The data
   * @param version The version that the znode must have; -1 for any; by default -1
   */
  public long set(String path, byte[] data, int version) {
    Map<String, Object> answer = control().act("set", with(Values.data(data), "path", path, "version", version));
    return Values.number(answer.get("version"));
  }

  /** Calls {@code set} with the defaults. */
  public long set(String path, byte[] data) {
    return set(path, data, -1);
  }

  /** Calls {@code set} with text as data, in UTF-8. */
  public long set(String path, String data) {
    return set(path, data.getBytes(StandardCharsets.UTF_8));
  }

  /**
   * Delete a znode outside of any session; returns how many znodes were deleted.
   *
   * <p>Watches fire as after a client's delete; access lists are not checked. Fails (404) if there is no such znode,
   * and (409) if it has another version, or has children and {@code recursive} is not set.
   *
   * @param path The znode's path
   * @param version The version that the znode must have; -1 for any; by default -1
   * @param recursive Whether to delete everything below it too; more than 1,000 znodes in several turns
   */
  public long delete(String path, int version, boolean recursive) {
    Map<String, Object> answer = control().act("delete", fields("path", path, "version", version, "recursive", recursive));
    return Values.number(answer.get("deleted"));
  }

  /** Calls {@code delete} with the defaults. */
  public long delete(String path) {
    return delete(path, -1, false);
  }

  /**
   * Print znodes, sessions and watches as text; equal trees give equal text.
   *
   * <p>Whatever depends on the time and order of changes is left out: sessions are numbered in the order of what they
   * own. Children are sorted by name, data is quoted or escaped, and access lists that are open to all clients are
   * omitted.
   *
   * @param ids Whether to print session ids, zxids, times and versions too
   */
  public String dump(boolean ids) {
    return (String) control().read("dump", fields("ids", ids)).get("dump");
  }

  /** Calls {@code dump} with the defaults. */
  public String dump() {
    return dump(false);
  }

  /**
   * Export the tree in the format of {@code seed}, without /zookeeper; lists ephemerals separately.
   *
   * <p>Fails (404) if there is no such znode.
   *
   * @param format Whether to return the tree as a JSON object or as YAML text; by default json
   * @param path The top of the subtree; by default /
   */
  public Object exportTree(TreeFormat format, String path) {
    return control().read("export_tree", fields("format", format, "path", path)).get("tree");
  }

  /** Calls {@code exportTree} with the defaults. */
  public Object exportTree() {
    return exportTree(TreeFormat.JSON, "/");
  }

  /**
   * Create the znodes of a tree that are missing and set those that differ.
   *
   * <p>A tree of up to 1,000 znodes and 1 MiB is seeded in one turn, a larger one in several: clients are served in
   * between and may see its first part. Missing parents are created. A znode of the tree is its data, or an object
   * with the fields data, acl, container and ttl_ms.
   */
  public Seeded seed(Map<String, ?> tree) {
    return new Seeded(control().act("seed", Values.tree(tree)));
  }

  /** Calls {@code seed} with a tree in YAML. */
  public Seeded seed(String yaml) {
    return new Seeded(control().act("seed", Map.of("yaml", yaml)));
  }

  /**
   * Take a snapshot of znodes, sessions and watches, for {@code restore}.
   *
   * <p>Returns the number of the snapshot.
   */
  public long snapshot() {
    return Values.number(control().act("snapshot", Map.of()).get("snapshot"));
  }

  /**
   * Restore a snapshot, which can be restored again.
   *
   * @param snapshot The number that snapshot returned
   */
  public void restore(long snapshot) {
    control().act("restore", fields("snapshot", snapshot));
  }

  /**
   * Drop a snapshot and free its memory.
   *
   * @param snapshot The number that snapshot returned
   */
  public void dropSnapshot(long snapshot) {
    control().act("drop_snapshot", fields("snapshot", snapshot));
  }

  /**
   * List the snapshots that {@code snapshot} has taken, oldest first.
   *
   * <p>`is_there` is false for a snapshot that can no longer be restored: an older one was restored, the server was
   * restarted, or more than 256 MiB of changes were made since.
   */
  public List<TakenSnapshot> snapshots() {
    Map<String, Object> answer = control().read("snapshots", Map.of());
    return Values.list(answer.get("snapshots"), it -> new TakenSnapshot(Control.object(it)));
  }

  /**
   * List the znodes that differ from those in a snapshot.
   *
   * <p>`change` is created, deleted or changed; `before` and {@code after} are znodes as in {@code exportTree}, or
   * null. Compares data, lifetimes and access lists. Lists at most 4 MiB.
   *
   * @param snapshot The number that snapshot returned
   * @param max The limit of the znodes to list, at most 10000; by default 1000
   */
  public ChangesSince changesSince(long snapshot, long max) {
    return new ChangesSince(control().read("changes_since", fields("snapshot", snapshot, "max", max)));
  }

  /** Calls {@code changesSince} with the defaults. */
  public ChangesSince changesSince(long snapshot) {
    return changesSince(snapshot, 1000);
  }

  /**
   * Create a universe as a copy of this one.
   *
   * @param name The name of the copy: one part of a path
   */
  public Universe fork(String name) {
    return universe(name, (String) control().act("fork", fields("name", name)).get("connect_string"));
  }

  /**
   * Wait until a client watches a path.
   *
   * @param path The watched path, whatever the kind of watch
   * @param within The limit of the wait, in real time; by default 10000 ms
   */
  public void untilWatched(String path, Duration within) {
    control().act("until_watched", fields("path", path, "within_ms", within));
  }

  /** Calls {@code untilWatched} with the defaults. */
  public void untilWatched(String path) {
    untilWatched(path, Duration.ofMillis(10000));
  }

  /**
   * Wait until a znode exists.
   *
   * @param path The znode
   * @param within The limit of the wait, in real time; by default 10000 ms
   */
  public void untilExists(String path, Duration within) {
    control().act("until_exists", fields("path", path, "within_ms", within));
  }

  /** Calls {@code untilExists} with the defaults. */
  public void untilExists(String path) {
    untilExists(path, Duration.ofMillis(10000));
  }

  /**
   * Wait until a znode has N children.
   *
   * @param path The znode
   * @param count How many
   * @param within The limit of the wait, in real time; by default 10000 ms
   */
  public void untilChildren(String path, long count, Duration within) {
    control().act("until_children", fields("path", path, "count", count, "within_ms", within));
  }

  /** Calls {@code untilChildren} with the defaults. */
  public void untilChildren(String path, long count) {
    untilChildren(path, count, Duration.ofMillis(10000));
  }

  /**
   * Wait until N contenders hold a lock or queue for it.
   *
   * @param lock The path of the lock
   * @param count How many
   * @param within The limit of the wait, in real time; by default 10000 ms
   */
  public void untilContenders(String lock, long count, Duration within) {
    control().act("until_contenders", fields("lock", lock, "count", count, "within_ms", within));
  }

  /** Calls {@code untilContenders} with the defaults. */
  public void untilContenders(String lock, long count) {
    untilContenders(lock, count, Duration.ofMillis(10000));
  }

  /**
   * Wait until there are N sessions, connected or not.
   *
   * @param count How many
   * @param within The limit of the wait, in real time; by default 10000 ms
   */
  public void untilSessions(long count, Duration within) {
    control().act("until_sessions", fields("count", count, "within_ms", within));
  }

  /** Calls {@code untilSessions} with the defaults. */
  public void untilSessions(long count) {
    untilSessions(count, Duration.ofMillis(10000));
  }

  /**
   * Wait until a client has noticed that its session has ended.
   *
   * <p>It has when it asked for the session as it connected again, and was told that the session has expired; its
   * callbacks run after that. Give the session's id: an ended session has no address, identity or ephemeral. The
   * server remembers the newest 1,024 sessions that clients have asked for in vain.
   *
   * @param who A session (0x... or decimal), an address (127.0.0.1:4711 or 127.0.0.1), an identity (digest:alice) or
   * a path that it owns (/locks/x)
   * @param within The limit of the wait, in real time; by default 10000 ms
   */
  public void untilNoticed(Who who, Duration within) {
    control().act("until_noticed", with(who.json, "within_ms", within));
  }

  /** Calls {@code untilNoticed} with the defaults. */
  public void untilNoticed(Who who) {
    untilNoticed(who, Duration.ofMillis(10000));
  }

  /** Calls {@code untilNoticed} for one session. */
  public void untilNoticed(long session) {
    untilNoticed(Who.session(session));
  }

  /**
   * Wait until no client has sent a request for a while.
   *
   * @param quiet How long no client may have sent a request, in real time; by default 50 ms
   * @param within The limit of the wait, in real time; by default 10000 ms
   */
  public void untilIdle(Duration quiet, Duration within) {
    control().act("until_idle", fields("quiet_ms", quiet, "within_ms", within));
  }

  /** Calls {@code untilIdle} with the defaults. */
  public void untilIdle() {
    untilIdle(Duration.ofMillis(50), Duration.ofMillis(10000));
  }

  /**
   * Replace the state by that of a ZooKeeper data directory.
   *
   * <p>Accepts directories of ZooKeeper 3.4 to 3.9 and only reads them.
   *
   * @param dir A directory on the server's machine
   */
  public void importData(Path dir) {
    control().act("import_data", fields("dir", dir));
  }

  /**
   * Write a data directory that ZooKeeper can start from.
   *
   * <p>ZooKeeper 3.8 and 3.9 start from it. Returns the zxid of the state.
   *
   * @param dir A directory on the server's machine
   */
  public String exportData(Path dir) {
    return (String) control().act("export_data", fields("dir", dir)).get("zxid");
  }

  /**
   * Create a universe with an empty tree behind the same port.
   *
   * <p>Applies to the whole server: a created universe refuses it (400).
   *
   * @param name Its name: one part of a path
   */
  public Universe createUniverse(String name) {
    return universe(name, (String) control().act("create_universe", fields("name", name)).get("connect_string"));
  }

  /**
   * List the universes, without the server's own.
   *
   * <p>Applies to the whole server: a created universe refuses it (400).
   */
  public List<String> universes() {
    return Values.texts(control().read("universes", Map.of()).get("universes"));
  }

  /**
   * Drop a universe: close its connections and delete its state.
   *
   * <p>Applies to the whole server: a created universe refuses it (400).
   *
   * @param name Its name: one part of a path
   */
  public void dropUniverse(String name) {
    control().act("drop_universe", fields("name", name));
  }

  /**
   * Restart the server on the same port.
   *
   * <p>Applies to the whole server: a created universe refuses it (400).
   *
   * @param keep What the server keeps: sessions and znodes, only znodes, or nothing; by default everything
   */
  public void restart(Keep keep) {
    control().act("restart", fields("keep", keep));
  }

  /** Calls {@code restart} with the defaults. */
  public void restart() {
    restart(Keep.EVERYTHING);
  }

  /**
   * Stop listening and close every connection; returns the address of control meanwhile.
   *
   * <p>Connections are refused until {@code comeUp}. Returns HOST:PORT.
   *
   * <p>Applies to the whole server: a created universe refuses it (400).
   */
  public String goDown() {
    return (String) control().act("go_down", Map.of()).get("control");
  }

  /**
   * Listen again on the same port.
   *
   * <p>Applies to the whole server: a created universe refuses it (400).
   *
   * @param keep What the server keeps: sessions and znodes, only znodes, or nothing; by default everything
   */
  public void comeUp(Keep keep) {
    control().act("come_up", fields("keep", keep));
  }

  /** Calls {@code comeUp} with the defaults. */
  public void comeUp() {
    comeUp(Keep.EVERYTHING);
  }

  /**
   * List the servers of the ensemble, with their modes and sessions.
   *
   * <p>There is one, unless the server was started with `--servers`.
   *
   * <p>Applies to the whole server: a created universe refuses it (400).
   */
  public List<EnsembleServer> servers() {
    Map<String, Object> answer = control().read("servers", Map.of());
    return Values.list(answer.get("servers"), it -> new EnsembleServer(Control.object(it)));
  }

  /**
   * Take a server of the ensemble down or up, cut it off, or make it read-only.
   *
   * <p>A server that is down does not listen; one that is cut off accepts connections and answers nothing; one that
   * is read-only serves reads, to clients that accept that. Clients fail over to the other servers, which serve the
   * same state.
   *
   * <p>Applies to the whole server: a created universe refuses it (400).
   *
   * @param server The number of the server, from 1
   * @param mode What it does for its clients
   */
  public void setServer(long server, Mode mode) {
    control().act("set_server", fields("server", server, "mode", mode));
  }

  /**
   * Choose the server of the ensemble that says it is the leader.
   *
   * <p>As all servers serve one state, only what `srvr`, {@code stat} and `mntr` say changes. While the chosen server
   * is not up, the first one that is up leads.
   *
   * <p>Applies to the whole server: a created universe refuses it (400).
   *
   * @param server The number of the server, from 1
   */
  public void setLeader(long server) {
    control().act("set_leader", fields("server", server));
  }

  /**
   * Save the state to the data directory now.
   *
   * <p>Applies to the whole server: a created universe refuses it (400).
   */
  public void save() {
    control().act("save", Map.of());
  }
}
