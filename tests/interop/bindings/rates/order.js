// The example of docs/sweep-node.md, swept several times in one process: V8 compiles it in the first seconds.

const assert = require('node:assert/strict');
const { once } = require('node:events');
const { promisify } = require('node:util');
const zookeeper = require('node-zookeeper-client');
const { Server, sweep } = require('minikeeper');

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

(async () => {
  const server = await new Server().start();
  for (let count = Number(process.argv[2]); count > 0; count -= 1) {
    await sweep(server, async (universe, run) => {
      await universe.seed({ '/orders': '' });
      await withClient(universe, run, (client) => order(client, 42));
      assert.deepEqual(await universe.children('/orders'), ['42']);
    });
  }
  await server.stop();
})();
