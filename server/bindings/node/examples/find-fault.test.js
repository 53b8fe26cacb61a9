'use strict';

// A test that runs once for every fault at every request. `docs/node.md` explains it.

// --8<-- [start:sweep]
const assert = require('node:assert/strict');
const { once } = require('node:events');
const { test } = require('node:test');
const { promisify } = require('node:util');
const zookeeper = require('node-zookeeper-client');
const { sweep, withServer } = require('minikeeper');

const TRANSIENT = ['CONNECTION_LOSS', 'SESSION_EXPIRED'];

/** Calls `use` with a client, and with a new one if the connection or the session is lost. */
async function withClient(universe, run, use) {
  for (let attempt = 1; ; attempt += 1) {
    const client = zookeeper.createClient(universe.connectString, { spinDelay: 10, retries: 0 });
    run.after(() => client.close());
    const connected = once(client, 'connected');
    client.connect();
    await connected;
    try {
      return await use(client);
    } catch (error) {
      if (!TRANSIENT.includes(error.name) || attempt === 5) throw error;
    }
  }
}

/** Places an order, whose number is its name: a second attempt does not place it twice. */
async function order(client, number) {
  const create = promisify(client.create.bind(client));
  try {
    await create(`/orders/${number}`, null, zookeeper.CreateMode.PERSISTENT);
  } catch (error) {
    if (error.name !== 'NODE_EXISTS') throw error;
  }
}

test('order is placed once, whatever goes wrong', withServer(async (server) => {
  const report = await sweep(server, async (universe, run) => {
    await universe.seed({ '/orders': '' });
    await withClient(universe, run, (client) => order(client, 42));
    assert.deepEqual(await universe.children('/orders'), ['42']);
  });
  console.log(report.summary);
}));
// --8<-- [end:sweep]
