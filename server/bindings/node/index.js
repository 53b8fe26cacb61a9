'use strict';

// An in-memory ZooKeeper for tests, in which the test owns time, sessions, faults and state. See index.d.ts for what each
// verb does.

const { resolve } = require('node:path');

const { Control, MinikeeperError, splitAddress } = require('./control.js');
const { Program, findProgram } = require('./program.js');

const WITHIN_MS = 10_000;

class Fault {
  #universe;
  #hits;

  constructor(universe, id) {
    this.#universe = universe;
    this.id = id;
  }

  async hits() {
    if (this.#hits !== undefined) return this.#hits;
    const faults = await this.#universe.faults();
    const fault = faults.find((one) => (one.fault ?? one.id) === this.id);
    if (fault === undefined) {
      throw new MinikeeperError(`fault ${this.id}: unknown, or removed by somebody else`, { status: 404 });
    }
    return fault.hits;
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

  /** At the end of its scope: who has removed it by hand knows what became of it. */
  async _end() {
    if (this.#hits !== undefined) return;
    try {
      await this.remove();
    } catch (error) {
      if (error.status !== 404) throw error;
    }
  }
}

class Universe {
  #control;

  constructor(connectString, { token, name } = {}) {
    this.name = name;
    if (connectString !== undefined) this._connect(connectString, token);
  }

  _connect(connectString, token) {
    const address = connectString.split('/', 1)[0];
    const { host, port } = splitAddress(address);
    if (host === undefined) throw new TypeError(`no address "${address}"; write it as HOST:PORT`);
    this.address = address;
    this.connectString = connectString;
    this.port = port;
    this.#control = new Control(host, this.port, token, this.name);
  }

  get _api() {
    if (this.#control === undefined) throw new MinikeeperError('the server does not run: call start()');
    return this.#control;
  }

  // Time.

  async now() {
    const { elapsed_ms: elapsedMs, wall_ms: wallMs, is_frozen: isFrozen } = await this._api.read('now');
    return { elapsedMs, wallMs, isFrozen };
  }

  async advance({ byMs, strict = false }) {
    await this._api.act('advance', { by_ms: byMs, ...(strict && { strict }) });
  }

  async freeze() {
    await this._api.act('freeze');
  }

  async unfreeze() {
    await this._api.act('unfreeze');
  }

  async autoAdvance({ idleMs }) {
    await this._api.act('auto_advance', { idle_ms: idleMs });
  }

  // Sessions.

  async sessions() {
    const { sessions } = await this._api.read('sessions');
    return sessions.map((session) =>
      ({ ...camelCased(session), lastOperation: session.last_operation && camelCased(session.last_operation) }),
    );
  }

  async expire(who, { allowNone = false } = {}) {
    return (await this._api.act('expire', { ...whoJson(who), ...(allowNone && { allow_none: true }) })).count;
  }

  async disconnect(who, { allowNone = false } = {}) {
    return (await this._api.act('disconnect', { ...whoJson(who), ...(allowNone && { allow_none: true }) })).count;
  }

  async disconnectAll() {
    await this._api.act('disconnect_all');
  }

  async silence(who, { allowNone = false } = {}) {
    return (await this._api.act('silence', { ...whoJson(who), ...(allowNone && { allow_none: true }) })).count;
  }

  async unsilence(who, { allowNone = false } = {}) {
    return (await this._api.act('unsilence', { ...whoJson(who), ...(allowNone && { allow_none: true }) })).count;
  }

  // Faults.

  async inject(fault) {
    return new Fault(this, (await this._api.act('inject', fault)).fault);
  }

  async faults() {
    return (await this._api.read('faults')).faults;
  }

  async removeFault(fault) {
    if (fault instanceof Fault) return fault.remove();
    return (await this._api.act('remove_fault', { fault })).hits;
  }

  async withFault(fault, use) {
    const injected = await this.inject(fault);
    let result;
    try {
      result = await use(injected);
    } catch (error) {
      // What goes wrong already tells more.
      await injected._end().catch(() => {});
      throw error;
    }
    await injected._end();
    return result;
  }

  async resetFaults() {
    await this._api.act('reset_faults');
  }

  async untilHit(fault, hits = 1, { withinMs = WITHIN_MS } = {}) {
    await this._api.act('until_hit', { fault: fault.id ?? fault, hits, within_ms: withinMs });
  }

  // State.

  async get(path) {
    const answer = await this._api.read('get', { path });
    const { data, data_base64: coded, stat = {} } = answer;
    if (coded !== undefined && coded !== null) return { data: Buffer.from(coded, 'base64'), stat };
    return { data: typeof data === 'string' ? Buffer.from(data) : null, stat };
  }

  async children(path) {
    return (await this._api.read('children', { path })).children;
  }

  async dump() {
    return (await this._api.read('dump')).dump;
  }

  async exportTree({ format = 'json' } = {}) {
    return (await this._api.read('export_tree', { format })).tree;
  }

  async seed(tree) {
    if (typeof tree === 'string') {
      await this._api.act('seed', { yaml: tree });
      return;
    }
    const znodes = Object.entries(tree).map(([path, znode]) => [path, znodeJson(znode)]);
    await this._api.act('seed', { tree: Object.fromEntries(znodes) });
  }

  async snapshot() {
    return (await this._api.act('snapshot')).snapshot;
  }

  async restore(snapshot) {
    await this._api.act('restore', { snapshot });
  }

  async dropSnapshot(snapshot) {
    await this._api.act('drop_snapshot', { snapshot });
  }

  async save() {
    await this._api.act('save');
  }

  async exportData(dir) {
    return this._api.act('export_data', { dir: resolve(dir) });
  }

  async importData(dir) {
    return this._api.act('import_data', { dir: resolve(dir) });
  }

  // Restart, as clients see it.

  async goDown() {
    return (await this._api.act('go_down')).control;
  }

  async comeUp({ keep = 'everything' } = {}) {
    await this._api.act('come_up', { keep });
  }

  async restart({ keep = 'everything' } = {}) {
    await this._api.act('restart', { keep });
  }

  // Universes.

  async createUniverse(name) {
    return this.#named(name, await this._api.act('create_universe', { name }));
  }

  async fork(name) {
    return this.#named(name, await this._api.act('fork', { name }));
  }

  async universes() {
    return (await this._api.read('universes')).universes;
  }

  async dropUniverse(name = this.name) {
    if (name === undefined) throw new TypeError("a server's own universe ends with the server: give a name");
    // It may not be asked to end itself.
    const { host, port, token } = this._api;
    await new Control(host, port, token).act('drop_universe', { name });
  }

  #named(name, { connect_string: connectString }) {
    return new Universe(connectString, { token: this._api.token, name });
  }

  // Waiting without sleeping.

  async untilWatched(path, { withinMs = WITHIN_MS } = {}) {
    await this._api.act('until_watched', { path, within_ms: withinMs });
  }

  async untilChildren(path, count, { withinMs = WITHIN_MS } = {}) {
    await this._api.act('until_children', { path, count, within_ms: withinMs });
  }

  async untilContenders(lock, count, { withinMs = WITHIN_MS } = {}) {
    await this._api.act('until_contenders', { lock, count, within_ms: withinMs });
  }

  async untilSessions(count, { withinMs = WITHIN_MS } = {}) {
    await this._api.act('until_sessions', { count, within_ms: withinMs });
  }

  async untilIdle({ quietMs = 50, withinMs = WITHIN_MS } = {}) {
    await this._api.act('until_idle', { quiet_ms: quietMs, within_ms: withinMs });
  }
}

class Server extends Universe {
  #options;
  #port;
  #named;
  #program;

  constructor({ port = 0, dataDir, tickTimeMs, minSessionTimeoutMs, maxSessionTimeoutMs, options = [], program } = {}) {
    super();
    this.#port = port;
    this.#named = program;
    this.#options = [];
    for (const [option, value] of [
      ['--data-dir', dataDir],
      ['--tick-time', tickTimeMs],
      ['--min-session-timeout', minSessionTimeoutMs],
      ['--max-session-timeout', maxSessionTimeoutMs],
    ]) {
      if (value !== undefined) this.#options.push(option, String(value));
    }
    this.#options.push(...options);
  }

  get log() {
    return this.#program?.said ?? '';
  }

  async start() {
    if (this.#program?.isRunning) return this;
    const options = ['--port', String(this.#port), ...this.#options];
    this.#program = await Program.start(findProgram(this.#named), options);
    this._connect(this.#program.address);
    this.#port = this.port;
    return this;
  }

  async ensureReady() {
    await this.start();
    try {
      await this.comeUp();
    } catch (error) {
      if (error.status !== undefined) throw error;
      // Somebody else has taken it down, and knows where it could be brought up.
      await this.kill();
      await this.start();
    }
    await this.resetFaults();
    await this.autoAdvance({ idleMs: null });
    await this.unfreeze();
    return this;
  }

  async stop() {
    const program = this.#program;
    this.#program = undefined;
    await program?.stop();
  }

  async kill() {
    const program = this.#program;
    this.#program = undefined;
    await program?.kill();
  }
}

// Node knows it from 18.18 and 20.4 on.
if (Symbol.asyncDispose !== undefined) {
  Server.prototype[Symbol.asyncDispose] = Server.prototype.stop;
  Fault.prototype[Symbol.asyncDispose] = Fault.prototype._end;
}

async function startServer(options) {
  return new Server(options).start();
}

/** A session's id in any form clients have it in, or an object that names somebody otherwise. */
function whoJson(who) {
  if (typeof who === 'bigint') return { session: `0x${BigInt.asUintN(64, who).toString(16)}` };
  if (Buffer.isBuffer(who)) return { session: `0x${who.toString('hex')}` };
  if (typeof who === 'string') return { session: who };
  // node-zookeeper-client and its like: 8 bytes.
  if (typeof who?.getSessionId === 'function') return whoJson(who.getSessionId());
  const given = Object.entries(who ?? {}).filter(([, value]) => value !== undefined);
  if (given.length !== 1 || !['session', 'address', 'identity', 'owner'].includes(given[0][0])) {
    throw new TypeError('name one of session, address, identity, owner');
  }
  const [[name, value]] = given;
  return name === 'session' ? whoJson(value) : { [name]: value };
}

/** A znode of a tree, with bytes as JSON has them. */
function znodeJson(znode) {
  if (znode instanceof Uint8Array) return { data_base64: Buffer.from(znode).toString('base64') };
  if (znode?.data instanceof Uint8Array) {
    const { data, ...rest } = znode;
    return { ...znodeJson(data), ...rest };
  }
  return znode;
}

function camelCased(object) {
  return Object.fromEntries(Object.entries(object).map(([name, value]) => [camelCase(name), value]));
}

function camelCase(name) {
  return name.replace(/_([a-z])/g, (_, letter) => letter.toUpperCase());
}

module.exports = { Fault, MinikeeperError, Server, Universe, startServer };
