'use strict';

// Tests that sweep-command.test.js runs under `minikeeper sweep`.

const assert = require('node:assert/strict');
const { once } = require('node:events');
const { test } = require('node:test');
const { promisify } = require('node:util');
const zookeeper = require('node-zookeeper-client');
const { startServer, sweep, withServer } = require('minikeeper');

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
      if (error.name !== 'CONNECTION_LOSS' || attempt === 5) throw error;
    } finally {
      client.close();
    }
  }
}

for (const [name, path, mode] of [
  ['sound', '/orders/42', zookeeper.CreateMode.PERSISTENT],
  // Planted: after a lost reply, a second attempt places a second order.
  ['twice', '/orders/order-', zookeeper.CreateMode.PERSISTENT_SEQUENTIAL],
]) {
  test(name, withServer(async (server) => {
    await server.seed({ '/orders': '' });
    await place(server, path, mode);
    assert.equal((await server.children('/orders')).length, 1);
  }));
}

test('sound again', withServer(async (server) => {
  assert.deepEqual(await server.children('/'), ['zookeeper']);
  await server.inject({ action: 'error', error: 'NONODE', path: '/never', optional: true });
  await place(server, '/other', zookeeper.CreateMode.PERSISTENT);
}));

test('options', withServer({ tickTimeMs: 200 }, () => {}));

test('two servers', async () => {
  await startServer();
  await startServer();
});

test('sweeps by itself', withServer((server) => sweep(server, () => {})));
