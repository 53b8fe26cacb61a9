/// <reference types="node" />

import type { Verbs } from './verbs';

export * from './verbs';

/**
 * Which sessions are meant: an id ("0x...", a bigint, 8 bytes, or a client that has `getSessionId()`), or exactly one of
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

/** What a session asked last: as in the protocol ("getData"), and when, by the universe's clock. */
export interface LastOperation {
  name: string;
  atMs: number;
}

/** A znode of a tree: text, bytes, null, or an object with `data` or `data_base64`, `acl`, `container`, `ttl_ms`. */
export type Seed = string | Uint8Array | null | { data?: string | Uint8Array | null; [field: string]: unknown };

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
 * An injected fault. `remove` removes it, and so does the end of `withFault` or `await using`. A fault that has never acted
 * has tested nothing: its end rejects with MinikeeperError (409), unless it was injected with `optional: true`.
 */
export class Fault {
  readonly id: number;
  /** How often it has acted so far. */
  hits(): Promise<number>;
  /** Waits until it has acted `hits` times, by default 1. Resolves to how often it has. */
  untilHit(hits?: number, options?: { withinMs?: number }): Promise<number>;
  /** Removes it. Resolves to how often it has acted; rejects if it never has and is not optional. */
  remove(): Promise<number>;
}

/**
 * A tree with its own sessions, clock and faults, and every verb of a test. A `Server` is its own first one.
 *
 * The verbs are those of the control API, in camel case: see `Verbs`.
 */
export interface Universe extends Verbs {}
export class Universe {
  /** The universe of a server that was started with `--control`. */
  constructor(connectString: string, options?: { token?: string; name?: string });
  /** Its name; undefined for a server's own. */
  readonly name?: string;
  /** Where its server listens: HOST:PORT. */
  readonly address: string;
  readonly port: number;
  /** What a ZooKeeper client connects to: HOST:PORT, and the chroot of a universe that has one. */
  readonly connectString: string;

  /** Injects a fault, does something and removes the fault; rejects if it has never acted and is not optional. */
  withFault<T>(fault: Parameters<Verbs['inject']>[0], use: (fault: Fault) => Promise<T> | T): Promise<T>;
  /** Drops the universe of this name, or this one. */
  dropUniverse(name?: string): Promise<void>;
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
