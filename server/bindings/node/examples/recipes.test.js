'use strict';

// Five short tests. `docs/node.md` explains them.

// --8<-- [start:head]
const assert = require('node:assert/strict');
const { once } = require('node:events');
const { test } = require('node:test');
const { promisify } = require('node:util');
const zookeeper = require('node-zookeeper-client');
const { withServer } = require('minikeeper');

/** Connects a client, which closes after the test. */
async function connect(server, t) {
  const client = zookeeper.createClient(server.connectString);
  t.after(() => client.close());
  const connected = once(client, 'connected');
  client.connect();
  await connected;
  return client;
}

/** Calls a method of the client that takes a callback. */
const call = (client, method, ...values) => promisify(client[method].bind(client))(...values);
// --8<-- [end:head]

const { EPHEMERAL, EPHEMERAL_SEQUENTIAL } = zookeeper.CreateMode;
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

// --8<-- [start:expire]
test('leader is gone when its session expires', withServer(async (server, t) => {
  const [leader, other] = [await connect(server, t), await connect(server, t)];
  await call(leader, 'create', '/leader', null, EPHEMERAL);
  const events = [];
  await call(other, 'exists', '/leader', (event) => events.push(event.getName()));

  assert.equal(await server.expire(leader), 1); // its znode is gone, and the event is sent

  assert.equal(await call(other, 'exists', '/leader'), null);
  assert.deepEqual(events, ['NODE_DELETED']);
}));
// --8<-- [end:expire]

// --8<-- [start:lost-reply]
test('create has happened though its reply is lost', withServer(async (server, t) => {
  const client = await connect(server, t);

  await server.withFault({ action: 'lose-reply', op: 'create', path: '/job', count: 1 }, async () => {
    await assert.rejects(call(client, 'create', '/job', Buffer.from('mine')), { name: 'CONNECTION_LOSS' });
  });

  // The server has created it, though the client does not know.
  assert.equal((await server.get('/job')).data.toString(), 'mine');
}));
// --8<-- [end:lost-reply]

// --8<-- [start:outage]
test('client survives an outage', withServer(async (server, t) => {
  const client = await connect(server, t);
  const session = client.getSessionId();
  const states = [once(client, 'disconnected'), once(client, 'connected')];

  await server.goDown();
  await states[0];
  await server.comeUp();

  await states[1];
  assert.deepEqual(client.getSessionId(), session);
}));
// --8<-- [end:outage]

// --8<-- [start:time]
test('result lives for an hour, a hanging worker for its session timeout', withServer(async (server, t) => {
  await server.freeze(); // time passes only when the test says so
  await server.create('/results');
  await server.create('/results/42', 'done', { ttlMs: HOUR_MS });
  const [worker, hanging] = [await connect(server, t), await connect(server, t)];
  await call(worker, 'create', '/worker', null, EPHEMERAL);
  await call(hanging, 'create', '/hanging', null, EPHEMERAL);
  await server.silence(hanging); // its connection stays open, but the server ignores it

  await server.advance({ byMs: HOUR_MS - MINUTE_MS });
  assert.deepEqual(await server.children('/results'), ['42']);
  assert.deepEqual((await server.children('/')).sort(), ['results', 'worker', 'zookeeper']);

  await server.advance({ byMs: 2 * MINUTE_MS }); // the server looks for expired znodes once a minute
  assert.deepEqual(await server.children('/results'), []);
}));
// --8<-- [end:time]

// --8<-- [start:verify]
test('job writes only under its lock', withServer(async (server, t) => {
  await server.seed({ '/locks/job': '' });
  const client = await connect(server, t);

  const lock = await call(client, 'create', '/locks/job/lock-', null, EPHEMERAL_SEQUENTIAL);
  await call(client, 'create', '/result', Buffer.from('done'));
  await call(client, 'remove', lock, -1);

  await server.verify({ inOrder: ['create /locks/job/* -> OK', 'create /result -> OK', 'delete /locks/job/* -> OK'] });
  await server.verify({ path: '/result', op: 'setData', exactly: 0 });
}));
// --8<-- [end:verify]
