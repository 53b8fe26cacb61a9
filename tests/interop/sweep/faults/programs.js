'use strict';

// Programs that a fault breaks, with node-zookeeper-client: `programs.js PROGRAM [--sound]`.

const { once } = require('node:events');
const { setTimeout: sleep } = require('node:timers/promises');
const zookeeper = require('node-zookeeper-client');

const IS_SOUND = process.argv.includes('--sound');

// How long a program may take, with all its retries, and how long it waits for what must happen while it is connected.
const LIMIT_MS = 30_000;
const PATIENCE_MS = 1_500;

/** A client that opens another session when one has expired. */
class Client {
  connected = false;

  /** Calls `lost` when the connection is lost. */
  open() {
    const client = zookeeper.createClient(process.env.MINIKEEPER_CONNECT, { sessionTimeout: 5_000, spinDelay: 50 });
    // The client never answers what it has not sent when the session expires.
    const expired = once(client, 'expired').then(() => {
      this.session = undefined;
      throw Object.assign(new Error('the session has expired'), { name: 'SESSION_EXPIRED' });
    });
    expired.catch(() => {});
    client.on('connected', () => { this.connected = true; });
    client.on('disconnected', () => {
      this.connected = false;
      this.lost?.();
    });
    client.connect();
    return { client, expired };
  }

  /** Makes one request. */
  async call(name, ...values) {
    this.session ??= this.open();
    const { client, expired } = this.session;
    const answer = new Promise((resolve, reject) => {
      client[name](...values, (error, ...results) => (error ? reject(error) : resolve(results)));
    });
    return Promise.race([answer, expired]);
  }

  async close() {
    this.session?.client.close();
    await sleep(50);
  }
}

/** Does a step until it has been done without a loss of the connection. The parts of a step can be repeated. */
async function persist(step) {
  for (;;) {
    try {
      return await step();
    } catch (error) {
      if (error.name !== 'CONNECTION_LOSS' && error.name !== 'SESSION_EXPIRED') throw error;
      await sleep(20);
    }
  }
}

/** Creates a znode that may exist, as it does after a lost reply or in a second start. */
async function create(client, path, data = '') {
  try {
    await client.call('create', path, Buffer.from(data));
  } catch (error) {
    if (error.name !== 'NODE_EXISTS') throw error;
  }
}

function fail(what) {
  process.stdout.write(`broken: ${what}\n`, () => process.exit(1));
  return new Promise(() => {});
}

const CONFIG = '/config';

/** A client that always has the present configuration, by a watch. */
class Reader {
  client = new Client();
  value = undefined;
  version = -1;

  /** Reads now and after each change or loss of the connection. Calls `first` after each read. */
  async follow(read, first) {
    for (;;) {
      const changed = new Promise((resolve) => { this.client.lost = resolve; });
      try {
        await read(this, this.client.lost, first);
        await changed;
      } catch (error) {
        if (!['CONNECTION_LOSS', 'SESSION_EXPIRED', 'NO_NODE'].includes(error.name)) throw error;
        if (error.name === 'NO_NODE') first();
        await sleep(20);
      }
    }
  }

  /** Waits for a value, as long as the patience lasts while the client is connected. */
  async until(value) {
    for (let passed = 0; this.value !== value && passed < PATIENCE_MS; passed += this.client.connected ? 10 : 0) await sleep(10);
  }
}

/** Publishes a configuration while a reader follows it, and compares what they have in the end. */
async function publish(read) {
  const client = new Client();
  const reader = new Reader();
  await persist(() => create(client, CONFIG, 'limit 1'));
  await new Promise((resolve) => { reader.follow(read, resolve).catch(fail); });
  await persist(async () => {
    const [freeze] = await client.call('exists', '/freeze');
    if (freeze) return;
    try {
      const [, stat] = await client.call('getData', CONFIG);
      await client.call('setData', CONFIG, Buffer.from('limit 2'), stat.version);
    } catch (error) {
      if (error.name === 'NO_NODE') await create(client, CONFIG, 'limit 2');
      // Our own write, whose reply was lost.
      else if (error.name !== 'BAD_VERSION') throw error;
    }
  });
  for (let expected = 'limit 2'; ;) {
    await reader.until(expected);
    const now = await persist(async () => String((await client.call('getData', CONFIG))[0]));
    if (now === reader.value) break;
    if (now === expected) await fail(`the configuration is "${now}", and the reader has "${reader.value}"`);
    expected = now;
  }
  await Promise.all([client.close(), reader.client.close()]);
}

const programs = {
  /** Reads the data, and sets the watch with a second request: a change in between is missed. Sound: one request does both. */
  config: () => publish(async (reader, wake, first) => {
    const [data] = await reader.client.call('getData', CONFIG, ...(IS_SOUND ? [wake] : []));
    reader.value = String(data);
    first();
    if (!IS_SOUND) await reader.client.call('exists', CONFIG, wake);
  }),

  /** Keeps the data with the highest version, so that old data of a late reply are ignored. Sound: takes what the server says. */
  cache: () => publish(async (reader, wake, first) => {
    const [data, stat] = await reader.client.call('getData', CONFIG, wake);
    if (IS_SOUND || stat.version > reader.version) {
      reader.value = String(data);
      reader.version = stat.version;
    }
    first();
  }),

  /**
   * Sets up the znodes of a tenant, unless the first of them is there: after a crash the others may be missing. Sound: creates
   * all that are missing at each start.
   */
  async tenant() {
    const paths = ['/tenants', '/tenants/acme', '/tenants/acme/users', '/tenants/acme/quota'];
    const client = new Client();
    const [isSetUp] = await persist(() => client.call('exists', '/tenants/acme'));
    const deadline = Date.now() + PATIENCE_MS;
    await persist(async () => {
      for (;;) {
        try {
          if (IS_SOUND || !isSetUp) for (const path of paths) await create(client, path, '10');
          await client.call('getChildren', '/tenants/acme/users');
          await client.call('getData', '/tenants/acme/quota');
          return;
        } catch (error) {
          if (error.name !== 'NO_NODE') throw error;
          if (Date.now() > deadline) await fail(`tenant acme is not complete: ${error.message}`);
          await sleep(100);
        }
      }
    });
    await client.close();
  },
};

setTimeout(fail, LIMIT_MS, `not done within ${LIMIT_MS} ms`);
programs[process.argv[2]]().then(() => process.exit(0), (error) => fail(error.message || error));
