'use strict';

// Tests that fail on purpose, which story.test.js runs in another process.

const assert = require('node:assert/strict');
const { once } = require('node:events');
const { afterEach, test } = require('node:test');
const { promisify } = require('node:util');
const zookeeper = require('node-zookeeper-client');
const { startServer, tellIfFailed, withServer } = require('minikeeper');

async function connect(server, t) {
  const client = zookeeper.createClient(server.connectString, { sessionTimeout: 10_000, retries: 0 });
  t.after(() => client.close());
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
test('printer', withServer(async (server, t) => {
  await server.seed({ '/printer/paper': 'A4', '/locks/printer': '' });
  const [first, second] = [await connect(server, t), await connect(server, t)];
  const held = await queue(first, 1);
  await queue(second, 2);
  await second('exists', held, () => {});
  await server.inject({ action: 'error', error: 'NOAUTH', op: 'getData', path: '/printer/*' });
  await assert.rejects(first('getData', '/printer/paper'), { name: 'NO_AUTH' });
  assert.equal(undefined, 'A4');
}));

test('passes', withServer(async (server) => server.advance({ byMs: 1_000 })));

test('skips', withServer(async (server, t) => t.skip('today')));

test('is gone', withServer({ stories: 'off' }, async (server) => {
  await server.kill();
  assert.equal(1, 2);
}));

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
