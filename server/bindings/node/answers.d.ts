// Parts of what verbs return, with the names that they have in the control API; a session's are in camel case.

import type { ErrorName, FaultAction, Kind } from './verbs';

/** A session as the server sees it. */
export interface Session {
  /** "0x..." */
  id: string;
  timeoutMs: number;
  /** The time until it expires, by the universe's clock */
  timeoutLeftMs: number;
  /** HOST:PORT, null while it is not connected */
  address: string | null;
  isConnected: boolean;
  isSilenced: boolean;
  identities: string[];
  ephemerals: string[];
  watches: Watch[];
  lastOperation: LastOperation | null;
  /** Whether its universe is unknown, because its client has not sent a request with a path yet */
  isUnbound: boolean;
}

/** A watch of a session. */
export interface Watch {
  path: string;
  kind: 'data' | 'children' | 'persistent' | 'persistent_recursive';
}

/** The last request of a session: its name in the protocol ("getData"), and its time by the universe's clock. */
export interface LastOperation {
  name: string;
  atMs: number;
}

/** The metadata of a znode. Zxids and sessions are "0x...", and times are milliseconds since 1970. */
export interface Stat {
  czxid: string;
  mzxid: string;
  pzxid: string;
  ctime_ms: number;
  mtime_ms: number;
  version: number;
  cversion: number;
  aversion: number;
  /** "0x0" if it is not ephemeral */
  ephemeral_owner: string;
  data_length: number;
  num_children: number;
}

/** A znode, as in `exportTree`: its data, or an object if there is more to say. */
export type TreeZnode =
  | string
  | null
  | {
      data?: string | null;
      /** In place of `data`, for bytes that are not UTF-8 */
      data_base64?: string;
      /** SCHEME:ID:PERMISSIONS, as in world:anyone:cdrwa */
      acl?: string[];
      container?: boolean;
      ttl_ms?: number;
    };

/** Znodes by path. */
export type Tree = Record<string, TreeZnode>;

/** A znode in the result of `tree`. */
export interface ListedZnode {
  path: string;
  /** null if it has no data */
  data_length: number | null;
  /** "0x...", null if it is not ephemeral */
  ephemeral_owner: string | null;
  container: boolean;
  /** Its time to live, null without one */
  ttl_ms: number | null;
}

/** A znode in the result of `listChildren`. */
export interface ListedChild {
  name: string;
  num_children: number;
  /** null if it has no data */
  data_length: number | null;
  /** "0x...", null if it is not ephemeral */
  ephemeral_owner: string | null;
  container: boolean;
  /** Its time to live, null without one */
  ttl_ms: number | null;
}

/** A snapshot in the result of `snapshots`. */
export interface TakenSnapshot {
  snapshot: number;
  /** When it was taken, in milliseconds since 1970 */
  taken_ms: number;
  /** Whether it can still be restored */
  is_there: boolean;
}

/** A difference in the result of `changesSince`. */
export interface ZnodeChange {
  path: string;
  change: 'created' | 'deleted' | 'changed';
  /** The znode then, null if it did not exist or its data is null */
  before: TreeZnode;
  /** The znode now */
  after: TreeZnode;
}

/** A fault in the result of `faults`. */
export interface InjectedFault {
  /** Its number: the `id` of `Fault` */
  fault: number;
  action: FaultAction;
  /** The operations, separated by commas; empty for all */
  op: string;
  path: string | null;
  session?: string;
  /** The number of the client */
  client?: number;
  address?: string;
  skip: number;
  /** null without a limit */
  count: number | null;
  probability: number;
  seed: number;
  optional: boolean;
  /** For the actions `delay`, `delay-reply` and `delay-events` */
  delay_ms?: number;
  /** For the action `error` */
  error?: ErrorName;
  /** How many requests or events matched */
  matches: number;
  /** How often it has acted */
  hits: number;
  /** How many events it holds */
  held: number;
  /** null if it has not acted */
  last_hit: FaultHit | null;
}

/** What a fault has acted on. */
export interface FaultHit {
  /** null for a connection that is refused, and for a handshake that opened no session */
  session: string | null;
  /** The operation, `createSession` for a handshake; the kind of an event, such as `NodeDeleted` */
  op: string;
  /** The path, the first if there are several; null without one */
  path: string | null;
  /** The number that its client gave the request; null for handshakes, connections and events */
  xid: number | null;
}

/** An entry of the journal. It has the fields that apply to its kind. */
export interface JournalEntry {
  number: number;
  kind: Exclude<Kind, 'session' | 'connection'>;
  /** The time by the universe's clock, since the start */
  at_ms: number;
  /** The time of day, in milliseconds since 1970 */
  wall_ms: number;
  /** The entry in a line */
  text: string;
  connection?: number;
  session?: string;
  address?: string;
  /** The operation of a request, or the one that a fault acted on */
  op?: string;
  path?: string;
  zxid?: string;
  /** A request: the number that its client gave it */
  xid?: number;
  /** A create: the path with the number that was appended */
  created?: string;
  /** A request: the version that it demands, -1 for any */
  version?: number;
  /** A create: "EPHEMERAL" */
  mode?: string;
  /** A request: whether it sets a watch */
  watch?: true;
  data_bytes?: number;
  timeout_ms?: number;
  /** A multi: its first 32 operations */
  operations?: MultiOperation[];
  operation_count?: number;
  /** A request: "OK", the name of an error, or "NONE" without a reply */
  result?: 'OK' | 'NONE' | ErrorName;
  /** A request: how long the turn took that served it, in microseconds */
  duration_us?: number;
  event?: 'NodeCreated' | 'NodeDeleted' | 'NodeDataChanged' | 'NodeChildrenChanged';
  /** A znode that the server deleted without a request for it */
  why?: 'session_expired' | 'session_closed' | 'empty_container' | 'time_to_live';
  /** An event or a deletion: the number of the entry that caused it */
  cause?: number;
  /** An event: whether a fault holds it */
  is_held?: true;
  /** The number of the fault that acted */
  fault?: number;
  action?: FaultAction;
  /** Why a connection was closed */
  reason?: string;
  /** What was done to the clock, or the verb with its arguments */
  what?: string;
  /** How many entries were omitted */
  count?: number;
}

/** An operation of a multi. */
export interface MultiOperation {
  op: string;
  path: string;
  version: number | null;
  mode: string | null;
  data_bytes: number | null;
}

/** A lock, semaphore or election in the result of `locks`. */
export interface Lock {
  path: string;
  kind: 'mutex' | 'read_write' | 'semaphore' | 'leader_latch' | 'leader_election';
  /** The library whose names the znodes have, null if they have those of several */
  family: 'curator' | 'go-zookeeper' | 'kazoo' | 'zookeeper' | null;
  /** A semaphore: its leases, null if it does not say */
  max_leases: number | null;
  holders: Contender[];
  /** In the order of the queue */
  waiters: Contender[];
  /** How many hold it or wait, listed or not */
  contenders_total: number;
  warnings: LockWarning[];
  /** What happened to it, as far as the journal goes back */
  history?: LockHistory;
}

/** What is wrong with a lock. */
export interface LockWarning {
  code: 'herd' | 'waiter-without-watch' | 'silent-session' | 'no-connection' | 'orphan';
  path: string;
  text: string;
}

/** A znode in the queue of a lock. */
export interface Contender {
  path: string;
  is_reader: boolean;
  /** null if no session owns it */
  session: string | null;
  address: string | null;
  is_connected: boolean;
  is_silenced: boolean;
  /** When it was created, in milliseconds since 1970 */
  since_ms: number;
  age_ms: number;
  /** Its data, at most 256 bytes */
  data?: string | null;
  /** In place of `data`, for bytes that are not UTF-8 */
  data_base64?: string;
  data_length: number;
  /** The paths that it waits for */
  waits_for: string[];
  is_watching: boolean;
}

/** What the journal knows of a lock. */
export interface LockHistory {
  acquisitions: number;
  sessions: LockShare[];
  sessions_total: number;
  /** Jain's index: 1 if all sessions acquired it equally often */
  fairness: number | null;
  hand_overs: number;
  hand_over_ms: Spread | null;
  wait_ms: Spread | null;
  /** How many contenders left without having held it */
  gave_up: number;
}

/** How often a session acquired a lock. */
export interface LockShare {
  session: string;
  acquisitions: number;
}

export interface Spread {
  min: number;
  median: number;
  max: number;
}

/** Sessions that wait for each other over several locks. */
export interface Deadlock {
  code: 'deadlock';
  text: string;
  cycle: DeadlockStep[];
  sessions: string[];
}

/** A session of a deadlock, and what it waits for. */
export interface DeadlockStep {
  session: string;
  address: string | null;
  lock: string;
  contender: string;
  waits_for: string;
  is_held: boolean;
}

/** A known mistake of clients in the result of `advise`. */
export interface Finding {
  /** The rule, such as "polling" */
  rule: string;
  /** What the mistake is */
  title: string;
  /** The path concerned, with * for ids and numbers in it; empty if it is about sessions */
  path: string;
  /** What happened: of several occurrences the worst */
  text: string;
  /** How often it happened */
  count: number;
  /** The numbers of the entries of the journal that show it, at most 8 */
  entries: number[];
  /** Why it matters */
  why: string;
  /** What to do instead */
  do: string;
}

/** A server of the ensemble. */
export interface EnsembleServer {
  /** Its number, from 1 */
  id: number;
  address: string;
  mode: 'up' | 'down' | 'cut-off' | 'read-only';
  is_leader: boolean;
  /** The sessions of the universe that are connected to it */
  sessions: string[];
}
