/// <reference types="node" />

// Generated from the table of verbs, server/src/control/verbs. To generate it again:
// UPDATE_EXPECT=1 cargo test -p minikeeper --test bindings

import type { Fault, Seed, Session, Universe, Who } from './index';

/** What the fault does to a matching operation. */
export type FaultAction = 'refuse' | 'delay' | 'drop-request' | 'lose-reply' | 'never-answer' | 'error' | 'cut' | 'cut-reply' | 'hold-events';

/** Whether to return the tree as a JSON object or as YAML text. */
export type TreeFormat = 'json' | 'yaml';

/** What the server keeps: sessions and znodes, only znodes, or nothing. */
export type Keep = 'everything' | 'data' | 'nothing';

/** The result of `now`. */
export interface Now {
  /** Time since the start; it decides when sessions expire */
  elapsedMs: number;
  /** The time of day that stats show */
  wallMs: number;
  /** Whether the clock is frozen */
  isFrozen: boolean;
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
  stat: Record<string, unknown>;
}

/**
 * The result of `seed`.
 *
 * Missing parents are created. A znode of the tree is its data, or an object with the fields `data`, `acl`,
 * `container` and `ttl_ms`.
 */
export interface Seeded {
  /** How many znodes were created */
  created: number;
  /** How many znodes got different data or a different ACL */
  changed: number;
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
    strict?: boolean;
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
  sessions(): Promise<Session[]>;

  /**
   * Expire sessions; returns when their watchers have been notified.
   *
   * Returns how many sessions matched. Their ephemerals are deleted and the events are in the sockets of the
   * watchers. No matching session is an error (404) unless `allowNone` is set.
   */
  expire(who: Who, options?: {
    /** Whether to succeed even if no session matches */
    allowNone?: boolean;
  }): Promise<number>;

  /**
   * Close the connections of sessions; the sessions live on.
   *
   * Returns how many sessions were connected. No matching session is an error (404) unless `allowNone` is set.
   */
  disconnect(who: Who, options?: {
    /** Whether to succeed even if no session matches */
    allowNone?: boolean;
  }): Promise<number>;

  /**
   * Ignore everything that sessions send, pings too, as in a long pause of their clients.
   *
   * Returns how many sessions matched. A silenced session expires unless `unsilence` comes first. No matching
   * session is an error (404) unless `allowNone` is set.
   */
  silence(who: Who, options?: {
    /** Whether to succeed even if no session matches */
    allowNone?: boolean;
  }): Promise<number>;

  /**
   * Serve silenced sessions again.
   *
   * Returns how many sessions matched. No matching session is an error (404) unless `allowNone` is set.
   */
  unsilence(who: Who, options?: {
    /** Whether to succeed even if no session matches */
    allowNone?: boolean;
  }): Promise<number>;

  /** Close every client's connection; the sessions live on. */
  disconnectAll(): Promise<void>;

  /** Inject a fault, until `removeFault` or `resetFaults`. */
  inject(options: {
    /** What the fault does to a matching operation */
    action: FaultAction;
    /** Operations that the fault applies to, separated by commas: create, connect, ping */
    op?: string;
    /** Paths that the fault applies to: * matches within a name, ** across names */
    path?: string;
    /** The session that the fault applies to */
    session?: string;
    /** The client address that the fault applies to */
    address?: string;
    /** How many matching operations to skip first */
    skip?: number;
    /** How many times the fault acts; without a limit if absent */
    count?: number;
    /** The probability that the fault acts on a match, from 0 to 1 */
    probability?: number;
    /** The seed of the random numbers for probability */
    seed?: number;
    /** The delay, for the action delay, in milliseconds */
    delayMs?: number;
    /** The error, for the action error: NODEEXISTS */
    error?: string;
    /** Whether removing the fault succeeds even if it never acted */
    optional?: boolean;
  }): Promise<Fault>;

  /** List the injected faults and how often each has acted. */
  faults(): Promise<Record<string, unknown>[]>;

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
   * Returns how often it has acted. Fails (408) if it times out.
   * @param fault The fault that inject returned
   * @param hits How many times; by default 1
   */
  untilHit(fault: Fault | number, hits?: number, options?: {
    /** The limit of the wait, in real time, in milliseconds; by default 10000 */
    withinMs?: number;
  }): Promise<number>;

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
   * Fails (404) if there is no such znode.
   * @param path The znode's path
   */
  children(path: string): Promise<string[]>;

  /** Print znodes, sessions and watches as text; equal trees give equal text. */
  dump(): Promise<string>;

  /** Export the tree in the format of `seed`, without /zookeeper; lists ephemerals separately. */
  exportTree(options?: {
    /** Whether to return the tree as a JSON object or as YAML text; by default json */
    format?: TreeFormat;
  }): Promise<any>;

  /**
   * Create the znodes of a tree that are missing and set those that differ, in one turn.
   *
   * Missing parents are created. A znode of the tree is its data, or an object with the fields `data`, `acl`,
   * `container` and `ttl_ms`.
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
    withinMs?: number;
  }): Promise<void>;

  /**
   * Wait until a znode exists.
   * @param path The znode
   */
  untilExists(path: string, options?: {
    /** The limit of the wait, in real time, in milliseconds; by default 10000 */
    withinMs?: number;
  }): Promise<void>;

  /**
   * Wait until a znode has N children.
   * @param path The znode
   * @param count How many
   */
  untilChildren(path: string, count: number, options?: {
    /** The limit of the wait, in real time, in milliseconds; by default 10000 */
    withinMs?: number;
  }): Promise<void>;

  /**
   * Wait until N contenders hold a lock or queue for it.
   * @param lock The path of the lock
   * @param count How many
   */
  untilContenders(lock: string, count: number, options?: {
    /** The limit of the wait, in real time, in milliseconds; by default 10000 */
    withinMs?: number;
  }): Promise<void>;

  /**
   * Wait until there are N sessions, connected or not.
   * @param count How many
   */
  untilSessions(count: number, options?: {
    /** The limit of the wait, in real time, in milliseconds; by default 10000 */
    withinMs?: number;
  }): Promise<void>;

  /** Wait until no client has sent a request for a while. */
  untilIdle(options?: {
    /** How long no client may have sent a request, in real time, in milliseconds; by default 50 */
    quietMs?: number;
    /** The limit of the wait, in real time, in milliseconds; by default 10000 */
    withinMs?: number;
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
    keep?: Keep;
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
    keep?: Keep;
  }): Promise<void>;

  /**
   * Save the state to the data directory now.
   *
   * Applies to the whole server: a created universe refuses it (400).
   */
  save(): Promise<void>;
}
