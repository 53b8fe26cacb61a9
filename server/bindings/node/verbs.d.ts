/// <reference types="node" />

// Generated from the table of verbs, server/src/control/verbs. To write it again:
// UPDATE_EXPECT=1 cargo test -p minikeeper --test bindings

import type { Fault, Seed, Session, Universe, Who } from './index';

/** What it does to what it meets. */
export type FaultAction = 'refuse' | 'delay' | 'drop-request' | 'lose-reply' | 'never-answer' | 'error' | 'cut' | 'cut-reply' | 'hold-events';

/** The tree as an object, or as text in YAML. */
export type TreeFormat = 'json' | 'yaml';

/** What is still there afterwards: sessions and znodes, znodes alone, or nothing. */
export type Keep = 'everything' | 'data' | 'nothing';

/** What `now` returns. */
export interface Now {
  /** Time since the start; it decides when sessions expire */
  elapsedMs: number;
  /** The time of day that stats show */
  wallMs: number;
  /** Whether the clock stands still */
  isFrozen: boolean;
}

/**
 * What `get` returns.
 *
 * An error (404) if there is no such znode.
 */
export interface Znode {
  /** Its data, null if it has none */
  data: Buffer | null;
  /** Its metadata */
  stat: Record<string, unknown>;
}

/**
 * What `seed` returns.
 *
 * Missing parents are created. A znode of the tree is its data, or an object with the fields `data`, `acl`,
 * `container` and `ttl_ms`.
 */
export interface Seeded {
  /** How many znodes were created */
  created: number;
  /** How many znodes got other data or another ACL */
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
   * its client would have sent pings meanwhile. A session without a connection, a silenced one, or one whose pings
   * a fault drops expires.
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

  /** Let the clock run again. */
  unfreeze(): Promise<void>;

  /**
   * Advance a frozen clock to the next deadline whenever all clients are idle.
   *
   * Connected sessions live on, as with `advance`. Off by default.
   */
  autoAdvance(options: {
    /** How long all clients must have been idle, in real time, in milliseconds; null switches it off */
    idleMs: number | null;
  }): Promise<void>;

  /**
   * List every session, connected or not.
   *
   * The first request with a path tells which universe a session belongs to. Until then the session is unbound:
   * every universe of the server finds it by its id, or by its address with the port. The server's own universe
   * lists it, and so does another universe if it is the only one.
   */
  sessions(): Promise<Session[]>;

  /**
   * Expire sessions; returns when their watchers have been notified.
   *
   * Returns how many. Their ephemerals are deleted and the events are in the sockets of the watchers. No matching
   * session is an error (404) unless `allowNone` is set.
   */
  expire(who: Who, options?: {
    /** Whether it is no error that no session matches */
    allowNone?: boolean;
  }): Promise<number>;

  /**
   * Close the connections of sessions; the sessions live on.
   *
   * Returns how many sessions were connected. No matching session is an error (404) unless `allowNone` is set.
   */
  disconnect(who: Who, options?: {
    /** Whether it is no error that no session matches */
    allowNone?: boolean;
  }): Promise<number>;

  /**
   * Ignore everything that sessions send, pings too, as in a long pause of their clients.
   *
   * Returns how many. A silenced session expires unless `unsilence` comes first. No matching session is an error
   * (404) unless `allowNone` is set.
   */
  silence(who: Who, options?: {
    /** Whether it is no error that no session matches */
    allowNone?: boolean;
  }): Promise<number>;

  /**
   * Listen to silenced sessions again.
   *
   * Returns how many. No matching session is an error (404) unless `allowNone` is set.
   */
  unsilence(who: Who, options?: {
    /** Whether it is no error that no session matches */
    allowNone?: boolean;
  }): Promise<number>;

  /** Close every client's connection; the sessions live on. */
  disconnectAll(): Promise<void>;

  /** Inject a fault, until `removeFault` or `resetFaults`. */
  inject(options: {
    /** What it does to what it meets */
    action: FaultAction;
    /** Operations that the fault applies to, separated by commas: create, connect, ping */
    op?: string;
    /** Paths that the fault applies to: * matches within a name, ** across names */
    path?: string;
    /** The session that the fault applies to */
    session?: string;
    /** The client address that the fault applies to */
    address?: string;
    /** How many it leaves alone first */
    skip?: number;
    /** How often it acts */
    count?: number;
    /** How likely it acts each time */
    probability?: number;
    /** What chance follows from */
    seed?: number;
    /** The delay, for the action delay, in milliseconds */
    delayMs?: number;
    /** The error, for the action error: NODEEXISTS */
    error?: string;
    /** Whether removing the fault is no error if it never acted */
    optional?: boolean;
  }): Promise<Fault>;

  /** List the injected faults and how often each has acted. */
  faults(): Promise<Record<string, unknown>[]>;

  /**
   * Remove a fault and release what it holds back; an error if it never acted, unless it is optional.
   *
   * Returns how often it has acted. A fault that never acted has tested nothing: the fault is removed, and the
   * answer is an error (409). An unknown fault is an error (404).
   * @param fault What inject returned
   */
  removeFault(fault: Fault | number): Promise<number>;

  /** Remove all faults and release what they hold back. */
  resetFaults(): Promise<void>;

  /**
   * Wait until a fault has acted N times.
   *
   * Returns how often it has acted. An error (408) if the time runs out.
   * @param fault What inject returned
   * @param hits How many times; by default 1
   */
  untilHit(fault: Fault | number, hits?: number, options?: {
    /** How long to wait at most, in real time, in milliseconds; by default 10000 */
    withinMs?: number;
  }): Promise<number>;

  /**
   * Read the data and stat of a znode.
   *
   * An error (404) if there is no such znode.
   * @param path The znode's path
   */
  get(path: string): Promise<Znode>;

  /**
   * List the names of a znode's children, oldest first.
   *
   * An error (404) if there is no such znode.
   * @param path The znode's path
   */
  children(path: string): Promise<string[]>;

  /** Print znodes, sessions and watches as text; equal trees give equal text. */
  dump(): Promise<string>;

  /** Export the tree in the form of `seed`, without /zookeeper; ephemerals are listed apart. */
  exportTree(options?: {
    /** The tree as an object, or as text in YAML; by default json */
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
   * Go back to a snapshot; it can be restored again.
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
    /** How long to wait at most, in real time, in milliseconds; by default 10000 */
    withinMs?: number;
  }): Promise<void>;

  /**
   * Wait until a znode exists.
   * @param path The znode
   */
  untilExists(path: string, options?: {
    /** How long to wait at most, in real time, in milliseconds; by default 10000 */
    withinMs?: number;
  }): Promise<void>;

  /**
   * Wait until a znode has N children.
   * @param path The znode
   * @param count How many
   */
  untilChildren(path: string, count: number, options?: {
    /** How long to wait at most, in real time, in milliseconds; by default 10000 */
    withinMs?: number;
  }): Promise<void>;

  /**
   * Wait until N contenders hold a lock or queue for it.
   * @param lock The path of the lock
   * @param count How many
   */
  untilContenders(lock: string, count: number, options?: {
    /** How long to wait at most, in real time, in milliseconds; by default 10000 */
    withinMs?: number;
  }): Promise<void>;

  /**
   * Wait until there are N sessions, connected or not.
   * @param count How many
   */
  untilSessions(count: number, options?: {
    /** How long to wait at most, in real time, in milliseconds; by default 10000 */
    withinMs?: number;
  }): Promise<void>;

  /** Wait until no client has asked for anything for a while. */
  untilIdle(options?: {
    /** How long no client must have sent anything, in real time, in milliseconds; by default 50 */
    quietMs?: number;
    /** How long to wait at most, in real time, in milliseconds; by default 10000 */
    withinMs?: number;
  }): Promise<void>;

  /**
   * Replace the state by that of a ZooKeeper data directory.
   *
   * Reads directories of ZooKeeper 3.4 to 3.9, which are only read.
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
   * This is about the whole server: a universe that was created refuses it (400).
   * @param name Its name: one part of a path
   */
  createUniverse(name: string): Promise<Universe>;

  /**
   * List the universes, without the server's own.
   *
   * This is about the whole server: a universe that was created refuses it (400).
   */
  universes(): Promise<string[]>;

  /**
   * Drop a universe: close its connections and delete its state.
   *
   * This is about the whole server: a universe that was created refuses it (400).
   * @param name Its name: one part of a path
   */
  dropUniverse(name: string): Promise<void>;

  /**
   * Go down and come up again on the same port.
   *
   * This is about the whole server: a universe that was created refuses it (400).
   */
  restart(options?: {
    /** What is still there afterwards: sessions and znodes, znodes alone, or nothing; by default everything */
    keep?: Keep;
  }): Promise<void>;

  /**
   * Stop listening and close every connection; the answer says where control is served meanwhile.
   *
   * Connecting is refused until `comeUp`. Returns HOST:PORT.
   *
   * This is about the whole server: a universe that was created refuses it (400).
   */
  goDown(): Promise<string>;

  /**
   * Listen again on the same port.
   *
   * This is about the whole server: a universe that was created refuses it (400).
   */
  comeUp(options?: {
    /** What is still there afterwards: sessions and znodes, znodes alone, or nothing; by default everything */
    keep?: Keep;
  }): Promise<void>;

  /**
   * Save the state to the data directory now.
   *
   * This is about the whole server: a universe that was created refuses it (400).
   */
  save(): Promise<void>;
}
