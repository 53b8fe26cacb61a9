'use strict';

// The rule of sweeps: whatever the names of znodes look like that a program makes, the points behind them are tried. A planted
// bug behind such a name is found, and a sound program has every point tried. MINIKEEPER_SWEEP_NAMES=5 does each naming
// scheme five times.

const assert = require('node:assert/strict');
const { randomBytes, randomInt, randomUUID } = require('node:crypto');
const { once } = require('node:events');
const test = require('node:test');
const { promisify } = require('node:util');
const zookeeper = require('node-zookeeper-client');
const { startServer, sweep } = require('minikeeper');

const rounds = Number(process.env.MINIKEEPER_SWEEP_NAMES ?? 0);
const GATE = ['uuid behind node-', 'worker-62', 'random parent and child'];
const SCHEMES = require('./naming-schemes.json').filter(({ name }) => rounds > 0 || GATE.includes(name));

const DIGITS = '0123456789';
const LOWER = 'abcdefghijklmnopqrstuvwxyz';
const UPPER = LOWER.toUpperCase();
const CROCKFORD = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';
const LETTERS = {
  ...{ hex: `${DIGITS}abcdef`, HEX: `${DIGITS}ABCDEF`, dec: DIGITS, lower: LOWER, base32: `${UPPER}234567` },
  ...{ base36: DIGITS + LOWER, base62: DIGITS + UPPER + LOWER, base64url: `${DIGITS + UPPER + LOWER}-_`, crockford: CROCKFORD },
};
const some = (letters, count) => Array.from({ length: Number(count) }, () => letters[randomInt(letters.length)]).join('');
const one = (list) => list[randomInt(list.length)];
const MADE = {
  uuid: () => randomUUID(),
  iso: () => new Date().toISOString(),
  epoch_ms: () => Date.now(),
  epoch_s: () => Math.floor(Date.now() / 1_000),
  pid: () => process.pid,
  pick: (words) => one(words.split('|')),
  int: (range) => {
    const [from, to] = range.split('-').map(Number);
    return randomInt(from, to + 1);
  },
  ulid: () => {
    const ms = BigInt(Date.now());
    return Array.from({ length: 10 }, (_, at) => CROCKFORD[Number((ms >> BigInt(45 - 5 * at)) & 31n)]).join('') + some(CROCKFORD, 16);
  },
  snowflake: () => (BigInt(Date.now() - 1_288_834_974_657) << 22n) | BigInt(randomBytes(4).readUInt32BE() >>> 10),
};

function nameOf(template) {
  return template.replace(/\{(.*?)\}/g, (_, generator) => {
    const [kind, ...rest] = generator.split(':');
    return String(kind in LETTERS ? some(LETTERS[kind], rest[0]) : MADE[kind](rest.join(':')));
  });
}

/** A test of what takes a job with a name of this scheme, and writes its result. */
function takesJob(template, isSound) {
  return async (universe, run) => {
    const name = nameOf(template);
    const job = `/jobs/${name}`;
    await universe.seed({ '/jobs': '' });
    const call = (client, verb, ...values) => promisify(client[verb].bind(client))(...values);
    const done = new Set();
    /** Does what is not done yet, in this order, with a client. */
    const work = async (client) => {
      const create = async (path, mode = zookeeper.CreateMode.PERSISTENT) => {
        if (done.has(path)) return;
        await call(client, 'create', path, null, mode).catch((error) => {
          if (error.name !== 'NODE_EXISTS') throw error;
        });
        done.add(path);
      };
      if (name.includes('/')) await create(job.slice(0, job.lastIndexOf('/')));
      await call(client, 'exists', job, () => {});
      await create(job);
      // The bug: again after a lost reply.
      await (isSound ? create(`${job}/result`) : create(`${job}/result-`, zookeeper.CreateMode.PERSISTENT_SEQUENTIAL));
      await call(client, 'getData', job);
    };
    for (let attempt = 1; ; attempt += 1) {
      const client = zookeeper.createClient(universe.connectString, { spinDelay: 10, retries: 0 });
      run.after(() => client.close());
      const connected = once(client, 'connected');
      client.connect();
      await connected;
      try {
        await work(client);
        break;
      } catch (error) {
        if (error.name !== 'CONNECTION_LOSS' || attempt === 5) throw error;
      }
    }
    assert.equal((await universe.children(job)).length, 1);
  };
}

for (let round = 1; round <= Math.max(rounds, 1); round += 1) {
  for (const { name, template } of SCHEMES) {
    test(`points behind names are tried: ${name}, round ${round}`, async (t) => {
      const server = await startServer();
      t.after(() => server.stop());
      const options = { faults: ['reply-lost', 'event-late'], stories: 'off', throws: false };
      const planted = await sweep(server, takesJob(template, false), { ...options, title: `${name}, planted` });
      assert.ok(planted.failures.some((points) => /^reply-lost:1:create:\d+:\/jobs\/.*\/result-/.test(points)), planted.text);
      const sound = await sweep(server, takesJob(template, true), { ...options, title: `${name}, sound` });
      assert.deepEqual([sound.state, sound.notReached, sound.tried], ['clean', 0, sound.points], sound.text);
      assert.ok(sound.points > 4);
    });
  }
}
