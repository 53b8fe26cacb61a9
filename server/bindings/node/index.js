'use strict';

// An in-memory ZooKeeper for tests that control time, sessions, faults and state. verbs.d.ts describes each verb.

const { Control, MinikeeperError } = require('./control.js');
const { checkOptions } = require('./options.js');
const { Program, addressOfSuite, addressOfSweep, findProgram } = require('./program.js');
const { tellIfFailed, testFunction } = require('./runners.js');
const { suiteFunction } = require('./suite.js');
const { SweepError, sweep } = require('./sweep.js');
const { Verbs } = require('./verbs.js');

/** The options of a server, with the option of the program for each that is one. */
const SERVER_OPTIONS = {
  port: undefined,
  dataDir: '--data-dir',
  tickTimeMs: '--tick-time',
  minSessionTimeoutMs: '--min-session-timeout',
  maxSessionTimeoutMs: '--max-session-timeout',
  servers: '--servers',
  options: undefined,
  program: undefined,
};

/** What applies to a whole server, which a universe of the server of a suite is not, or shows that it is none. */
const OF_A_SERVER = {
  methods: [
    ...['createUniverse', 'universes', 'dropUniverse', 'fork', 'restart', 'goDown', 'comeUp', 'servers', 'setServer', 'setLeader'],
    ...['save', 'sweepStart', 'suiteStart', 'kill', 'stop'],
  ],
  getters: ['address', 'port', 'log'],
};

class Fault {
  #universe;
  #hits;

  constructor(universe, id) {
    this.#universe = universe;
    this.id = id;
  }

  async hits() {
    return this.#hits ?? (await this.#shown()).hits;
  }

  async lastHit() {
    return (await this.#shown()).last_hit;
  }

  async #shown() {
    const faults = await this.#universe.faults();
    const fault = faults.find((one) => one.fault === this.id);
    if (fault !== undefined) return fault;
    const why = this.#hits === undefined ? 'unknown, or removed by another caller' : 'removed';
    throw new MinikeeperError(`fault ${this.id}: ${why}`, { status: 404 });
  }

  untilHit(hits, options) {
    return this.#universe.untilHit(this, hits, options);
  }

  async remove() {
    try {
      this.#hits = await this.#universe.removeFault(this.id);
    } catch (error) {
      if (error.status === 409) this.#hits = 0;
      throw error;
    }
    return this.#hits;
  }

  /** Ends its scope: removes it, unless the caller has already removed it. */
  async _end() {
    if (this.#hits !== undefined) return;
    try {
      await this.remove();
    } catch (error) {
      if (error.status !== 404) throw error;
    }
  }
}

class Universe extends Verbs {
  #control;

  constructor(connectString, options = {}) {
    super();
    checkOptions('Universe', options, ['token', 'name']);
    const { token, name } = options;
    this.name = name;
    if (connectString !== undefined) this._connect(connectString, token);
  }

  _connect(connectString, token) {
    this.#control = new Control(connectString, token, this.name);
  }

  get _api() {
    if (this.#control === undefined) throw new MinikeeperError('the server is not running: call start()');
    return this.#control;
  }

  get connectString() {
    return this._api.connectString;
  }

  get address() {
    return this._api.address;
  }

  get port() {
    return this._api.port;
  }

  _fault(id) {
    return new Fault(this, id);
  }

  _universe(name, connectString) {
    return new Universe(connectString, { token: this._api.token, name });
  }

  /** Returns the server that keeps a sweep of a test with this one: under `minikeeper sweep --suite` it may be that of the suite. */
  _keeper() {
    return this;
  }

  async removeFault(fault) {
    return fault instanceof Fault ? fault.remove() : super.removeFault(fault);
  }

  async withResource(name, options, use) {
    const { token, holder } = options;
    const entry = await this.resourceEnter(name, { fencingToken: token, holder });
    try {
      return await use({ write: () => this.resourceWrite(entry) });
    } finally {
      await this.resourceLeave(entry);
    }
  }

  async withFault(fault, use) {
    const injected = await this.inject(fault);
    let result;
    try {
      result = await use(injected);
    } catch (error) {
      // The error of `use` tells more.
      await injected._end().catch(() => {});
      throw error;
    }
    await injected._end();
    return result;
  }

  async dropUniverse(name = this.name) {
    if (name === undefined) throw new TypeError("the server's own universe cannot be dropped: give a name");
    // Only the server has this verb, not a created universe.
    const server = new Universe(this.connectString.split('/', 1)[0], { token: this._api.token });
    await super.dropUniverse.call(server, name);
  }
}

/** The one that uses the server of `minikeeper sweep`. */
let joined;

class Server extends Universe {
  #options;
  #port;
  #isUsual;
  #named;
  #program;
  /** The state to restore, of the server of `minikeeper sweep`. */
  #before;

  constructor(settings = {}) {
    super();
    checkOptions('Server', settings, Object.keys(SERVER_OPTIONS));
    const { port = 0, options = [], program } = settings;
    this.#port = port;
    this.#named = program;
    this.#options = [];
    for (const [name, option] of Object.entries(SERVER_OPTIONS)) {
      const value = settings[name];
      if (option !== undefined && value !== undefined) this.#options.push(option, String(value));
    }
    this.#options.push(...options);
    this.#isUsual = port === 0 && program === undefined && this.#options.length === 0;
  }

  get log() {
    return this.#program?.said ?? '';
  }

  async start() {
    if (this.#program?.isRunning || this.#before !== undefined) return this;
    if (addressOfSweep() !== undefined) return this.#join(addressOfSweep());
    const options = ['--port', String(this.#port), ...this.#options];
    this.#program = await Program.start(findProgram(this.#named), options);
    this._connect(this.#program.address);
    this.#port = this.port;
    return this;
  }

  /** Uses the server of `minikeeper sweep`, because its faults act on no other. */
  async #join(address) {
    const what = `minikeeper sweep tries faults on its own server alone, which is at MINIKEEPER_CONNECT, ${address}`;
    const otherwise = 'or call sweep(), and run the test without minikeeper sweep';
    if (this.#options.length > 0 || this.#port !== 0) {
      const way = `give minikeeper sweep the options, such as --tick-time, ${otherwise}`;
      throw new MinikeeperError(`${what}, and a test cannot change its options: ${way}`);
    }
    if (joined !== undefined) {
      throw new MinikeeperError(`${what}, and another Server uses it: stop that first, ${otherwise}`);
    }
    joined = this;
    this._connect(address);
    this.#before = { snapshot: await this.snapshot(), faults: (await this.faults()).map(({ fault }) => fault) };
    return this;
  }

  /** Leaves the server of `minikeeper sweep` as it was, with the faults of the sweep. */
  async #leave() {
    const { snapshot, faults } = this.#before;
    this.#before = undefined;
    joined = undefined;
    for (const { fault } of await this.faults()) {
      // An error with status 409 says that it has never acted.
      if (!faults.includes(fault)) await this.removeFault(fault).catch(unlessStatus(409));
    }
    await this.restore(snapshot);
    await this.dropSnapshot(snapshot);
  }

  _keeper() {
    return this.#isUsual && addressOfSuite() !== undefined ? new SuiteServer(addressOfSuite()) : this;
  }

  async ensureReady() {
    await this.start();
    // Its faults are those of the sweep.
    if (this.#before !== undefined) return this;
    try {
      await this.comeUp();
    } catch (error) {
      if (error.status !== undefined) throw error;
      // Another caller has taken it down, and only that caller knows where to bring it up.
      await this.kill();
      await this.start();
    }
    for (const { id, mode } of await this.servers()) if (mode !== 'up') await this.setServer(id, { mode: 'up' });
    await this.resetFaults();
    await this.autoAdvance({ idleMs: null });
    await this.unfreeze();
    return this;
  }

  async stop() {
    if (this.#before !== undefined) return this.#leave();
    const program = this.#program;
    this.#program = undefined;
    await program?.stop();
  }

  /**
   * Removes every fault, of any of its universes, that has never acted and is not optional. Rejects with a sentence for each;
   * calls `tell` before that. A server that does not answer, such as one that the test has killed, is not asked.
   */
  async _checkFaults(tell) {
    // A fault of the sweep may have kept a fault of the test from acting.
    if (this.#before === undefined ? !this.#program?.isRunning : this.#before.faults.length > 0) return;
    const never = [];
    try {
      for (const name of [undefined, ...(await this.universes())]) {
        const api = this._api.of(name);
        const { faults } = await api.read('faults');
        for (const { fault, hits, optional } of faults) if (hits === 0 && !optional) never.push({ api, fault });
      }
    } catch (error) {
      // With --control-token in the options, the test has the token, and not this server.
      if (error.status !== undefined && error.status !== 401) throw error;
    }
    if (never.length === 0) return;
    await tell(new MinikeeperError('faults that have never acted'));
    const sentences = [];
    for (const { api, fault } of never) {
      await api.act('remove_fault', { fault }).catch((error) => sentences.push(error.message));
    }
    if (sentences.length > 0) throw new MinikeeperError(sentences.join('\n'), { status: 409 });
  }

  async kill() {
    if (this.#before !== undefined) throw new MinikeeperError('kill: the server is that of minikeeper sweep; use restart()');
    const program = this.#program;
    this.#program = undefined;
    await program?.kill();
  }
}

/** The server of `minikeeper sweep --suite`, or a universe of it, which a test gets in place of a server. */
class SuiteServer extends Server {
  /** What the test does that needs a server of its own, undefined if nothing. */
  needs;
  /** Whether the test calls `sweep`. */
  sweeps = false;

  constructor(connectString, name) {
    super();
    this.name = name;
    this._connect(connectString);
  }

  _universe(name, connectString) {
    return new SuiteServer(connectString, name);
  }

  _keeper() {
    this.sweeps = true;
    return new SuiteServer(addressOfSuite());
  }

  async start() {
    return this;
  }

  /** Its faults are those of the sweep. */
  async ensureReady() {
    return this;
  }

  /** Throws the error of what a universe cannot do. */
  _need(what) {
    this.needs = what;
    throw new MinikeeperError(`${what}: the test has a universe of the server of minikeeper sweep --suite, which other tests use`);
  }
}

for (const name of OF_A_SERVER.methods) {
  SuiteServer.prototype[name] = async function needServer() {
    this._need(name);
  };
}
for (const name of OF_A_SERVER.getters) {
  Object.defineProperty(SuiteServer.prototype, name, {
    get() {
      return this._need(name);
    },
  });
}

// Node has this symbol since 18.18 and 20.4.
if (Symbol.asyncDispose !== undefined) {
  Server.prototype[Symbol.asyncDispose] = Server.prototype.stop;
  SuiteServer.prototype[Symbol.asyncDispose] = SuiteServer.prototype.stop;
  Fault.prototype[Symbol.asyncDispose] = Fault.prototype._end;
}

/** Returns a function that throws an error unless it has this status. */
function unlessStatus(status) {
  return (error) => {
    if (error.status !== status) throw error;
  };
}

async function startServer(options) {
  return new Server(options).start();
}

function withServer(...given) {
  const use = given.pop();
  const [options = {}] = given;
  checkOptions('withServer', options, [...Object.keys(SERVER_OPTIONS), 'stories']);
  const { stories, ...settings } = options;
  const own = testFunction(() => startServer(settings), use, stories);
  const isGiven = Object.values(settings).some((value) => value !== undefined);
  if (addressOfSuite() === undefined || isGiven) return own;
  return suiteFunction(new SuiteServer(addressOfSuite()), use, own, stories);
}

module.exports = { Fault, MinikeeperError, Server, SweepError, Universe, startServer, sweep, tellIfFailed, withServer };
