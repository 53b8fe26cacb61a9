'use strict';

// Tests that fail on purpose, which story.test.js runs in other processes: with node:test and with Jest.

const assert = require('node:assert/strict');
const { once } = require('node:events');
const { promisify } = require('node:util');
const zookeeper = require('node-zookeeper-client');
const { startServer, sweep, tellIfFailed, withServer } = require('minikeeper');

const isJest = process.env.JEST_WORKER_ID !== undefined;
const { afterEach, test } = isJest ? globalThis : require('node:test');

/** Long enough to start a server, on a machine with load. */
const LIMIT_MS = 3_000;

const clients = [];
afterEach(() => {
  for (const client of clients.splice(0)) client.close();
});

async function connect(server) {
  const client = zookeeper.createClient(server.connectString, { sessionTimeout: 10_000, retries: 0 });
  clients.push(client);
  const connected = once(client, 'connected');
  client.connect();
  await connected;
  return (name, ...values) => promisify(client[name].bind(client))(...values);
}

/** Creates the znode of a contender, with the name that Curator gives it. */
async function queue(call, digit) {
  const name = `_c_0e6a1a3a-6c1e-4b0d-9f0a-2f6a3b1c9d1${digit}-lock-`;
  return call('create', `/locks/printer/${name}`, null, zookeeper.CreateMode.EPHEMERAL_SEQUENTIAL);
}

/** Two clients queue for a lock, a read is refused, and an assertion fails. */
test('printer', withServer(async (server) => {
  await server.seed({ '/printer/paper': 'A4', '/locks/printer': '' });
  const [first, second] = [await connect(server), await connect(server)];
  const held = await queue(first, 1);
  await queue(second, 2);
  await second('exists', held, () => {});
  await server.inject({ action: 'error', error: 'NOAUTH', op: 'getData', path: '/printer/*' });
  await assert.rejects(first('getData', '/printer/paper'), { name: 'NO_AUTH' });
  assert.equal(undefined, 'A4');
}));

test('passes', withServer(async (server) => server.advance({ byMs: 1_000 })));

/** Two faults that no request matches, one of them in a universe of its own, and one that need not act. */
test('injects in vain', withServer(async (server) => {
  await server.inject({ action: 'lose-reply', op: 'create', path: '/jbo' });
  const other = await server.createUniverse('other');
  await other.inject({ action: 'cut', path: '/orders' });
  await other.inject({ action: 'cut', optional: true });
}));

test('is gone', withServer({ stories: 'off' }, async (server) => {
  await server.kill();
  assert.equal(1, 2);
}));

/** A lost reply makes it place two orders. */
test('sweeps', withServer(async (server) => {
  await sweep(server, async (universe) => {
    await universe.seed({ '/orders': '' });
    const call = await connect(universe);
    const place = () => call('create', '/orders/order-', null, zookeeper.CreateMode.PERSISTENT_SEQUENTIAL);
    await place().catch(async () => once(clients.at(-1), 'connected').then(place));
    assert.deepEqual(await universe.children('/orders'), ['order-0000000000']);
  }, { faults: ['reply-lost'] });
}));

/** Planted: without the order, it asks again and again, with clients that no one closes. */
test('hangs in a sweep', withServer(async (server) => {
  await sweep(server, async (universe, run) => {
    await universe.seed({ '/orders': '' });
    const client = zookeeper.createClient(universe.connectString, { retries: 0 });
    const connected = once(client, 'connected');
    client.connect();
    await connected;
    // Starts again, in spite of what becomes of a request.
    const timer = setInterval(() => client.exists('/orders/42', () => {}), 10);
    await promisify(client.create.bind(client))('/orders/42').catch(() => {});
    const found = await promisify(client.exists.bind(client))('/orders/42').catch(() => null);
    if (found === null) await new Promise(() => {});
    clearInterval(timer);
    client.close();
  }, { faults: ['request-lost'], only: 'request-lost:1:create:1:/orders/42', runTimeMs: 500 });
}));

const never = withServer(async (server) => {
  await server.seed({ '/printer/paper': 'A4' });
  await new Promise(() => {});
});

if (isJest) {
  test('never ends', never, LIMIT_MS);

  test.each([['a', 'A4'], ['b', 'A5']])('row %s', withServer(async (server, path, size) => {
    await server.seed({ [`/${path}`]: size });
    assert.equal((await server.get(`/${path}`)).data.toString(), 'A4');
  }));
} else {
  test('never ends', { timeout: LIMIT_MS }, never);

  test('skips', withServer(async (server, t) => t.skip('today')));

  let server;
  afterEach(async (t) => {
    if (server === undefined) return;
    await tellIfFailed(t, server);
    await server.stop();
    server = undefined;
  });

  test('by a hook', async () => {
    server = await startServer();
    throw new Error('on purpose');
  });

  test('passes with a hook', async () => {
    server = await startServer();
  });
}
