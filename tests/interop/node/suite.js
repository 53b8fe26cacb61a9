'use strict';

// node-zookeeper-client against the server at HOST:PORT, the only argument.

const { randomUUID } = require('node:crypto');
const { promisify } = require('node:util');
const zookeeper = require('node-zookeeper-client');

const { CreateMode, Exception } = zookeeper;
const WAIT_MS = 30_000;
// More than the maximum of any server in these tests.
const SESSION_TIMEOUT_MS = 10_000;
const address = process.argv[2];

class CheckFailed extends Error {}

function requireThat(holds, text) {
  if (!holds) throw new CheckFailed(text);
}

/** Returns a path that no other check and no earlier run against the same server has used. */
function freshPath() {
  return `/interop/node/${randomUUID()}`;
}

/** Waits with a time limit. All waits use it, and a failure names what did not happen. */
function bounded(what, promise) {
  let timer;
  const bound = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new CheckFailed(`waited ${WAIT_MS} ms for ${what}`)), WAIT_MS);
  });
  return Promise.race([promise, bound]).finally(() => clearTimeout(timer));
}

/** The client with its calls as promises, each bounded. */
class Session {
  constructor(client) {
    this.client = client;
    for (const call of ['create', 'exists', 'getData', 'setData', 'getChildren', 'remove', 'mkdirp', 'getACL']) {
      this[call] = (...args) => bounded(call, promisify(client[call].bind(client))(...args));
    }
  }

  static async open() {
    const client = zookeeper.createClient(address, { sessionTimeout: SESSION_TIMEOUT_MS, spinDelay: 100, retries: 0 });
    const connected = new Promise((resolve) => client.once('connected', resolve));
    client.connect();
    await bounded('a connection', connected);
    return new Session(client);
  }

  async close() {
    const closed = new Promise((resolve) => this.client.once('disconnected', resolve));
    this.client.close();
    await bounded('the connection to close', closed);
  }

  /** Returns the error and the results of a transaction; the client reports both. */
  commit(build) {
    const transaction = build(this.client.transaction());
    const answer = new Promise((resolve) => transaction.commit((error, results) => resolve({ error, results })));
    return bounded('a transaction', answer);
  }
}

/** Runs `body` with `count` sessions, and closes those that are still open. */
async function withSessions(count, body) {
  const sessions = [];
  try {
    for (let i = 0; i < count; i += 1) sessions.push(await Session.open());
    return await body(...sessions);
  } finally {
    for (const session of sessions) {
      if (session.client.getState() === zookeeper.State.SYNC_CONNECTED) await session.close();
    }
  }
}

async function refused(code, promise) {
  const error = await promise.then(
    () => undefined,
    (e) => e,
  );
  requireThat(error !== undefined, `no error, expected code ${code}`);
  requireThat(error.getCode?.() === code, `${error}, expected code ${code}`);
}

/** A watcher that records events, and a promise of the first one. */
function watcher() {
  const events = [];
  let first;
  const fired = new Promise((resolve) => {
    first = resolve;
  });
  return {
    events,
    fired,
    callback: (event) => {
      events.push(`${event.getName()} ${event.getPath()}`);
      first();
    },
  };
}

const checks = {
  connection: () =>
    withSessions(1, async (one) => {
      const granted = one.client.getSessionTimeout();
      return `requested a session of ${SESSION_TIMEOUT_MS} ms, granted ${granted} ms`;
    }),

  'create, get, set, delete': () =>
    withSessions(1, async (one) => {
      const path = freshPath();
      await one.mkdirp('/interop/node');
      requireThat((await one.create(path, Buffer.from('first'))) === path, 'create returned another path');
      await refused(Exception.NODE_EXISTS, one.create(path));
      requireThat((await one.getData(path)).toString() === 'first', 'another value');
      const stat = await one.setData(path, Buffer.from('second'), 0);
      requireThat(stat.version === 1 && stat.dataLength === 6, `stat ${JSON.stringify(stat)}`);
      await refused(Exception.BAD_VERSION, one.setData(path, Buffer.from('third'), 0));
      await one.create(`${path}/child`);
      await refused(Exception.NOT_EMPTY, one.remove(path));
      requireThat((await one.getChildren(path)).join() === 'child', 'another child list');
      requireThat((await one.getACL(path))[0].permission === 31, 'not open to the world');
      await one.remove(`${path}/child`);
      await one.remove(path, 1);
      requireThat((await one.exists(path)) === null, 'exists after remove');
      await refused(Exception.NO_NODE, one.getData(path));
      await refused(Exception.NO_NODE, one.create(`${path}/orphan`));
      return 'values, versions and the errors of each';
    }),

  'create sequential': () =>
    withSessions(1, async (one) => {
      const path = freshPath();
      await one.mkdirp(path);
      const names = [];
      for (let i = 0; i < 3; i += 1) names.push(await one.create(`${path}/n-`, CreateMode.PERSISTENT_SEQUENTIAL));
      names.push(await one.create(`${path}/n-`, CreateMode.EPHEMERAL_SEQUENTIAL));
      const wanted = [0, 1, 2, 3].map((i) => `${path}/n-${String(i).padStart(10, '0')}`);
      requireThat(names.join() === wanted.join(), `names ${names}`);
      return '4 names in order';
    }),

  ephemeral: () =>
    withSessions(2, async (owner, other) => {
      const path = freshPath();
      await other.mkdirp('/interop/node');
      await owner.create(path, CreateMode.EPHEMERAL);
      const gone = watcher();
      const stat = await other.exists(path, gone.callback);
      const ownerId = owner.client.getSessionId();
      requireThat(stat.ephemeralOwner.equals(ownerId), `owner ${stat.ephemeralOwner.toString('hex')}`);
      await refused(Exception.NO_CHILDREN_FOR_EPHEMERALS, owner.create(`${path}/child`));
      await owner.close();
      await bounded('the deletion event of a closed session\'s ephemeral', gone.fired);
      requireThat(gone.events.join() === `NODE_DELETED ${path}`, `events ${gone.events}`);
      requireThat((await other.exists(path)) === null, 'still exists');
      return 'owner is the session, gone when it closes, no children below it';
    }),

  watch: () =>
    withSessions(2, async (one, other) => {
      const path = freshPath();
      await one.mkdirp('/interop/node');
      const creation = watcher();
      requireThat((await one.exists(path, creation.callback)) === null, 'exists before creation');
      await other.create(path, Buffer.from('0'));
      await bounded('the creation event', creation.fired);

      const data = watcher();
      const children = watcher();
      await one.getData(path, data.callback);
      await one.getChildren(path, children.callback);
      await other.setData(path, Buffer.from('1'));
      await other.create(`${path}/a`);
      await bounded('the data event', data.fired);
      await bounded('the child event', children.fired);
      // The watches are used up, so the second change of each kind must cause no event. Events come before the replies
      // that show the change, so none can arrive after these reads.
      await other.setData(path, Buffer.from('2'));
      await other.create(`${path}/b`);
      requireThat((await one.getData(path)).toString() === '2', 'an old value');
      requireThat((await one.getChildren(path)).length === 2, 'an old child list');

      const seen = [creation, data, children].map((kind) => kind.events.join(' and '));
      const wanted = ['NODE_CREATED', 'NODE_DATA_CHANGED', 'NODE_CHILDREN_CHANGED'].map((name) => `${name} ${path}`);
      requireThat(seen.join() === wanted.join(), `events ${seen}`);
      return 'creation, data and child watches fire once each';
    }),

  'watch after reconnect': () =>
    withSessions(2, async (one, other) => {
      const path = freshPath();
      await one.mkdirp(path);
      const data = watcher();
      await one.getData(path, data.callback);
      const session = one.client.getSessionId().toString('hex');
      const lost = new Promise((resolve) => one.client.once('disconnected', resolve));
      const back = new Promise((resolve) => one.client.once('connected', resolve));
      one.client.connectionManager.socket.destroy();
      await bounded('the loss of the connection', lost);
      await other.setData(path, Buffer.from('missed'));
      await bounded('the reconnect', back);
      await bounded('the event of a change made while disconnected', data.fired);
      requireThat(data.events.join() === `NODE_DATA_CHANGED ${path}`, `events ${data.events}`);
      requireThat(one.client.getSessionId().toString('hex') === session, 'another session');
      return 'same session, its watch is sent again and fires for the change missed meanwhile';
    }),

  transaction: () =>
    withSessions(1, async (one) => {
      const path = freshPath();
      await one.mkdirp(path);
      const { error, results } = await one.commit((t) =>
        t
          .check(path, 0)
          .create(`${path}/a`, Buffer.from('a'))
          .setData(path, Buffer.from('1'), 0)
          .create(`${path}/s-`, CreateMode.EPHEMERAL_SEQUENTIAL)
          .remove(`${path}/a`, 0),
      );
      requireThat(!error, `${error}`);
      requireThat(results.length === 5, `${results.length} results`);
      requireThat(results[1].path === `${path}/a`, `created ${results[1].path}`);
      requireThat(results[2].stat.version === 1, `version ${results[2].stat.version}`);
      requireThat(results[3].path === `${path}/s-0000000001`, `created ${results[3].path}`);
      requireThat((await one.getChildren(path)).join() === 's-0000000001', 'another child list');
      return '5 operations together, results in order';
    }),

  'failed transaction': () =>
    withSessions(1, async (one) => {
      const path = freshPath();
      await one.mkdirp(path);
      const { error, results } = await one.commit((t) =>
        t
          .create(`${path}/never`)
          .setData(path, Buffer.from('never'), 77)
          .create(`${path}/after`),
      );
      requireThat(error, 'a wrong version went through');
      const codes = results.map((result) => result.err).join();
      requireThat(codes === '0,-103,-2', `codes ${codes}`);
      requireThat(error.getCode() === Exception.BAD_VERSION, `${error}`);
      requireThat((await one.getChildren(path)).length === 0, 'a node was left');
      requireThat((await one.exists(path)).version === 0, 'a value was changed');
      return 'a bad version rolls back the create before it';
    }),
};

async function main() {
  let passed = 0;
  let failed = 0;
  for (const [name, check] of Object.entries(checks)) {
    try {
      console.log(`ok node ${name}: ${await check()}`);
      passed += 1;
    } catch (error) {
      console.log(`FAIL node ${name}: ${error instanceof CheckFailed ? error.message : error.stack}`);
      failed += 1;
      // Every other check would fail after the same wait.
      if (check === checks.connection) break;
    }
  }
  console.log(`node: ${passed} passed, ${failed} failed`);
  // A failed check may leave a client that tries to connect forever.
  process.exit(failed === 0 ? 0 : 1);
}

main();
