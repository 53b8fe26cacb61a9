/// <reference types="node" />

import type { Verbs } from './verbs';

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

/** The last request of a session: its name in the protocol ("getData"), and its time by the universe's clock. */
export interface LastOperation {
  name: string;
  atMs: number;
}

/** A znode of a tree: text, bytes, null, or an object with `data` or `data_base64`, `acl`, `container`, `ttl_ms`. */
export type Seed = string | Uint8Array | null | { data?: string | Uint8Array | null; [field: string]: unknown };

/** A session as the server sees it. */
export interface Session {
  /** "0x..." */
  id: string;
  timeoutMs: number;
  timeoutLeftMs?: number;
  address?: string | null;
  isConnected: boolean;
  isSilenced?: boolean;
  /** Whether its universe is unknown, because its client has not sent a request with a path yet. */
  isUnbound?: boolean;
  identities?: string[];
  ephemerals?: string[];
  watches?: { path: string; kind: string }[];
  lastOperation?: LastOperation | null;
}

/** A verb failed, or the program could not run. The message is an explanation for humans. */
export class MinikeeperError extends Error {
  /**
   * The HTTP status: 400 for invalid input, 401 and 403 for a caller without access, 404 for a missing object, 408 if a
   * wait timed out, 409 if the server's state does not allow the call; undefined without an answer.
   */
  status?: number;
}

/**
 * An injected fault. `remove` removes it, and so does the end of `withFault` or `await using`. A fault that has never
 * acted has tested nothing: then its removal rejects with MinikeeperError (409), unless it was injected with `optional:
 * true`.
 */
export class Fault {
  readonly id: number;
  /** Resolves to how often it has acted so far. */
  hits(): Promise<number>;
  /** Waits until it has acted `hits` times, by default 1. Resolves to how often it has. */
  untilHit(hits?: number, options?: { withinMs?: number }): Promise<number>;
  /** Removes it. Resolves to how often it has acted; rejects if it never has and is not optional. */
  remove(): Promise<number>;
}

/**
 * A tree with its own sessions, clock and faults, and every verb. A `Server` is also its own first universe.
 *
 * The verbs are those of the control API in camel case: see `Verbs`.
 */
export interface Universe extends Verbs {}
export class Universe {
  /** The universe of a running server with `--control`. */
  constructor(connectString: string, options?: { token?: string; name?: string });
  /** Its name; undefined for a server's own. */
  readonly name?: string;
  /** The address of its server: HOST:PORT. */
  readonly address: string;
  readonly port: number;
  /** The connect string for ZooKeeper clients: HOST:PORT, and the chroot of a created universe. */
  readonly connectString: string;

  /** Injects a fault, calls `use` and removes the fault; rejects if it has never acted and is not optional. */
  withFault<T>(fault: Parameters<Verbs['inject']>[0], use: (fault: Fault) => Promise<T> | T): Promise<T>;
  /** Drops the universe of this name, or this one. */
  dropUniverse(name?: string): Promise<void>;
}

export interface ServerOptions {
  /** The port to listen on; 0, the default, takes a free one. */
  port?: number;
  /** A folder that keeps the state between runs; by default nothing is kept. */
  dataDir?: string;
  /** The unit of session timeouts, by default 3,000. */
  tickTimeMs?: number;
  /** The shortest session timeout granted, by default 2 ticks. */
  minSessionTimeoutMs?: number;
  /** The longest session timeout granted, by default 20 ticks. */
  maxSessionTimeoutMs?: number;
  /** More options of the program, as on its command line. */
  options?: string[];
  /** The program; by default MINIKEEPER_BIN, else the one in this package. */
  program?: string;
}

/**
 * The program `minikeeper` as a child of this process, on a free loopback port. It starts within a few milliseconds and
 * exits with this process, even if that is killed.
 */
export class Server extends Universe {
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
}

/** Starts a server. */
export function startServer(options?: ServerOptions): Promise<Server>;

export interface StoryOptions {
  /**
   * The folder for stories; `off` saves none. By default, that of the environment variable MINIKEEPER_STORIES, else
   * `minikeeper-stories` in the working directory.
   */
  stories?: string;
}

/**
 * Returns a test function, for example for `test(name, withServer(async (server) => {...}))`: it starts a server, calls
 * `use` and stops the server. If `use` fails, it prints the story of the server to stderr and saves it as a page and as
 * JSON.
 */
export function withServer<T>(use: (server: Server, t: T) => Promise<void> | void): (t: T) => Promise<void>;
export function withServer<T>(
  options: ServerOptions & StoryOptions,
  use: (server: Server, t: T) => Promise<void> | void,
): (t: T) => Promise<void>;

/**
 * Prints the story of a universe to stderr, and saves it, if the test has failed: for an `afterEach`, which node:test
 * calls with the context of the test. Does nothing before Node 20.12, whose contexts do not say whether a test passed.
 */
export function tellIfFailed(t: object, universe: Universe, options?: StoryOptions): Promise<void>;
