/// <reference types="node" />

/**
 * Whose session is meant: its id ("0x...", a bigint, 8 bytes, or a client that has `getSessionId()`), or exactly one of
 * these names.
 */
export type Who =
  | string
  | bigint
  | Buffer
  | { getSessionId(): Buffer }
  | { session: string | bigint | Buffer }
  /** "127.0.0.1:4711", or all from "127.0.0.1". */
  | { address: string }
  /** "digest:alice" */
  | { identity: string }
  /** The path of an ephemeral it owns. */
  | { owner: string };

/** What a restart keeps: data and sessions, data alone, or nothing. */
export type Keep = 'everything' | 'data' | 'nothing';

/** Bound of a wait in milliseconds of real time, by default 10,000. */
export interface Within {
  withinMs?: number;
}

/** Whether it is fine that a verb meets no session; else that is an error (404). */
export interface AllowNone {
  allowNone?: boolean;
}

/** What a session asked last: as in the protocol ("getData"), and when, by the universe's clock. */
export interface LastOperation {
  name: string;
  atMs: number;
}

/** A znode of a tree: text, bytes, null, or an object with `data` or `data_base64`, `acl`, `container`, `ttl_ms`. */
export type Seed = string | Uint8Array | null | { data?: string | Uint8Array | null; [field: string]: unknown };

/** What a universe's clock shows. */
export interface Now {
  /** Since its start; decides about expiry. */
  elapsedMs: number;
  /** The time of day that stats show, since 1970. */
  wallMs: number;
  isFrozen: boolean;
}

/** A session as its server sees it. */
export interface Session {
  /** "0x..." */
  id: string;
  timeoutMs: number;
  timeoutLeftMs?: number;
  address?: string | null;
  isConnected: boolean;
  isSilenced?: boolean;
  /** Whether its client has not sent a path so far, which says to which universe it belongs. */
  isUnbound?: boolean;
  identities?: string[];
  ephemerals?: string[];
  watches?: { path: string; kind: string }[];
  lastOperation?: LastOperation | null;
}

/** A verb that did not do what was asked, or a program that did not run. Its message is a sentence for people. */
export class MinikeeperError extends Error {
  /**
   * That of the HTTP answer: 400 for input that makes no sense, 404 for something that is not there, 408 for a wait whose
   * time ran out, 409 for something that cannot be done now; undefined without an answer.
   */
  status?: number;
}

/**
 * A rule that is in force until it is removed, at the end of `withFault` or `await using` for instance. One that has never
 * acted has tested nothing: its end rejects with MinikeeperError (409), unless it was injected with `optional: true`.
 */
export class Fault {
  readonly id: number | string;
  /** How often it has acted so far. */
  hits(): Promise<number>;
  /** Waits until it has been met so often, 1 by default. */
  untilHit(hits?: number, options?: Within): Promise<void>;
  /** Takes it back; resolves to how often it has acted. Rejects if it never has and is not optional. */
  remove(): Promise<number>;
}

/**
 * A tree with its own sessions, clock and faults, and every verb of a test. A `Server` is its own first one.
 *
 * The verbs are those of the control API, in camel case. Each rejects with MinikeeperError if it cannot be done.
 */
export class Universe {
  /** That of a server that somebody else has started with `--control`. */
  constructor(connectString: string, options?: { token?: string; name?: string });
  /** Its name; undefined for a server's own. */
  readonly name?: string;
  /** Where its server listens: HOST:PORT. */
  readonly address: string;
  readonly port: number;
  /** What a ZooKeeper client connects to: HOST:PORT, and the chroot of a universe that has one. */
  readonly connectString: string;

  /** What the clock shows. */
  now(): Promise<Now>;
  /**
   * Moves the clock ahead, deadline by deadline. At the end all that was due has happened and been sent. Connected sessions
   * live on, however far it moves, as their clients would have sent pings on the way; `strict` ends them too.
   */
  advance(options: { byMs: number; strict?: boolean }): Promise<void>;
  /** Stops the clock: nothing expires, whoever sleeps or is stopped at a breakpoint. */
  freeze(): Promise<void>;
  /** Lets the clock go on from where it stands. */
  unfreeze(): Promise<void>;
  /** Moves the clock to its next deadline whenever no client has asked anything for so long; null switches that off. */
  autoAdvance(options: { idleMs: number | null }): Promise<void>;

  /**
   * Every session, connected or not. A client shows by its first request with a path which universe its session belongs to:
   * until then it is found by its id, or by its address with the port, from every universe of the server; and listed
   * (`isUnbound`) in one that is the only one beside the server's own.
   */
  sessions(): Promise<Session[]>;
  /**
   * Ends sessions as if their time were up. Resolves to how many when their ephemerals are gone and the events about it
   * have been sent. That it meets none is an error, here and below, unless `allowNone` says that this is fine.
   */
  expire(who: Who, options?: AllowNone): Promise<number>;
  /** Cuts the connections of sessions, which live on. Resolves to how many had one. */
  disconnect(who: Who, options?: AllowNone): Promise<number>;
  /** Cuts every connection of a client; all sessions live on. */
  disconnectAll(): Promise<void>;
  /** Stops serving sessions: they are not heard and get no answers, as in a long pause of a collector. */
  silence(who: Who, options?: AllowNone): Promise<number>;
  /** Serves silenced sessions again. */
  unsilence(who: Who, options?: AllowNone): Promise<number>;

  /** Adds a rule: the fields of a fault in the control API. */
  inject(fault: Record<string, unknown>): Promise<Fault>;
  /** Does something with a rule in force, and takes the rule back; rejects if it has never acted and is not optional. */
  withFault<T>(fault: Record<string, unknown>, use: (fault: Fault) => Promise<T> | T): Promise<T>;
  /** The rules in force, each with its id and its hits. */
  faults(): Promise<Record<string, unknown>[]>;
  /** Takes a rule back: see `Fault.remove`. */
  removeFault(fault: Fault | number | string): Promise<number>;
  /** Takes all rules back, whether they have acted or not. */
  resetFaults(): Promise<void>;
  /** Waits until a rule has been met so often, 1 by default. */
  untilHit(fault: Fault | number | string, hits?: number, options?: Within): Promise<void>;

  /** A znode; its data is null if it has none. */
  get(path: string): Promise<{ data: Buffer | null; stat: Record<string, unknown> }>;
  /** The names of a znode's children. */
  children(path: string): Promise<string[]>;
  /** Znodes, sessions and watches as text, to be read and compared: equal trees give equal text. */
  dump(): Promise<string>;
  /** The tree in the form `seed` takes: an object by path for "json", the default, or a text for "yaml". */
  exportTree(options?: { format?: 'json' | 'yaml' }): Promise<any>;
  /** Puts znodes there: `{'/app/config': 'on', '/raw': Buffer.of(255)}`, a tree as `exportTree` gives it, or a text in YAML. */
  seed(tree: Record<string, Seed> | string): Promise<void>;
  /** Marks the state of now, sessions and watches included. */
  snapshot(): Promise<number | string>;
  /** Goes back to a mark, which stays. */
  restore(snapshot: number | string): Promise<void>;
  /** Forgets a mark. */
  dropSnapshot(snapshot: number | string): Promise<void>;
  /** Saves to the data directory now. About the whole server: it rejects on a universe that was created. */
  save(): Promise<void>;
  /** Writes a data directory that an Apache ZooKeeper 3.8 or 3.9 starts from. */
  exportData(dir: string): Promise<Record<string, unknown>>;
  /** Loads the data directory of an Apache ZooKeeper 3.4 to 3.9, instead of what is here. */
  importData(dir: string): Promise<Record<string, unknown>>;

  /**
   * About the whole server, as `comeUp` and `restart` are: they reject on a universe that was created.
   * Cuts every connection of a client and refuses new ones until `comeUp`. The verbs of this object work meanwhile; others
   * reach the server at the HOST:PORT this resolves to: `new Universe(await server.goDown()).comeUp()`.
   */
  goDown(): Promise<string>;
  /** Serves again; keeps everything by default. */
  comeUp(options?: { keep?: Keep }): Promise<void>;
  /** Goes down and comes up, on the same port; keeps everything by default. */
  restart(options?: { keep?: Keep }): Promise<void>;

  /** Creates an isolated universe behind the same port. */
  createUniverse(name: string): Promise<Universe>;
  /** Creates a universe that begins as a copy of this one. */
  fork(name: string): Promise<Universe>;
  /** The universes created and not dropped yet, as the control API tells them. */
  universes(): Promise<unknown[]>;
  /** Ends a universe with all its connections: the one of that name, or this one. */
  dropUniverse(name?: string): Promise<void>;

  /** Waits until somebody watches a path. */
  untilWatched(path: string, options?: Within): Promise<void>;
  /** Waits until a znode has so many children. */
  untilChildren(path: string, count: number, options?: Within): Promise<void>;
  /** Waits until so many contenders stand in the queue of a lock, its holder included. */
  untilContenders(lock: string, count: number, options?: Within): Promise<void>;
  /** Waits until there are exactly so many sessions, connected or not: those that `sessions` lists. */
  untilSessions(count: number, options?: Within): Promise<void>;
  /** Waits until no client has asked anything but pings for `quietMs`, 50 by default. */
  untilIdle(options?: { quietMs?: number } & Within): Promise<void>;
}

export interface ServerOptions {
  /** The port to listen on; 0, the default, takes a free one. */
  port?: number;
  /** A folder to keep everything in, from one run to the next; by default nothing is kept. */
  dataDir?: string;
  /** Unit of session expiry, by default 3,000. */
  tickTimeMs?: number;
  /** Shortest session granted, by default 2 ticks. */
  minSessionTimeoutMs?: number;
  /** Longest session granted, by default 20 ticks. */
  maxSessionTimeoutMs?: number;
  /** More options of the program, as on its command line. */
  options?: string[];
  /** The program; by default MINIKEEPER_BIN, else the one in this package. */
  program?: string;
}

/**
 * The program `minikeeper` as a child of this process, on a free loopback port. It is up after a few milliseconds, and ends
 * with this process, also when that is killed.
 */
export class Server extends Universe {
  constructor(options?: ServerOptions);
  /** The last it has written: with the options `--log debug` every request. */
  readonly log: string;
  /** Starts it, unless it runs; after `stop` on the port it had. */
  start(): Promise<this>;
  /**
   * Undoes what a test may have left on the server itself, so that clients can connect: for a `beforeEach`. Starts the
   * program if it does not run or answer, brings the server up if it is down, takes back the faults of its own universe,
   * and lets its clock run. Znodes, sessions and universes stay.
   */
  ensureReady(): Promise<this>;
  /** Stops it, as SIGTERM does; it saves before if it has a `dataDir`. Nothing happens if it does not run. */
  stop(): Promise<void>;
  /** Ends it as a crash does: what it keeps is its last save. */
  kill(): Promise<void>;
}

/** A server that runs. */
export function startServer(options?: ServerOptions): Promise<Server>;
