'use strict';

// What hours do, in milliseconds. `docs/testing/time-travel.md` explains it.

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
  await server.ensureReady(); // whatever the last test did to it
  await server.restart({ keep: 'nothing' });
  await server.freeze(); // a debugger may stop here for as long as it likes
});
after(() => server.stop());

/** What is tested: it is there as long as it lives. */
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
  await server.advance({ byMs: 2 * MINUTE_MS }); // the server looks once a minute

  assert.deepEqual(await server.children('/results'), []);
});

test('connected worker lives on', async (t) => {
  const worker = await startWorker(t);
  const session = worker.getSessionId();

  await server.advance({ byMs: HOUR_MS });

  assert.deepEqual(worker.getSessionId(), session);
  assert.deepEqual(await server.children('/workers'), ['anna']);
});

test('worker that hangs is gone', async (t) => {
  const worker = await startWorker(t);
  await server.silence(worker); // its connection stands, and nothing is heard of it any more

  await server.advance({ byMs: MINUTE_MS });

  assert.deepEqual(await server.children('/workers'), []);
});
