/// <reference types="node" />

// Generated from the table of verbs, server/src/control/verbs. To generate it again:
// UPDATE_EXPECT=1 cargo test -p minikeeper --test bindings

import type * as answers from './answers';
import type { Fault, FaultOptions, Seed, Tree, Universe, Who } from './index';

/** What the fault does to a matching operation. */
export type FaultAction =
  'refuse' | 'delay' | 'drop-request' | 'lose-reply' | 'never-answer' | 'error' | 'cut' | 'cut-reply' | 'hold-events'
  | 'delay-events' | 'delay-reply' | 'cut-after' | 'expire' | 'pause' | 'outage' | 'client-outage' | 'crash' |
  'rollback' | 'trigger';

/** Only entries of this kind; `session` and `connection` are all kinds that begin so. */
export type Kind =
  'request' | 'event' | 'deleted' | 'fault' | 'session' | 'session_opened' | 'session_resumed' | 'session_expired' |
  'session_closed' | 'connection' | 'connection_opened' | 'connection_closed' | 'clock' | 'verb' | 'omitted';

/** How the test ended. */
export type Outcome = 'passed' | 'failed' | 'hung';

/** By name, the newest first, or those with the most children first. */
export type SortBy = 'name' | 'newest' | 'children';

/** Whether to return the tree as a JSON object or as YAML text. */
export type TreeFormat = 'json' | 'yaml';

/** What the server keeps: sessions and znodes, only znodes, or nothing. */
export type Keep = 'everything' | 'data' | 'nothing';

/** What it does for its clients. */
export type Mode = 'up' | 'down' | 'cut-off' | 'read-only';

/**
 * An operation that a fault applies to; `create`, `getChildren` and `setWatches` are all their forms, `connect` is
 * the handshake, `request` is every request but handshakes, pings and closeSession, `any` is everything.
 */
export type FaultOp =
  'any' | 'request' | 'connect' | 'close' | 'create' | 'create2' | 'createContainer' | 'createTTL' | 'multi' |
  'multiRead' | 'delete' | 'exists' | 'getData' | 'setData' | 'getACL' | 'setACL' | 'getChildren' | 'sync' | 'ping' |
  'getChildren2' | 'check' | 'reconfig' | 'checkWatches' | 'removeWatches' | 'deleteContainer' | 'auth' | 'setWatches'
  | 'sasl' | 'getEphemerals' | 'getAllChildrenNumber' | 'setWatches2' | 'addWatch' | 'whoAmI' | 'createSession' |
  'closeSession';

/** ZooKeeper's name of an error. */
export type ErrorName =
  'SYSTEMERROR' | 'RUNTIMEINCONSISTENCY' | 'DATAINCONSISTENCY' | 'CONNECTIONLOSS' | 'MARSHALLINGERROR' |
  'UNIMPLEMENTED' | 'OPERATIONTIMEOUT' | 'BADARGUMENTS' | 'UNKNOWNSESSION' | 'NEWCONFIGNOQUORUM' |
  'RECONFIGINPROGRESS' | 'APIERROR' | 'NONODE' | 'NOAUTH' | 'BADVERSION' | 'NOCHILDRENFOREPHEMERALS' | 'NODEEXISTS' |
  'NOTEMPTY' | 'SESSIONEXPIRED' | 'INVALIDCALLBACK' | 'INVALIDACL' | 'AUTHFAILED' | 'CLOSING' | 'NOTHING' |
  'SESSIONMOVED' | 'NOTREADONLY' | 'EPHEMERALONLOCALSESSION' | 'NOWATCHER' | 'REQUESTTIMEOUT' | 'RECONFIGDISABLED' |
  'SESSIONCLOSEDREQUIRESASLAUTH' | 'QUOTAEXCEEDED' | 'THROTTLEDOP';

/** The result of `now`. */
export interface Now {
  /** Time since the start; it decides when sessions expire */
  elapsedMs: number;
  /** The time of day that stats show */
  wallMs: number;
  /** Whether the clock is frozen */
  isFrozen: boolean;
  /** Whether the server keeps a journal */
  hasJournal: boolean;
}

/**
 * The result of `journal`.
 *
 * Returns the newest matching entries, oldest first, and in `next` the number that the next entry gets: pass it as
 * `since` to read what follows. `text` is the entry in a line. Entries never contain data of znodes. The journal
 * keeps what happened last, within the setting `journal_bytes`; `oldest` is the number of the oldest entry that it
 * still has.
 */
export interface Journal {
  entries: answers.JournalEntry[];
  /** The number of the next entry */
  next: number;
  /** The number of the oldest entry */
  oldest: number;
}

/**
 * The result of `advise`.
 *
 * Such as a sequential ephemeral that a lost reply orphans, polling, or a write that loses an update. Each finding
 * has the numbers of the entries that show it. It is about what the journal still has; `first` is the number of
 * the oldest entry read.
 */
export interface Advice {
  /** The mistakes, by rule */
  findings: answers.Finding[];
  /** The number of entries that were read */
  entryCount: number;
  /** The number of the oldest entry */
  first: number;
  /** The same for people */
  text: string;
  /** Returns `text`, which `console.log` prints too. */
  toString(): string;
}

/**
 * The result of `locks`.
 *
 * Recognises the znodes of Curator, kazoo, go-zookeeper, ZooKeeper's own recipes and the Rust crates by their
 * names. A deadlock is a cycle of sessions that wait for each other over several locks. Lists at most 1000 locks
 * and 10000 contenders, 1000 of one lock.
 */
export interface Locks {
  /** The locks, by path */
  locks: answers.Lock[];
  /** The deadlocks, each with its cycle */
  deadlocks: answers.Deadlock[];
  /** Whether there are more locks or contenders than listed */
  isTruncated: boolean;
  /** The same for people */
  text: string;
  /** Returns `text`, which `console.log` prints too. */
  toString(): string;
}

/**
 * The result of `story`.
 *
 * The fixtures of the packages print `text` when a test fails, and save `html` and `json`. A story has the newest
 * 10000 entries of the journal, and its text the last 50.
 */
export interface Story {
  /** The story for people, about 100 lines at most */
  text: string;
  /** A page with everything, which loads nothing */
  html: string;
  /** Everything as JSON, as text */
  json: string;
  /** The title as the name of a file, without an extension */
  fileName: string;
  /** Returns `text`, which `console.log` prints too. */
  toString(): string;
}

/**
 * The result of `resourceVerdict`.
 *
 * It was "safe" if no two holders were inside at a time, or the resource has refused the lower of their tokens. It
 * is "undecided" if no holder has entered, or a holder that has not left may have been inside when another one
 * entered.
 */
export interface ResourceVerdict {
  verdict: string;
  /** The number of entries whose token it has accepted */
  entries: number;
  /** The writes that it has accepted */
  writes: number;
  /** How often it has refused a token */
  refused: number;
  /** The verdict for people, with the acts that decide it */
  text: string;
  /** Returns `text`, which `console.log` prints too. */
  toString(): string;
}

/**
 * The result of `sweepNext`.
 *
 * Returns the number of the run, 0 if the sweep is over. The first runs have no faults. Several runs may be done
 * at a time, each in a universe of its own, but not with `orders`: waits until one ends if that decides what is
 * next.
 */
export interface SweepNext {
  /** The number of the run; 0 if the sweep is over */
  run: number;
  /** Its points, or its order; empty for a run without faults */
  points: string;
  /** What goes wrong, in a sentence */
  sentence: string;
}

/**
 * The result of `sweepFaults`.
 *
 * A test that expects an error of one fault asks so.
 */
export interface SweepFaults {
  /** The faults; none in a run without faults, and without a sweep */
  faults: string[];
  /** Its points */
  points: string;
  /** What goes wrong, in a sentence */
  sentence: string;
}

/**
 * The result of `get`.
 *
 * Fails (404) if there is no such znode.
 */
export interface Znode {
  /** Its data, null if it has none */
  data: Buffer | null;
  /** Its metadata */
  stat: answers.Stat;
}

/**
 * The result of `listChildren`.
 *
 * Pass the last name as `after` to read on. In another order the first ones are listed, and equal ones by name.
 * `total` is the number of children that contain the text, and `isTruncated` says whether there are more after the
 * last one. Fails (404) if there is no such znode.
 */
export interface ListChildren {
  /** The children, in the order */
  children: answers.ListedChild[];
  /** How many match, listed or not */
  total: number;
  /** Whether there are more */
  isTruncated: boolean;
}

/**
 * The result of `findZnodes`.
 *
 * Returns the paths, children by name below their parent. Upper and lower case differ. Fails (404) if there is no
 * znode to begin at.
 */
export interface FindZnodes {
  paths: string[];
  /** Whether there are more */
  isTruncated: boolean;
}

/**
 * The result of `tree`.
 *
 * Children are sorted by name below their parent. `isTruncated` says whether znodes after the last one are
 * omitted; paths of more than 4 MiB are omitted too. Fails (404) if there is no such znode.
 */
export interface TreeListing {
  /** The znodes, parents before their children */
  znodes: answers.ListedZnode[];
  /** Whether there are more */
  isTruncated: boolean;
}

/**
 * The result of `seed`.
 *
 * A tree of up to 1,000 znodes and 1 MiB is seeded in one turn, a larger one in several: clients are served in
 * between and may see its first part. Missing parents are created. A znode of the tree is its data, or an object
 * with the fields data, acl, container and ttl_ms.
 */
export interface Seeded {
  /** How many znodes were created */
  created: number;
  /** How many znodes got different data or a different ACL */
  changed: number;
}

/**
 * The result of `changesSince`.
 *
 * `change` is created, deleted or changed; `before` and `after` are znodes as in `exportTree`, or null. Compares
 * data, lifetimes and access lists. Lists at most 4 MiB.
 */
export interface ChangesSince {
  /** The differences, by path */
  changes: answers.ZnodeChange[];
  /** Whether there are more */
  isTruncated: boolean;
}

/** Every verb of a universe. Each rejects with MinikeeperError if the server refuses it. */
export interface Verbs {
  /** Read the server's clock: since the start, wall clock, and whether it is frozen. */
  now(): Promise<Now>;

  /**
   * Advance the clock; returns when everything due has happened. Connected sessions live on.
   *
   * The clock moves from deadline to deadline. A connected session lives on however far the clock moves, because
   * its client would have sent pings meanwhile. A session expires if it has no connection, is silenced, or a fault
   * drops its pings.
   */
  advance(options: {
    /** How far to advance, in milliseconds */
    byMs: number;
    /** Whether connected sessions expire too, as if no client had sent anything meanwhile */
    strict?: boolean | undefined;
  }): Promise<void>;

  /**
   * Freeze the clock.
   *
   * While the clock is frozen nothing expires, even if a client stops at a breakpoint.
   */
  freeze(): Promise<void>;

  /** Unfreeze the clock. */
  unfreeze(): Promise<void>;

  /**
   * Advance a frozen clock to the next deadline whenever all clients are idle.
   *
   * Connected sessions live on, as with `advance`. Off by default.
   */
  autoAdvance(options: {
    /** How long all clients must have been idle, in real time, in milliseconds; null disables it */
    idleMs: number | null;
  }): Promise<void>;

  /**
   * List every session, connected or not.
   *
   * The first request with a path binds a session to a universe. Until then the session is unbound: every universe
   * of the server finds it by its id, or by its address with the port. The server's own universe lists it, and so
   * does a created universe if it is the only one.
   */
  sessions(): Promise<answers.Session[]>;

  /**
   * Expire sessions; returns when their watchers have been notified.
   *
   * Returns how many sessions matched. Their ephemerals are deleted and the events are in the sockets of the
   * watchers. No matching session is an error (404) unless `allowNone` is set.
   */
  expire(who: Who, options?: {
    /** Whether to succeed even if no session matches */
    allowNone?: boolean | undefined;
  }): Promise<number>;

  /**
   * Close the connections of sessions; the sessions live on.
   *
   * Returns how many sessions were connected. No matching session is an error (404) unless `allowNone` is set.
   */
  disconnect(who: Who, options?: {
    /** Whether to succeed even if no session matches */
    allowNone?: boolean | undefined;
  }): Promise<number>;

  /**
   * Ignore everything that sessions send, pings too, as in a long pause of their clients.
   *
   * Returns how many sessions matched. A silenced session expires unless `unsilence` comes first. No matching
   * session is an error (404) unless `allowNone` is set.
   */
  silence(who: Who, options?: {
    /** Whether to succeed even if no session matches */
    allowNone?: boolean | undefined;
  }): Promise<number>;

  /**
   * Serve silenced sessions again.
   *
   * Returns how many sessions matched. No matching session is an error (404) unless `allowNone` is set.
   */
  unsilence(who: Who, options?: {
    /** Whether to succeed even if no session matches */
    allowNone?: boolean | undefined;
  }): Promise<number>;

  /** Close every client's connection; the sessions live on. */
  disconnectAll(): Promise<void>;

  /** Inject a fault, until `removeFault` or `resetFaults`. */
  inject(fault: FaultOptions): Promise<Fault>;

  /** List the injected faults and how often each has acted. */
  faults(): Promise<answers.InjectedFault[]>;

  /**
   * Remove a fault and release what it holds back; fails if it never acted, unless it is optional.
   *
   * Returns how often it has acted. A fault that never acted has tested nothing: it is removed, and the verb fails
   * (409). An unknown fault is an error (404).
   * @param fault The fault that inject returned
   */
  removeFault(fault: Fault | number): Promise<number>;

  /** Remove all faults and release what they hold back. */
  resetFaults(): Promise<void>;

  /**
   * Wait until a fault has acted N times.
   *
   * Returns how often it has acted. The JSON also has `last_hit`: the session, op, path and xid of what it acted
   * on last, as `faults` has. Fails (408) if it times out.
   * @param fault The fault that inject returned
   * @param hits How many times; by default 1
   */
  untilHit(fault: Fault | number, hits?: number, options?: {
    /** The limit of the wait, in real time, in milliseconds; by default 10000 */
    withinMs?: number | undefined;
  }): Promise<number>;

  /**
   * List what happened: requests and their results, events, deletions, faults, sessions, the clock.
   *
   * Returns the newest matching entries, oldest first, and in `next` the number that the next entry gets: pass it
   * as `since` to read what follows. `text` is the entry in a line. Entries never contain data of znodes. The
   * journal keeps what happened last, within the setting `journal_bytes`; `oldest` is the number of the oldest
   * entry that it still has.
   * @param limit The maximum number of entries; by default 1000
   */
  journal(limit?: number, options?: {
    /** Only entries with a path that matches: `*` is any part of a name, `**` any part of a path */
    path?: string | undefined;
    /** Only requests of this operation, such as `getData`; `create` is every kind of create */
    op?: string | undefined;
    /** Only requests with this result: `OK`, an error such as `NONODE`, `error` for any error, `NONE` for no reply */
    result?: string | undefined;
    /** Only entries of this session, hexadecimal or decimal */
    session?: string | undefined;
    /** Only entries of this kind; `session` and `connection` are all kinds that begin so */
    kind?: Kind | undefined;
    /** Only entries from this number on */
    since?: number | undefined;
  }): Promise<Journal>;

  /**
   * Count entries of the journal.
   *
   * An error (409) if entries that might match have been dropped.
   */
  count(options?: {
    /** Only entries with a path that matches: `*` is any part of a name, `**` any part of a path */
    path?: string | undefined;
    /** Only requests of this operation, such as `getData`; `create` is every kind of create */
    op?: string | undefined;
    /** Only requests with this result: `OK`, an error such as `NONODE`, `error` for any error, `NONE` for no reply */
    result?: string | undefined;
    /** Only entries of this session, hexadecimal or decimal */
    session?: string | undefined;
    /** Only entries of this kind; `session` and `connection` are all kinds that begin so */
    kind?: Kind | undefined;
    /** Only entries from this number on */
    since?: number | undefined;
  }): Promise<number>;

  /**
   * Verify what the journal contains.
   *
   * Give `exactly` (0 for none), `atLeast` or `atMost`; without them at least one entry must match. Or give
   * `inOrder`: a list of filters such as `create /locks/** -> OK`, which entries must match in this order, with
   * others between them. If the journal differs, the error (409) lists what matches or comes nearest; in Python,
   * Java and Node it is an AssertionError. Returns how many entries match.
   */
  verify(options?: {
    /** Only entries with a path that matches: `*` is any part of a name, `**` any part of a path */
    path?: string | undefined;
    /** Only requests of this operation, such as `getData`; `create` is every kind of create */
    op?: string | undefined;
    /** Only requests with this result: `OK`, an error such as `NONODE`, `error` for any error, `NONE` for no reply */
    result?: string | undefined;
    /** Only entries of this session, hexadecimal or decimal */
    session?: string | undefined;
    /** Only entries of this kind; `session` and `connection` are all kinds that begin so */
    kind?: Kind | undefined;
    /** Only entries from this number on */
    since?: number | undefined;
    /** The number of entries that must match */
    exactly?: number | undefined;
    /** The least number of entries that must match */
    atLeast?: number | undefined;
    /** The greatest number of entries that may match */
    atMost?: number | undefined;
    /** Filters that entries must match in this order */
    inOrder?: readonly string[] | undefined;
  }): Promise<number>;

  /** Forget every entry of the journal; the numbers of entries continue. */
  clearJournal(): Promise<void>;

  /**
   * Find known mistakes of clients in the journal: what, why it matters, what to do.
   *
   * Such as a sequential ephemeral that a lost reply orphans, polling, or a write that loses an update. Each
   * finding has the numbers of the entries that show it. It is about what the journal still has; `first` is the
   * number of the oldest entry read.
   */
  advise(options?: {
    /** Rules such as `herd`, and paths such as `/config/**`, to leave out, separated by commas */
    ignore?: string | undefined;
  }): Promise<Advice>;

  /**
   * List every lock, semaphore and election: who holds it, who waits for whom, what is wrong.
   *
   * Recognises the znodes of Curator, kazoo, go-zookeeper, ZooKeeper's own recipes and the Rust crates by their
   * names. A deadlock is a cycle of sessions that wait for each other over several locks. Lists at most 1000 locks
   * and 10000 contenders, 1000 of one lock.
   */
  locks(): Promise<Locks>;

  /**
   * Show what helps to understand a failed test: locks, sessions, faults, the last requests.
   *
   * The fixtures of the packages print `text` when a test fails, and save `html` and `json`. A story has the
   * newest 10000 entries of the journal, and its text the last 50.
   */
  story(options?: {
    /** Its title, such as the name of the test; cut after 200 characters */
    title?: string | undefined;
    /** Why the test failed, which the page shows; cut after 4000 characters */
    failure?: string | undefined;
  }): Promise<Story>;

  /**
   * Record what clients send, and what follows, for `minikeeper replay`.
   *
   * The recording is in memory and ends at its limit. If there are sessions, this closes their connections, as a
   * restart that keeps everything does: clients connect again, and the recording has their watches.
   * @param bytesMax The size limit of the recording; by default 67108864
   */
  startRecording(bytesMax?: number): Promise<void>;

  /**
   * Stop the recording and return it.
   *
   * `minikeeper ctl stop-recording | base64 -d >FILE` writes the file for `minikeeper replay FILE`. It contains
   * the data of znodes, and what clients sent to authenticate.
   */
  stopRecording(): Promise<string>;

  /**
   * Enter a resource that a lock protects, until `resourceLeave`.
   *
   * `resourceVerdict` says whether two were inside at a time. Call it while the lock is held, and wait for the
   * answer. A run of a sweep in which a resource is not safe fails.
   * @param resource Its name, at most 200 characters
   */
  resourceEnter(resource: string, options?: {
    /** Who enters, for the verdict */
    holder?: string | undefined;
    /** The fencing token of the lock: the resource refuses those that are lower than one that it has seen */
    fencingToken?: number | undefined;
  }): Promise<number>;

  /**
   * Write to a resource, and say whether it accepts that.
   *
   * It does unless it has seen a higher token.
   * @param entry The number that resource_enter returned
   */
  resourceWrite(entry: number): Promise<boolean>;

  /**
   * Leave a resource, before the lock is released.
   * @param entry The number that resource_enter returned
   */
  resourceLeave(entry: number): Promise<void>;

  /**
   * Say whether what was done to a resource was safe.
   *
   * It was "safe" if no two holders were inside at a time, or the resource has refused the lower of their tokens.
   * It is "undecided" if no holder has entered, or a holder that has not left may have been inside when another
   * one entered.
   * @param resource Its name, at most 200 characters
   */
  resourceVerdict(resource: string): Promise<ResourceVerdict>;

  /**
   * Start a sweep: a test runs once for every fault at every place where it can happen.
   *
   * Then, until `sweepNext` returns run 0: call `sweepNext` on a universe that no client uses yet, run the test
   * with it, and call `sweepEnd`. The fixtures of the packages do so.
   * @param depth How many faults a run has; with 2, pairs are tried until a budget ends, or with `orders` one
   * fault in an order; by default 1
   * @param seed The order in which points are tried; by default 0
   * @param rollback How many changes a rollback takes back; by default 1
   */
  sweepStart(depth?: number, seed?: number, rollback?: number, options?: {
    /** Whether to try equivalent points, too */
    all?: boolean | undefined;
    /** The maximum number of runs */
    runs?: number | undefined;
    /** The time after which no run begins, in milliseconds */
    timeMs?: number | undefined;
    /**
     * The faults to try, separated by commas, or `all`: reply-lost,session-expired; by default all but outage,
     * client-outage, client-crash and rollback
     */
    faults?: string | undefined;
    /** How long an outage lasts, by the server's clock, in milliseconds; 0 if it does not end; by default 1,000 */
    outageMs?: number | undefined;
    /**
     * The failures that the test expects, a rule a line: session-expired:*:create raises SessionExpired because
     * the caller asks again
     */
    allow?: string | undefined;
    /** The points that are not tried, a rule a line: reply-late because the timeout is an hour */
    leaveOut?: string | undefined;
    /** Whether to end with the first failure, once it is confirmed */
    first?: boolean | undefined;
    /** Whether a run also fails if it leaves other znodes, clients or watches than the runs without faults */
    compare?: boolean | undefined;
    /** The points of the only run, as a report names them, with + between two; or its order */
    only?: string | undefined;
    /** Whether to try the orders in which requests can be served, instead of faults */
    orders?: boolean | undefined;
    /**
     * With `orders`: up to how many unforced changes (of client, late events, with `depth` 2 a fault) all orders
     * are tried, or `all`; by default 2
     */
    changes?: string | undefined;
    /**
     * With `orders`: how many further orders are tried then, random ones among them; by default 1,000, or until a
     * budget ends
     */
    more?: number | undefined;
    /**
     * With `orders`: whether the clients that begin a run, up to 4, do the same, so that orders which differ only
     * in which of them is which are equivalent
     */
    alike?: boolean | undefined;
    /**
     * With `orders`: the number of clients with which a run begins, if it is known; then their requests are served
     * as soon as each of them has one
     */
    clients?: number | undefined;
    /**
     * With `orders`: the number of the process, on the server's machine, that runs the test; then its threads tell
     * when no further request is coming
     */
    process?: number | undefined;
    /** How many points may stay unreached in a sweep that is clean nevertheless; by default 0 */
    allowUnreached?: number | undefined;
    /** How many points the budget may leave untried in a sweep that is clean nevertheless; by default 0 */
    allowUntried?: number | undefined;
    /** The name of the test, if it is one of a suite, whose options it takes in place of these: see `suite_start` */
    test?: string | undefined;
    /**
     * With `test`: how many tests are still to come, this one included; it may take four equal shares of the time
     * that is left
     */
    testsLeft?: number | undefined;
    /** With `test`: the command that does a run of it again, with {} in place of its points */
    repeat?: string | undefined;
  }): Promise<number>;

  /**
   * Start a suite, whose tests share a budget, a report and equivalent points.
   *
   * Then call `sweepStart` with `test` for each test, and `suiteReport` at the end. `minikeeper sweep --suite`
   * does so.
   * @param rollback As in `sweep_start`; by default 1
   * @param depth As in `sweep_start`; by default 1
   * @param seed As in `sweep_start`; by default 0
   */
  suiteStart(rollback?: number, depth?: number, seed?: number, options?: {
    /** As in `sweep_start` */
    faults?: string | undefined;
    /** As in `sweep_start`, in milliseconds */
    outageMs?: number | undefined;
    /** As in `sweep_start` */
    all?: boolean | undefined;
    /** The time of the whole suite, after which no run begins, in milliseconds */
    timeMs?: number | undefined;
    /** As in `sweep_start`, for each test */
    first?: boolean | undefined;
    /** As in `sweep_start` */
    compare?: boolean | undefined;
    /** As in `sweep_start` */
    allow?: string | undefined;
    /** As in `sweep_start` */
    leaveOut?: string | undefined;
    /** As in `sweep_start`, for each test and for all */
    allowUnreached?: number | undefined;
    /** As in `sweep_start`, for each test and for all */
    allowUntried?: number | undefined;
  }): Promise<void>;

  /** Show what the sweeps of a suite have found so far. */
  suiteReport(options?: {
    /** The name of the suite */
    title?: string | undefined;
  }): Promise<string>;

  /**
   * Inject the faults of a sweep's next run into this universe, which no client uses yet.
   *
   * Returns the number of the run, 0 if the sweep is over. The first runs have no faults. Several runs may be done
   * at a time, each in a universe of its own, but not with `orders`: waits until one ends if that decides what is
   * next.
   * @param sweep The number that sweep_start returned
   */
  sweepNext(sweep: number): Promise<SweepNext>;

  /**
   * Show what the sweep tries in this run.
   *
   * A test that expects an error of one fault asks so.
   */
  sweepFaults(): Promise<SweepFaults>;

  /**
   * Note a goal that some run of the sweep must reach, such as "the second contender waited".
   *
   * Call it where the goal may hold, in every run. If no run reaches it, the sweep is incomplete. Does nothing
   * without a sweep.
   * @param goal The goal, at most 200 characters
   */
  sometimes(goal: string, options?: {
    /** Whether it is reached */
    holds?: boolean | undefined;
  }): Promise<void>;

  /**
   * Wait until the clients of a sweep's run have died, by the fault `client-crash`.
   *
   * Then stop the test where it is, and begin it again in the same universe: the server serves nothing of the
   * sessions from before. The outcome of the run is that of the second start. Returns false if it times out, the
   * run ends, or has no such fault.
   * @param sweep The number that sweep_start returned
   */
  sweepCrashed(sweep: number, options?: {
    /** The number of the run, if several are being done */
    run?: number | undefined;
    /** The limit of the wait, in real time, in milliseconds; by default 10000 */
    withinMs?: number | undefined;
  }): Promise<boolean>;

  /**
   * End the run of a sweep with the outcome of the test, and remove its faults.
   * @param sweep The number that sweep_start returned
   */
  sweepEnd(sweep: number, options: {
    /** The number of the run, if several are being done */
    run?: number | undefined;
    /** How the test ended */
    outcome: Outcome;
    /** Why it failed */
    message?: string | undefined;
    /**
     * Where in the program it failed, such as test_job.py:17; failures with the same message, place and first
     * difference in the journal are one group
     */
    place?: string | undefined;
    /** The page with the story of the failure, which the report names */
    story?: string | undefined;
  }): Promise<boolean>;

  /**
   * Show what a sweep has found so far.
   * @param sweep The number that sweep_start returned
   */
  sweepReport(sweep: number, options?: {
    /** The command that does a run again, with {} in place of its points */
    repeat?: string | undefined;
    /** The name of the test */
    title?: string | undefined;
  }): Promise<string>;

  /**
   * Read the data and stat of a znode.
   *
   * Fails (404) if there is no such znode.
   * @param path The znode's path
   */
  get(path: string): Promise<Znode>;

  /**
   * List the names of a znode's children, oldest first.
   *
   * The root of an empty tree has the child zookeeper, as in ZooKeeper; `exportTree` leaves it out. Fails (404) if
   * there is no such znode.
   * @param path The znode's path
   */
  children(path: string): Promise<string[]>;

  /**
   * List a znode's children sorted by name, some at a time.
   *
   * Pass the last name as `after` to read on. In another order the first ones are listed, and equal ones by name.
   * `total` is the number of children that contain the text, and `isTruncated` says whether there are more after
   * the last one. Fails (404) if there is no such znode.
   * @param path The znode's path
   * @param after Only children whose names are after this one; by default
   * @param containing Only children whose names contain this text; by default
   * @param max The limit of the znodes to list, at most 10000; by default 1000
   */
  listChildren(path: string, after?: string, containing?: string, max?: number, options?: {
    /** By name, the newest first, or those with the most children first; by default name */
    sortBy?: SortBy | undefined;
  }): Promise<ListChildren>;

  /**
   * Find znodes whose path contains a text, or whose data does.
   *
   * Returns the paths, children by name below their parent. Upper and lower case differ. Fails (404) if there is
   * no znode to begin at.
   * @param containing The text to find
   * @param path The top of the subtree; by default /
   * @param max The limit of the znodes to list, at most 10000; by default 1000
   */
  findZnodes(containing: string, path?: string, max?: number, options?: {
    /** Whether to search the data of znodes too */
    inData?: boolean | undefined;
  }): Promise<FindZnodes>;

  /**
   * Read the access list of a znode in ZooKeeper's notation, as in world:anyone:cdrwa.
   *
   * Fails (404) if there is no such znode.
   * @param path The znode's path
   */
  acl(path: string): Promise<string[]>;

  /**
   * List a znode and everything below it, with data lengths and the owners of ephemerals.
   *
   * Children are sorted by name below their parent. `isTruncated` says whether znodes after the last one are
   * omitted; paths of more than 4 MiB are omitted too. Fails (404) if there is no such znode.
   * @param path The top of the subtree; by default /
   * @param max The limit of the znodes to list, at most 10000; by default 1000
   */
  tree(path?: string, max?: number): Promise<TreeListing>;

  /**
   * Create a znode outside of any session; returns its path.
   *
   * The parent must exist. Watches fire as after a client's create; access lists are not checked, and the znode is
   * open to all clients. It cannot be ephemeral, because no session would own it. Fails (409) if it exists
   * already, and (404) without a parent.
   * @param path The znode's path
   * @param data The data; empty by default
   */
  create(path: string, data?: string | Uint8Array, options?: {
    /** Whether to append a number to the name */
    sequential?: boolean | undefined;
    /** Whether the znode ends some time after its last child */
    container?: boolean | undefined;
    /** The time to live without children and new data, in milliseconds; 0 for no limit; by default 0 */
    ttlMs?: number | undefined;
  }): Promise<string>;

  /**
   * Set the data of a znode outside of any session; returns its new version.
   *
   * Watches fire as after a client's setData; access lists are not checked. Fails (404) if there is no such znode,
   * and (409) if it has another version.
   * @param path The znode's path
   * @param data The data
   */
  set(path: string, data: string | Uint8Array, options?: {
    /** The version that the znode must have; -1 for any; by default -1 */
    version?: number | undefined;
  }): Promise<number>;

  /**
   * Delete a znode outside of any session; returns how many znodes were deleted.
   *
   * Watches fire as after a client's delete; access lists are not checked. Fails (404) if there is no such znode,
   * and (409) if it has another version, or has children and `recursive` is not set.
   * @param path The znode's path
   */
  delete(path: string, options?: {
    /** The version that the znode must have; -1 for any; by default -1 */
    version?: number | undefined;
    /** Whether to delete everything below it too; more than 1,000 znodes in several turns */
    recursive?: boolean | undefined;
  }): Promise<number>;

  /**
   * Print znodes, sessions and watches as text; equal trees give equal text.
   *
   * Whatever depends on the time and order of changes is left out: sessions are numbered in the order of what they
   * own. Children are sorted by name, data is quoted or escaped, and access lists that are open to all clients are
   * omitted.
   */
  dump(options?: {
    /** Whether to print session ids, zxids, times and versions too */
    ids?: boolean | undefined;
  }): Promise<string>;

  /**
   * Export the tree in the format of `seed`, without /zookeeper; lists ephemerals separately.
   *
   * Fails (404) if there is no such znode.
   * @param path The top of the subtree; by default /
   */
  exportTree<F extends TreeFormat = 'json'>(path?: string, options?: {
    /** Whether to return the tree as a JSON object or as YAML text; by default json */
    format?: F | undefined;
  }): Promise<F extends 'yaml' ? string : Tree>;

  /**
   * Create the znodes of a tree that are missing and set those that differ.
   *
   * A tree of up to 1,000 znodes and 1 MiB is seeded in one turn, a larger one in several: clients are served in
   * between and may see its first part. Missing parents are created. A znode of the tree is its data, or an object
   * with the fields data, acl, container and ttl_ms.
   */
  seed(tree: Record<string, Seed> | string): Promise<Seeded>;

  /**
   * Take a snapshot of znodes, sessions and watches, for `restore`.
   *
   * Returns the number of the snapshot.
   */
  snapshot(): Promise<number>;

  /**
   * Restore a snapshot, which can be restored again.
   * @param snapshot The number that snapshot returned
   */
  restore(snapshot: number): Promise<void>;

  /**
   * Drop a snapshot and free its memory.
   * @param snapshot The number that snapshot returned
   */
  dropSnapshot(snapshot: number): Promise<void>;

  /**
   * List the snapshots that `snapshot` has taken, oldest first.
   *
   * `is_there` is false for a snapshot that can no longer be restored: an older one was restored, the server was
   * restarted, or more than 256 MiB of changes were made since.
   */
  snapshots(): Promise<answers.TakenSnapshot[]>;

  /**
   * List the znodes that differ from those in a snapshot.
   *
   * `change` is created, deleted or changed; `before` and `after` are znodes as in `exportTree`, or null. Compares
   * data, lifetimes and access lists. Lists at most 4 MiB.
   * @param snapshot The number that snapshot returned
   * @param max The limit of the znodes to list, at most 10000; by default 1000
   */
  changesSince(snapshot: number, max?: number): Promise<ChangesSince>;

  /**
   * Create a universe as a copy of this one.
   * @param name The name of the copy: one part of a path
   */
  fork(name: string): Promise<Universe>;

  /**
   * Wait until a client watches a path.
   * @param path The watched path, whatever the kind of watch
   */
  untilWatched(path: string, options?: {
    /** The limit of the wait, in real time, in milliseconds; by default 10000 */
    withinMs?: number | undefined;
  }): Promise<void>;

  /**
   * Wait until a znode exists.
   * @param path The znode
   */
  untilExists(path: string, options?: {
    /** The limit of the wait, in real time, in milliseconds; by default 10000 */
    withinMs?: number | undefined;
  }): Promise<void>;

  /**
   * Wait until a znode has N children.
   * @param path The znode
   * @param count How many
   */
  untilChildren(path: string, count: number, options?: {
    /** The limit of the wait, in real time, in milliseconds; by default 10000 */
    withinMs?: number | undefined;
  }): Promise<void>;

  /**
   * Wait until N contenders hold a lock or queue for it.
   * @param lock The path of the lock
   * @param count How many
   */
  untilContenders(lock: string, count: number, options?: {
    /** The limit of the wait, in real time, in milliseconds; by default 10000 */
    withinMs?: number | undefined;
  }): Promise<void>;

  /**
   * Wait until there are N sessions, connected or not.
   * @param count How many
   */
  untilSessions(count: number, options?: {
    /** The limit of the wait, in real time, in milliseconds; by default 10000 */
    withinMs?: number | undefined;
  }): Promise<void>;

  /**
   * Wait until a client has noticed that its session has ended.
   *
   * It has when it asked for the session as it connected again, and was told that the session has expired; its
   * callbacks run after that. Give the session's id: an ended session has no address, identity or ephemeral. The
   * server remembers the newest 1,024 sessions that clients have asked for in vain.
   */
  untilNoticed(who: Who, options?: {
    /** The limit of the wait, in real time, in milliseconds; by default 10000 */
    withinMs?: number | undefined;
  }): Promise<void>;

  /** Wait until no client has sent a request for a while. */
  untilIdle(options?: {
    /** How long no client may have sent a request, in real time, in milliseconds; by default 50 */
    quietMs?: number | undefined;
    /** The limit of the wait, in real time, in milliseconds; by default 10000 */
    withinMs?: number | undefined;
  }): Promise<void>;

  /**
   * Replace the state by that of a ZooKeeper data directory.
   *
   * Accepts directories of ZooKeeper 3.4 to 3.9 and only reads them.
   * @param dir A directory on the server's machine
   */
  importData(dir: string): Promise<void>;

  /**
   * Write a data directory that ZooKeeper can start from.
   *
   * ZooKeeper 3.8 and 3.9 start from it. Returns the zxid of the state.
   * @param dir A directory on the server's machine
   */
  exportData(dir: string): Promise<string>;

  /**
   * Create a universe with an empty tree behind the same port.
   *
   * Applies to the whole server: a created universe refuses it (400).
   * @param name Its name: one part of a path
   */
  createUniverse(name: string): Promise<Universe>;

  /**
   * List the universes, without the server's own.
   *
   * Applies to the whole server: a created universe refuses it (400).
   */
  universes(): Promise<string[]>;

  /**
   * Drop a universe: close its connections and delete its state.
   *
   * Applies to the whole server: a created universe refuses it (400).
   * @param name Its name: one part of a path
   */
  dropUniverse(name: string): Promise<void>;

  /**
   * Restart the server on the same port.
   *
   * Applies to the whole server: a created universe refuses it (400).
   */
  restart(options?: {
    /** What the server keeps: sessions and znodes, only znodes, or nothing; by default everything */
    keep?: Keep | undefined;
  }): Promise<void>;

  /**
   * Stop listening and close every connection; returns the address of control meanwhile.
   *
   * Connections are refused until `comeUp`. Returns HOST:PORT.
   *
   * Applies to the whole server: a created universe refuses it (400).
   */
  goDown(): Promise<string>;

  /**
   * Listen again on the same port.
   *
   * Applies to the whole server: a created universe refuses it (400).
   */
  comeUp(options?: {
    /** What the server keeps: sessions and znodes, only znodes, or nothing; by default everything */
    keep?: Keep | undefined;
  }): Promise<void>;

  /**
   * List the servers of the ensemble, with their modes and sessions.
   *
   * There is one, unless the server was started with `--servers`.
   *
   * Applies to the whole server: a created universe refuses it (400).
   */
  servers(): Promise<answers.EnsembleServer[]>;

  /**
   * Take a server of the ensemble down or up, cut it off, or make it read-only.
   *
   * A server that is down does not listen; one that is cut off accepts connections and answers nothing; one that
   * is read-only serves reads, to clients that accept that. Clients fail over to the other servers, which serve
   * the same state.
   *
   * Applies to the whole server: a created universe refuses it (400).
   * @param server The number of the server, from 1
   */
  setServer(server: number, options: {
    /** What it does for its clients */
    mode: Mode;
  }): Promise<void>;

  /**
   * Choose the server of the ensemble that says it is the leader.
   *
   * As all servers serve one state, only what `srvr`, `stat` and `mntr` say changes. While the chosen server is
   * not up, the first one that is up leads.
   *
   * Applies to the whole server: a created universe refuses it (400).
   * @param server The number of the server, from 1
   */
  setLeader(server: number): Promise<void>;

  /**
   * Save the state to the data directory now.
   *
   * Applies to the whole server: a created universe refuses it (400).
   */
  save(): Promise<void>;
}
