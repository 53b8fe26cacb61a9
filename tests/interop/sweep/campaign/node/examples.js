'use strict';

// What the README and the examples of node-zookeeper-client do: `examples.js SCENARIO`.
//
// The client has retries of its own. Errors that they cannot repair are expected; what is checked is that each call calls back,
// and what the calls promise.

const { setTimeout: sleep } = require('node:timers/promises');
const zookeeper = require('node-zookeeper-client');

// How long a program waits for what must happen. A call that is repeated waits 1 s for that.
const PATIENCE_MS = 4_000;

/** Returns a connected client, and whether its session has expired. */
async function connect(retries = 1) {
  const client = zookeeper.createClient(process.env.MINIKEEPER_CONNECT, { sessionTimeout: 30_000, spinDelay: 20, retries });
  const lost = { hasExpired: false };
  client.once('expired', () => { lost.hasExpired = true; });
  const connected = new Promise((resolve) => { client.once('connected', resolve); });
  client.connect();
  await within(connected, 'connected does not come');
  return [client, lost];
}

/** Returns what a call calls back with: an error or its results. */
function call(target, name, ...values) {
  const answer = new Promise((resolve) => {
    target[name](...values, (error, ...results) => resolve([error, ...results]));
  });
  return within(answer, `${name} does not call back`);
}

/** Repeats a call until it is answered, or its session has expired. */
async function persist(session, name, ...values) {
  const [client, lost] = session;
  for (;;) {
    const answer = await call(client, name, ...values);
    if (answer[0]?.name !== 'CONNECTION_LOSS' || lost.hasExpired) return answer;
    await sleep(20);
  }
}

async function within(promise, what) {
  const timer = setTimeout(() => fail(what), PATIENCE_MS);
  const value = await promise;
  clearTimeout(timer);
  return value;
}

async function until(condition, what) {
  const deadline = Date.now() + PATIENCE_MS;
  while (!condition()) {
    if (Date.now() > deadline) await fail(what);
    await sleep(10);
  }
}

function fail(what) {
  process.stdout.write(`broken: ${what}\n`, () => process.exit(1));
  return new Promise(() => {});
}

/** The second example of the README, which lists again on each event, and as `examples/list.js` on each connect. */
async function list() {
  const watcher = await connect();
  const writer = await connect();
  await persist(writer, 'create', '/parent');

  const [client, lost] = watcher;
  let listed = [];
  const listChildren = () => {
    client.getChildren('/parent', listChildren, (error, children) => {
      if (!error) listed = children;
    });
  };
  client.on('connected', listChildren);
  listChildren();
  for (const name of ['a', 'b', 'c']) {
    await persist(writer, 'create', `/parent/${name}`);
    const [error] = await persist(writer, 'exists', `/parent/${name}`);
    if (error) return;
    // The children are created one after the other, so that each is an event of its own.
    await until(() => lost.hasExpired || listed.includes(name), `${name} is there, and the list has ${listed}`);
  }
}

/** `examples/mkdirp.js` and `removeRecursive.js`. */
async function mkdirp() {
  const session = await connect();
  const [client, lost] = session;
  const [error, path] = await call(client, 'mkdirp', '/path/to/znode', Buffer.from('data'));
  if (!error && path !== '/path/to/znode') await fail(`mkdirp calls back with ${path}`);
  const [unread, data] = await persist(session, 'getData', '/path/to/znode');
  if (lost.hasExpired) return;
  if (!error && (unread || data.toString() !== 'data')) await fail(`mkdirp has succeeded, and the znode has ${unread ?? data}`);

  const [unremoved] = await call(client, 'removeRecursive', '/path');
  const [unseen, stat] = await persist(session, 'exists', '/path');
  if (lost.hasExpired) return;
  if (!unremoved && (unseen || stat)) await fail('removeRecursive has succeeded, and the znode is there');
}

/** `examples/transaction.js`, with data that stays. */
async function transaction() {
  const session = await connect();
  const [client, lost] = session;
  await persist(session, 'create', '/txn');
  if (lost.hasExpired) return;
  const changes = client.transaction().create('/txn/1', Buffer.from('first')).setData('/txn/1', Buffer.from('second'), -1).check('/txn/1').setData('/txn', Buffer.from('done'), -1);
  const [error, results] = await call(changes, 'commit');
  const [, data] = await persist(session, 'getData', '/txn');
  const [, stat] = await persist(session, 'exists', '/txn/1');
  if (lost.hasExpired) return;
  const isDone = data?.toString() === 'done';
  if (isDone !== Boolean(stat)) await fail('a part of the transaction is done');
  if (!error && (!isDone || results.length !== 4)) await fail('commit has succeeded, and the transaction is not done');
  if (error && error.name !== 'CONNECTION_LOSS') await fail(`commit fails with ${error.name}`);
  // The documents say that the option `retries` is for exceptions of a lost connection.
  if (error) await fail(`commit is not repeated: ${error.name}`);
}

/** A request that is repeated until it is answered, or the session has expired. */
async function repeat() {
  const [client, lost] = await connect(0);
  for (const path of ['/first', '/second']) {
    for (;;) {
      const [error] = await call(client, 'create', path);
      if (lost.hasExpired) return;
      if (error?.name !== 'CONNECTION_LOSS') break;
    }
  }
}

/** The same, from the callback of the request. */
async function callback() {
  const [client, lost] = await connect(0);
  let calls = 0;
  const create = (path, done) => {
    calls += 1;
    if (calls > 10_000) fail(`${path} is repeated ${calls} times in one turn of the event loop`);
    if (calls > 10_001) return;
    client.create(path, (error) => {
      if (error?.name === 'CONNECTION_LOSS' && !lost.hasExpired) create(path, done);
      else done();
    });
  };
  for (const path of ['/first', '/second']) {
    const created = new Promise((resolve) => { create(path, resolve); });
    await within(created, 'create does not call back');
    if (lost.hasExpired) return;
    calls = 0;
  }
}

const scenarios = { list, mkdirp, transaction, repeat, callback };
scenarios[process.argv[2]]().then(() => process.exit(0));
