'use strict';

// What a job has sent to the server. `docs/journal.md` explains it.

const { once } = require('node:events');
const test = require('node:test');
const { promisify } = require('node:util');
const zookeeper = require('node-zookeeper-client');
const { withServer } = require('minikeeper');

test('job stores its result under its lock', withServer(async (server) => {
  await server.seed({ '/locks/job': '', '/results': '' });
  const client = zookeeper.createClient(server.connectString);
  const connected = once(client, 'connected');
  client.connect();
  await connected;

  await runJob(client);

  await server.verify({ path: '/locks/job/*', op: 'create', result: 'OK', exactly: 1 });
  await server.verify({ path: '/results/*', op: 'setData', exactly: 0 }); // results are never overwritten
  await server.verify({
    inOrder: ['create /locks/job/* -> OK', 'create /results/* -> OK', 'delete /locks/job/* -> OK'],
  });
  client.close();
}));

/** The code under test. */
async function runJob(client) {
  const create = promisify(client.create.bind(client));
  const lock = await create('/locks/job/lock-', null, zookeeper.CreateMode.EPHEMERAL_SEQUENTIAL);
  await create('/results/42', Buffer.from('done'), zookeeper.CreateMode.PERSISTENT);
  await promisify(client.remove.bind(client))(lock, -1);
}
