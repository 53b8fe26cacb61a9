'use strict';

// Programs whose clients depend on the order of their requests, with node-zookeeper-client: `orders.js PROGRAM [--sound]`.

const { once } = require('node:events');
const { promisify } = require('node:util');
const zookeeper = require('node-zookeeper-client');

const IS_SOUND = process.argv.includes('--sound');

async function connect() {
  const client = zookeeper.createClient(process.env.MINIKEEPER_CONNECT, { sessionTimeout: 5_000 });
  const connected = once(client, 'connected');
  client.connect();
  await connected;
  const call = (name, ...values) => promisify(client[name].bind(client))(...values);
  return { call, client };
}

/** Runs each body with a client of its own. */
async function together(...bodies) {
  const clients = await Promise.all(bodies.map(connect));
  await Promise.all(bodies.map((body, place) => body(clients[place].call)));
  return clients;
}

function close(...clients) {
  for (const { client } of clients) client.close();
}

const programs = {
  /** Creates a znode after a look whether it is there. */
  async checkCreate() {
    const body = async (call) => {
      if (await call('exists', '/a')) return;
      try {
        await call('create', '/a');
      } catch (error) {
        if (!IS_SOUND || error.name !== 'NODE_EXISTS') throw error;
      }
    };
    close(...await together(body, body));
  },

  /** Each takes an item from a queue: it is done when it is read, or else when it is removed. */
  async takeTwice() {
    const first = await connect();
    await first.call('create', '/queue');
    await first.call('create', '/queue/item');
    close(first);
    let done = 0;
    const body = async (call) => {
      const [item] = await call('getChildren', '/queue');
      if (!item) return;
      if (!IS_SOUND) done += 1;
      try {
        await call('remove', `/queue/${item}`, -1);
        if (IS_SOUND) done += 1;
      } catch (error) {
        if (error.name !== 'NO_NODE') throw error;
      }
    };
    close(...await together(body, body));
    if (done !== 1) throw new Error('an item is done twice');
  },

  /** The lock of ZooKeeper's documentation, with three contenders. */
  async lock() {
    const first = await connect();
    await first.call('create', '/lock');
    close(first);
    const inside = new Set();
    const body = async (call) => {
      const path = await call('create', '/lock/n-', null, zookeeper.CreateMode.EPHEMERAL_SEQUENTIAL);
      const name = path.slice('/lock/'.length);
      for (;;) {
        const before = (await call('getChildren', '/lock')).filter((other) => other < name).sort();
        if (before.length === 0) break;
        let wake;
        const changed = new Promise((resolve) => { wake = resolve; });
        if (await call('exists', `/lock/${before.at(-1)}`, wake)) await changed;
      }
      if (inside.size > 0) throw new Error('two hold the lock');
      inside.add(name);
      await call('exists', '/');
      inside.delete(name);
      await call('remove', path, -1);
    };
    close(...await together(body, body, body));
  },
};

programs[process.argv[2]]().catch((error) => {
  process.stdout.write(`broken: ${error.message || error}\n`, () => process.exit(1));
});
