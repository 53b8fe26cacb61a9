'use strict';

// Hours in milliseconds. `docs/testing/time-travel.md` explains it.

const assert = require('node:assert/strict');
const { once } = require('node:events');
const { after, before, beforeEach, test } = require('node:test');
const { promisify } = require('node:util');
const zookeeper = require('node-zookeeper-client');
const { Server } = require('minikeeper');

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

const server = new Server();
before(() => server.start());
beforeEach(async () => {
  await server.ensureReady(); // the previous test may have left it down
  await server.restart({ keep: 'nothing' });
  await server.freeze(); // no session expires while a debugger pauses the test
});
after(() => server.stop());

/** The code under test: registers an ephemeral while it is alive. */
async function startWorker(t) {
  await server.seed({ '/workers': '' });
  const worker = zookeeper.createClient(server.connectString);
  t.after(() => worker.close());
  const connected = once(worker, 'connected');
  worker.connect();
  await connected;
  await promisify(worker.create.bind(worker))('/workers/anna', null, zookeeper.CreateMode.EPHEMERAL);
  return worker;
}

test('result is kept for an hour', async () => {
  await server.seed({ '/results/42': { data: 'done', ttl_ms: HOUR_MS } });

  await server.advance({ byMs: HOUR_MS - MINUTE_MS });
  assert.deepEqual(await server.children('/results'), ['42']);
  await server.advance({ byMs: 2 * MINUTE_MS }); // the server checks once a minute

  assert.deepEqual(await server.children('/results'), []);
});

test('connected worker lives on', async (t) => {
  const worker = await startWorker(t);
  const session = worker.getSessionId();

  await server.advance({ byMs: HOUR_MS });

  assert.deepEqual(worker.getSessionId(), session);
  assert.deepEqual(await server.children('/workers'), ['anna']);
});

test('hanging worker expires', async (t) => {
  const worker = await startWorker(t);
  await server.silence(worker); // its connection stays open, but the server ignores everything it sends

  await server.advance({ byMs: MINUTE_MS });

  assert.deepEqual(await server.children('/workers'), []);
});
