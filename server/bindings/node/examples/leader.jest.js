// With Jest, which needs no import for `afterEach`, `expect` and `test`. `docs/node.md` explains it.

const { once } = require('node:events');
const { promisify } = require('node:util');
const zookeeper = require('node-zookeeper-client');
const { withServer } = require('minikeeper');

// --8<-- [start:jest]
const clients = [];
afterEach(() => {
  for (const client of clients.splice(0)) client.close();
});

async function connect(server) {
  const client = zookeeper.createClient(server.connectString);
  clients.push(client);
  const connected = once(client, 'connected');
  client.connect();
  await connected;
  return client;
}

test('leader is gone when its session expires', withServer(async (server) => {
  const leader = await connect(server);
  await promisify(leader.create.bind(leader))('/leader', null, zookeeper.CreateMode.EPHEMERAL);

  await server.expire(leader);

  expect(await server.children('/')).not.toContain('leader');
}));
// --8<-- [end:jest]
