/// <reference types="node" />

import type { FaultHit, TreeZnode } from './answers';
import type { ErrorName, FaultAction, FaultOp, Verbs } from './verbs';

export * from './answers';
export * from './verbs';

/**
 * Selects sessions: an id ("0x...", a bigint, 8 bytes, or a client with `getSessionId()`), or an object with exactly
 * one of these properties.
 */
export type Who =
  | string
  | bigint
  | Buffer
  | { getSessionId(): Buffer }
  | { session: string | bigint | Buffer }
  /** "127.0.0.1:4711", or "127.0.0.1" for every port. */
  | { address: string }
  /** "digest:alice" */
  | { identity: string }
  /** The path of an ephemeral; selects its owner. */
  | { owner: string };

/** A znode to create with `seed`: as `exportTree` returns it, and its data may be bytes. */
export type Seed =
  | TreeZnode
  | Uint8Array
  | {
      data?: string | Uint8Array | null | undefined;
      /** SCHEME:ID:PERMISSIONS, as in world:anyone:cdrwa */
      acl?: readonly string[] | undefined;
      container?: boolean | undefined;
      ttl_ms?: number | undefined;
    };

/** What a fault does, and what it applies to: each action has the options that the server accepts. */
export type FaultOptions =
  | RequestFault
  | DelayFault
  | PauseFault
  | OutageFault
  | ClientOutageFault
  | ErrorFault
  | HoldEventsFault
  | DelayEventsFault
  | RefuseFault;

interface FaultLimits {
  /** Only clients of this address: "127.0.0.1:4711", or "127.0.0.1" for every port. Not with `session` or `client`. */
  address?: string | undefined;
  /** How many matches to skip first */
  skip?: number | undefined;
  /** How many times it acts, at least 1; without a limit if absent */
  count?: number | undefined;
  /** The probability that it acts on a match, from 0 to 1; 1 if absent */
  probability?: number | undefined;
  /** The seed of the random numbers for `probability`, 0 if absent: the same one repeats them */
  seed?: number | undefined;
  /** Whether it may be removed without having acted */
  optional?: boolean | undefined;
}

interface PathLimits extends FaultLimits {
  /** Only these paths: `*` matches within a name, `**` across names */
  path?: string | undefined;
  /** Only this session: "0x..." */
  session?: string | undefined;
  /**
   * Only the client with this number, from 1, in the order of the first requests since there has been any fault. Not
   * with `session`.
   */
  client?: number | undefined;
}

interface RequestLimits extends PathLimits {
  /** Only these operations: one, or several separated by commas, such as "create,setData" */
  op?: FaultOp | `${FaultOp},${string}` | undefined;
}

/** Operations of a session, which a handshake has only afterwards. */
type SessionOp = Exclude<FaultOp, 'connect' | 'createSession'> | `${FaultOp},${string}`;

/**
 * A fault of requests that needs nothing else, such as `lose-reply`. `crash` carries the request out, and then serves nothing
 * for the sessions that exist, as if their processes had been killed. `rollback` carries it out, and then takes the last change
 * back, as a server that comes back with an older disk.
 */
export interface RequestFault extends RequestLimits {
  action: Exclude<
    FaultAction,
    | 'delay'
    | 'delay-reply'
    | 'pause'
    | 'outage'
    | 'client-outage'
    | 'error'
    | 'hold-events'
    | 'delay-events'
    | 'refuse'
  >;
}

/** Serves requests later, or serves them at once and replies later, by the universe's clock. */
export interface DelayFault extends RequestLimits {
  action: 'delay' | 'delay-reply';
  /** How much later, at least 1 */
  delayMs: number;
}

/**
 * Carries the request out and expires its session, whose client stands still meanwhile: it gets the reply later, and the connection
 * closes after the same time again.
 */
export interface PauseFault extends RequestLimits {
  action: 'pause';
  /** How much later, at least 1 */
  delayMs: number;
  op?: SessionOp | undefined;
}

/** Serves nothing from this request on: closes all connections, and new ones at their handshake. Sessions go on. */
export interface OutageFault extends RequestLimits {
  action: 'outage';
  /** How long, by the universe's clock, at least 1; until the fault is removed if absent */
  delayMs?: number | undefined;
}

/** Serves nothing of the request's session from this request on. */
export interface ClientOutageFault extends RequestLimits {
  action: 'client-outage';
  /** How long, by the universe's clock, at least 1; until the fault is removed if absent */
  delayMs?: number | undefined;
  op?: SessionOp | undefined;
}

/** Replies with an error instead of carrying requests out. Handshakes, the operation `connect`, have no such reply. */
export interface ErrorFault extends RequestLimits {
  action: 'error';
  error: ErrorName;
  op?: SessionOp | undefined;
}

/** Holds watch events back until it is removed: those of `path`, to the watchers of `session`, `client` or `address`. */
export interface HoldEventsFault extends PathLimits {
  action: 'hold-events';
}

/**
 * Holds each watch event of `path`, to the watchers of `session`, `client` or `address`, until the watcher's next request
 * is answered and another one arrives, but no longer than `delayMs`.
 */
export interface DelayEventsFault extends PathLimits {
  action: 'delay-events';
  /** The longest delay by the universe's clock, at least 1 */
  delayMs: number;
}

/** Resets connections as they are accepted. Only for the server's own universe. */
export interface RefuseFault extends FaultLimits {
  action: 'refuse';
}

/** A verb failed, or the program could not run. The message is an explanation for humans. */
export class MinikeeperError extends Error {
  /**
   * The HTTP status: 400 for invalid input, 401 and 403 for a caller without access, 404 for a missing object, 408 if a
   * wait timed out, 409 if the server's state does not allow the call; undefined without an answer.
   */
  readonly status: number | undefined;
  constructor(message: string, options?: { cause?: unknown; status?: number | undefined });
}

/**
 * An injected fault. `remove` removes it, and so does the end of `withFault` or `await using`. A fault that has never
 * acted has tested nothing: then its removal rejects with MinikeeperError (409), unless it was injected with `optional:
 * true`.
 */
export class Fault {
  private constructor();
  readonly id: number;
  /** Resolves to how often it has acted so far. */
  hits(): Promise<number>;
  /** Resolves to what it has acted on last, null if it has not acted. Rejects (404) once it is removed. */
  lastHit(): Promise<FaultHit | null>;
  /** Waits until it has acted `hits` times, by default 1. Resolves to how often it has. */
  untilHit(hits?: number, options?: { withinMs?: number | undefined }): Promise<number>;
  /** Removes it. Resolves to how often it has acted; rejects if it never has and is not optional. */
  remove(): Promise<number>;
  /** Removes it, unless that has been done. */
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * A tree with its own sessions, clock and faults, and every verb. A `Server` is also its own first universe.
 *
 * The verbs are those of the control API in camel case: see `Verbs`.
 */
export interface Universe extends Verbs {}
export class Universe {
  /** The universe of a running server with `--control`. */
  constructor(connectString: string, options?: { token?: string | undefined; name?: string | undefined });
  /** Its name; undefined for a server's own. */
  readonly name: string | undefined;
  /** The address of its server, HOST:PORT; the first one's of an ensemble. */
  readonly address: string;
  readonly port: number;
  /** The connect string for ZooKeeper clients: HOST:PORT, and the chroot of a created universe. */
  readonly connectString: string;

  /**
   * Enters a resource that a lock protects, calls `use`, and leaves it. `resourceVerdict(name)` says whether two were inside at a
   * time; a run of a sweep in which a resource is not safe fails. `write` resolves to whether the resource accepts that: it does
   * unless it has seen a higher token.
   */
  withResource<T>(
    name: string,
    options: { token?: number | undefined; holder?: string | undefined },
    use: (entry: { write(): Promise<boolean> }) => Promise<T> | T,
  ): Promise<T>;
  /** Injects a fault, calls `use` and removes the fault; rejects if it has never acted and is not optional. */
  withFault<T>(fault: FaultOptions, use: (fault: Fault) => Promise<T> | T): Promise<T>;
  /** Drops the universe of this name, or this one. */
  dropUniverse(name?: string): Promise<void>;
}

export interface ServerOptions {
  /** The port to listen on; 0, the default, takes a free one. */
  port?: number | undefined;
  /** A folder that keeps the state between runs; by default nothing is kept. */
  dataDir?: string | undefined;
  /** The unit of session timeouts, by default 3,000. */
  tickTimeMs?: number | undefined;
  /** The shortest session timeout granted, by default 2 ticks. */
  minSessionTimeoutMs?: number | undefined;
  /** The longest session timeout granted, by default 20 ticks. */
  maxSessionTimeoutMs?: number | undefined;
  /** How many servers of one ensemble it plays, by default 1; `setServer` takes them down, so that clients fail over. */
  servers?: number | undefined;
  /** More options of the program, as on its command line. */
  options?: readonly string[] | undefined;
  /** The program; by default MINIKEEPER_BIN, else the one in this package. */
  program?: string | undefined;
}

/**
 * The program `minikeeper` as a child of this process, on a free loopback port. It starts within a few milliseconds and
 * exits with this process, even if that is killed.
 */
export class Server extends Universe {
  /** A server that `start` will start: until then it has no address, and its verbs fail. */
  constructor(options?: ServerOptions);
  /** The end of its output; with the options `--log debug`, every request. */
  readonly log: string;
  /** Starts it unless it is running; after `stop`, on the same port. */
  start(): Promise<this>;
  /**
   * Undoes changes of a test to the whole server, so that clients can connect: for a `beforeEach`. Starts the program
   * if it is not running or does not answer, brings the server up if it is down, removes the faults of its own
   * universe, and unfreezes its clock. Znodes, sessions and universes remain.
   */
  ensureReady(): Promise<this>;
  /** Stops it, like SIGTERM. It saves first if it has a `dataDir`. Does nothing if it is not running. */
  stop(): Promise<void>;
  /** Kills it, as in a crash: it keeps its last save. */
  kill(): Promise<void>;
  /** Stops it. */
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * Starts a server; under `minikeeper sweep`, uses that of the run, and restores its state at the end. An unknown option is
 * a TypeError that names the nearest.
 */
export function startServer(options?: ServerOptions): Promise<Server>;

export interface StoryOptions {
  /**
   * The folder for stories; `off` saves none. By default, that of the environment variable MINIKEEPER_STORIES, else
   * `minikeeper-stories` in the working directory.
   */
  stories?: string | undefined;
}

/**
 * Returns a test function for node:test, Jest and Vitest, as in `test(name, withServer(async (server) => {...}))`: it
 * starts a server, calls `use` with it and with what the runner passes, and stops it. If `use` fails or the test reaches
 * its time limit, it prints the story of the server to stderr and saves it as a page and as JSON. It also fails if `use` has
 * ended and a fault of the server, or of one of its universes, has never acted and is not `optional`.
 *
 * Under `minikeeper sweep --suite`, the test sweeps itself: it is called for each run with a universe of the server of the suite,
 * unless it has options of a server or does what a universe cannot. See docs/sweep-node.md.
 */
export function withServer<Context extends unknown[]>(
  use: (server: Server, ...context: Context) => Promise<void> | void,
): (...context: Context) => Promise<void>;
export function withServer<Context extends unknown[]>(
  options: ServerOptions & StoryOptions,
  use: (server: Server, ...context: Context) => Promise<void> | void,
): (...context: Context) => Promise<void>;

/**
 * Prints the story of a universe to stderr, and saves it, if the test has failed: for an `afterEach` of node:test or
 * Vitest, which pass the context of the test. Does nothing before Node 20.12, whose contexts do not say whether a test
 * passed.
 */
export function tellIfFailed(t: object, universe: Universe, options?: StoryOptions): Promise<void>;

/** What goes wrong in a run of a sweep. */
export type SweepFault =
  | 'reply-lost'
  | 'request-lost'
  | 'connection-cut'
  | 'session-expired'
  | 'reply-late'
  | 'server-restarted'
  | 'event-late'
  | 'request-late'
  | 'client-paused'
  | 'outage'
  | 'client-outage'
  | 'client-crash'
  | 'rollback';

/** Points of a sweep, and what is said of them. */
export interface SweepPlace {
  /** What goes wrong */
  fault: SweepFault;
  /** The number of the client, by default any */
  client?: number | undefined;
  /** The operation, as points name it, by default any */
  op?: string | undefined;
  /** The path: `*` matches within a name, `**` across names; by default any */
  path?: string | undefined;
  /** Why, in a line that the report shows */
  reason: string;
}

/** A failure that a test expects at some points. */
export interface AllowedFailure extends SweepPlace {
  /** A part of the name or message of the error, a class that the error is an instance of, or a pattern for NAME: MESSAGE */
  raises: string | RegExp | (abstract new (...given: never[]) => Error);
}

export interface SweepOptions extends StoryOptions {
  /** The faults to try; by default all but `outage`, `client-outage`, `client-crash` and `rollback`, which `'all'` includes */
  faults?: readonly SweepFault[] | 'all' | undefined;
  /** How long an outage lasts, by the universe's clock; 0 if it does not end; by default 1,000 */
  outageMs?: number | undefined;
  /** How many changes a rollback takes back, by default 1 */
  rollback?: number | undefined;
  /** Failures that the test expects; a run that fails so counts as allowed */
  allow?: readonly AllowedFailure[] | undefined;
  /** Points that are not to be tried */
  leaveOut?: readonly SweepPlace[] | undefined;
  /** Whether to stop at the first failure, once it is confirmed; by default false */
  first?: boolean | undefined;
  /** Whether a run also fails if it leaves other znodes, clients or watches than the runs without faults; by default false */
  compare?: boolean | undefined;
  /** The time after which no run begins; without a limit if absent */
  timeMs?: number | undefined;
  /** The maximum number of runs; without a limit if absent */
  runs?: number | undefined;
  /** How many faults a run has, by default 1; with 2, pairs are tried until a budget ends; with `orders`, 2 also tries a fault */
  depth?: 1 | 2 | undefined;
  /** The order in which points are tried, by default 0 */
  seed?: number | undefined;
  /** Whether to try equivalent points, too */
  all?: boolean | undefined;
  /** The points of the only run, as a report names them; the environment variable MINIKEEPER_SWEEP_ONLY replaces it. */
  only?: string | undefined;
  /** How long a run may take, by default 60,000; one that takes longer has hung. */
  runTimeMs?: number | undefined;
  /**
   * How many runs are done at a time, each in its universe, from 1, the default, to 256; runs that overlap share the variables of
   * the module. Not with `orders`.
   */
  jobs?: number | undefined;
  /** How many points may stay unreached in a sweep that is clean nevertheless, by default 0 */
  allowUnreached?: number | undefined;
  /** How many points `timeMs` or `runs` may leave untried in a sweep that is clean nevertheless, by default 0 */
  allowUntried?: number | undefined;
  /** Whether to try the orders in which requests can be served, instead of faults */
  orders?: boolean | undefined;
  /**
   * With `orders`: up to how many unforced changes (of client, late events, with `depth` 2 a fault) all orders are tried, by
   * default 2
   */
  changes?: number | 'all' | undefined;
  /** With `orders`: how many further orders are tried then, random ones among them; by default 1,000, or until a budget ends */
  more?: number | undefined;
  /**
   * With `orders`: whether the clients that begin a run, up to 4, do the same, so that orders which differ only in which of them
   * is which are equivalent
   */
  alike?: boolean | undefined;
  /** With `orders`: the number of clients with which a run begins: their requests are served as soon as each has one */
  clients?: number | undefined;
  /** The name of the test; by default its file, and its name where that is known. A second sweep with a name is numbered. */
  title?: string | undefined;
  /** Whether a sweep that is not clean rejects, by default true */
  throws?: boolean | undefined;
}

/** A run of a test, as `sweep` passes it. */
export interface SweepRun {
  /** From 1 */
  readonly number: number;
  /**
   * 1, or 2 if the test is called again in the same universe, because the fault `client-crash` has killed its clients: then its
   * outcome is that of the run, and the first call does not count.
   */
  readonly start: 1 | 2;
  /** What goes wrong, the first of two faults; undefined for a run without faults or with an order */
  readonly fault: SweepFault | undefined;
  /** The fault and its place, as `only` takes them; empty for a run without faults */
  readonly points: string;
  /** What goes wrong, in a sentence */
  readonly sentence: string;
  /** Calls `cleanup` after the run, even if it hangs. Cleanups run last first, without faults, and have `runTimeMs` together. */
  after(cleanup: () => unknown): void;
  /** Notes a goal that some run of the sweep must reach, and whether this one does. The end of the run waits for it. */
  sometimes(goal: string, holds?: boolean): Promise<void>;
}

/** What a sweep has found. */
export interface SweepReport {
  /** Whether every point was tried and the test passed: `state` is `'clean'` */
  isClean: boolean;
  /** `'incomplete'` if no run failed, but not every point was tried */
  state: 'clean' | 'failed' | 'incomplete';
  /** Why it is incomplete, each a phrase; else empty */
  reasons: string[];
  /** What differs between the runs without faults, other than names, and the likely cause; else empty */
  nondeterminism: string;
  /** What was tried, in a line that begins with the state */
  summary: string;
  text: string;
  /** The report as a page */
  html: string;
  /** The file with that page; absent if the sweep is clean or `stories` is off */
  page?: string;
  /** How many runs there were, those without faults and those that confirm failures included */
  runs: number;
  /** How many points there are to try */
  points: number;
  tried: number;
  passed: number;
  /** How many points failed as `allow` says */
  allowed: number;
  failed: number;
  hung: number;
  notReached: number;
  /** How many points the budget left untried */
  left: number;
  /** How many points of each kind were tried, such as `operation create: 3 of 12` */
  coverage: string[];
  /** The points that were not reached */
  unreached: string[];
  /** The points of the runs that failed */
  failures: string[];
}

/** A sweep has found something, or has not tried every point. The message is the text of its report. */
export class SweepError extends Error {
  constructor(report: SweepReport);
  readonly report: SweepReport;
}

/**
 * Runs a test once for every fault at every place where it can happen, each time with a new universe of the server, and
 * reports the runs that fail or hang. Rejects with SweepError if there are any, if the test fails without faults, and if not
 * every point was tried. Prints the summary of a sweep that does not reject to stdout. Saves the stories of those runs and the
 * report where stories go.
 *
 * The environment variable MINIKEEPER_SWEEP_ONLY does only the run of one point, as the report says for each failure. Under
 * `minikeeper sweep --suite`, the options are those of the suite, with `allow` and `leaveOut` of these, and it does not reject
 * if not every point was tried, which the report of the suite tells.
 */
export function sweep(
  server: Universe,
  test: (universe: Universe, run: SweepRun) => unknown,
  options?: SweepOptions,
): Promise<SweepReport>;
export function sweep(
  server: Universe,
  options: SweepOptions,
  test: (universe: Universe, run: SweepRun) => unknown,
): Promise<SweepReport>;
