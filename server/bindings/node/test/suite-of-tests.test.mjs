// Tests of Vitest that sweep-suite.test.js runs under `minikeeper sweep --suite`.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { promisify } from 'node:util';
import { withServer } from 'minikeeper';
import zookeeper from 'node-zookeeper-client';
import { test } from 'vitest';

const { PERSISTENT, PERSISTENT_SEQUENTIAL } = zookeeper.CreateMode;

/** Places an order, with a new client after a lost connection, and closes its clients with hooks. */
async function placeOrder(server, { onTestFinished }, path, mode) {
  await server.seed({ '/orders': '' });
  for (let isPlaced = false; !isPlaced; ) {
    const client = zookeeper.createClient(server.connectString, { spinDelay: 10, retries: 0 });
    onTestFinished(() => client.close());
    const connected = once(client, 'connected');
    client.connect();
    await connected;
    isPlaced = await promisify(client.create.bind(client))(path, null, mode).catch((error) => error.name === 'NODE_EXISTS');
  }
  assert.equal((await server.children('/orders')).length, 1);
}

test('sound', withServer((server, t) => placeOrder(server, t, '/orders/42', PERSISTENT)));

// Planted: after a lost reply, a second attempt places a second order.
test('twice', withServer((server, t) => placeOrder(server, t, '/orders/order-', PERSISTENT_SEQUENTIAL)));

let open = 0;
test('hooks', withServer(async (server, t) => {
  assert.equal(open, 0);
  open += 1;
  t.onTestFinished(() => {
    open -= 1;
  });
  await placeOrder(server, t, '/orders/43', PERSISTENT);
}));

test('skips', withServer((server, t) => t.skip()));
