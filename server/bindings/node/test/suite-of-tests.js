'use strict';

// Tests that sweep-suite.test.js runs under `minikeeper sweep --suite`, with node:test and with Jest.

const assert = require('node:assert/strict');
const { once } = require('node:events');
const { promisify } = require('node:util');
const zookeeper = require('node-zookeeper-client');
const { Server, startServer, sweep, withServer } = require('minikeeper');

const isJest = process.env.JEST_WORKER_ID !== undefined;
const { afterEach, test } = isJest ? globalThis : require('node:test');
const { PERSISTENT, PERSISTENT_SEQUENTIAL } = zookeeper.CreateMode;

/** Creates a znode, with a new client after a failure. */
async function place(server, path, mode) {
  for (let attempt = 1; ; attempt += 1) {
    const client = zookeeper.createClient(server.connectString, { spinDelay: 10, retries: 0 });
    const connected = once(client, 'connected');
    client.connect();
    await connected;
    try {
      return await promisify(client.create.bind(client))(path, null, mode);
    } catch (error) {
      if (error.name === 'NODE_EXISTS') return path;
      if (!['CONNECTION_LOSS', 'SESSION_EXPIRED'].includes(error.name) || attempt === 5) throw error;
    } finally {
      client.close();
    }
  }
}

/** Places an order, with or without the bug. */
async function placeOrder(server, isSound = true) {
  await server.seed({ '/orders': '' });
  // Planted: after a lost reply, a second attempt places a second order.
  await (isSound ? place(server, '/orders/42', PERSISTENT) : place(server, '/orders/order-', PERSISTENT_SEQUENTIAL));
  assert.equal((await server.children('/orders')).length, 1);
}

test('sound', withServer((server) => placeOrder(server)));

test('twice', withServer((server) => placeOrder(server, false)));

if (isJest) {
  test.each([['one']])('sound row %s', withServer(async (server, name) => place(server, `/${name}`, PERSISTENT)));
} else {
  test('sound again', withServer(async (server) => {
    assert.ok(server instanceof Server);
    assert.deepEqual(await server.children('/'), ['zookeeper']);
    await (await server.start()).ensureReady();
    await place(server, '/other', PERSISTENT);
  }));

  test('sweeps with a server of the test', withServer(async (server) => {
    const allow = [{ fault: 'reply-lost', op: 'create', path: '/orders/*', raises: 'Assertion', reason: 'the orders are merged' }];
    await sweep(server, (universe) => placeOrder(universe, false), { allow });
  }));

  test('sweeps with a started server', async (t) => {
    const server = await startServer();
    t.after(() => server.stop());
    await sweep(server, (universe) => place(universe, '/mine', PERSISTENT));
  });

  test('own options', withServer({ tickTimeMs: 200 }, (server) => placeOrder(server, false)));

  test('own universes', withServer(async (server) => {
    await placeOrder(await server.createUniverse('mine'), false);
    assert.deepEqual(await server.universes(), ['mine']);
  }));

  test('own port', withServer(async (server) => assert.equal(server.connectString, `127.0.0.1:${server.port}`)));

  test('own started server', async (t) => {
    const server = await startServer();
    t.after(() => server.stop());
    await placeOrder(server, false);
  });

  test('own subtests', withServer(async (server, t) => {
    await t.test('part', () => placeOrder(server));
  }));

  test('skips', withServer(async (server, t) => t.skip('today')));

  let open = 0;
  const real = { answer: () => 1 };
  test('hooks', withServer(async (server, t) => {
    assert.equal(open, 0);
    open += 1;
    t.after(() => {
      open -= 1;
    });
    assert.equal(real.answer(), 1);
    t.mock.method(real, 'answer', () => 2);
    assert.equal(real.answer(), 2);
    await placeOrder(server);
  }));

  const left = [];
  afterEach(() => {
    for (const client of left.splice(0)) client.close();
  });
  test('leaves clients', withServer(async (server) => {
    // Those of the runs before connected again and again.
    assert.ok(process.getActiveResourcesInfo().filter((name) => name === 'TCPSocketWrap').length < 10);
    for (let created = 0; created < 10; ) {
      const client = zookeeper.createClient(server.connectString, { spinDelay: 10, retries: 0 });
      left.push(client);
      const connected = once(client, 'connected');
      client.connect();
      await connected;
      const isCreated = await promisify(client.create.bind(client))(`/${created}`).then(() => true, ({ name }) => name === 'NODE_EXISTS');
      if (isCreated) created += 1;
    }
  }));

  test('broken', withServer(async (server) => {
    await placeOrder(server);
    assert.equal(1, 2);
  }));

  test('limited', { timeout: 1_000 }, withServer(async (server) => {
    await placeOrder(server);
    await new Promise((resolve) => setTimeout(resolve, 400));
  }));
}
