'use strict';

// What a run of a sweep leaves behind: timers, sockets, child processes. A run that hangs cannot be stopped, but what it
// leaves must not keep the process alive after the last test.

const { AsyncLocalStorage, createHook } = require('node:async_hooks');
const { Socket } = require('node:net');

const context = new AsyncLocalStorage();

/** How many references an owner keeps before it forgets those to what is gone. */
const REFERENCES_MAX = 1_000;

/** After how long a connection of a run that has ended is refused, so that its clients do not try it all the time. */
const REFUSED_MS = 1_000;

/** The sweeps that run, and the runs that were given up and may go on. */
let watched = 0;

const hook = createHook({
  init(_id, type, _trigger, resource) {
    // Most are promises.
    if (type === 'PROMISE' || typeof resource?.unref !== 'function') return;
    const owner = context.getStore();
    if (owner === undefined) return;
    // It is not complete yet.
    if (owner.isGivenUp) queueMicrotask(() => resource.unref());
    else own(owner, resource);
  },
});

/** Notes what keeps a process alive. Without the hook `destroy`, which would make each promise dearer. */
function own(owner, resource) {
  owner.resources ??= { references: [], max: REFERENCES_MAX };
  const { resources } = owner;
  resources.references.push(new WeakRef(resource));
  if (resources.references.length < resources.max) return;
  resources.references = resources.references.filter((one) => one.deref() !== undefined);
  resources.max = Math.max(REFERENCES_MAX, 2 * resources.references.length);
}

/** Watches what the runs of a sweep create. Returns a function that ends it. */
function watch() {
  watched += 1;
  hook.enable();
  return () => {
    watched -= 1;
    if (watched === 0) hook.disable();
  };
}

/** Calls a function as `owner` of what it creates. */
function runAs(owner, use) {
  return context.run(owner, use);
}

/** Forgets what the owner has created. */
function release(owner) {
  owner.resources = undefined;
}

/** Lets the process end in spite of what the owner has created, and of what it still creates. */
function giveUp(owner) {
  owner.isGivenUp = true;
  // It may go on, so that the end of the sweep is not the end of its watch.
  watched += 1;
  for (const one of owner.resources?.references ?? []) one.deref()?.unref();
  release(owner);
}

/**
 * What can crash in the middle, as a process does. Its code cannot be stopped, but its sockets are closed, and no other of them
 * connects. `ask` says whether it has crashed.
 */
class Crashable {
  hasCrashed = false;
  #ask;
  #tell;
  #sockets = new Set();

  constructor(ask) {
    guardSockets();
    this.#ask = ask;
    this.crashed = new Promise((resolve) => {
      this.#tell = resolve;
    });
  }

  /** Asks whether it has crashed, and ends it then. */
  async check() {
    // The question has no owner: otherwise it would wait for its own answer.
    if (!this.hasCrashed && (await runAs(undefined, this.#ask))) this.crash();
  }

  crash() {
    this.hasCrashed = true;
    for (const socket of this.#sockets) socket.destroy();
    this.#tell();
  }

  /** Resolves unless it has crashed, and never then: a process that has crashed does nothing. */
  async proceed() {
    await this.check();
    if (this.hasCrashed) await new Promise(() => {});
  }

  /** Connects a socket unless it has crashed. */
  async connect(socket, connect) {
    await this.proceed();
    if (socket.destroyed) return;
    this.#sockets.add(socket);
    socket.once('close', () => this.#sockets.delete(socket));
    connect();
  }
}

/**
 * The connections of a run to the server: they end with it. Clients that are left for the end of the test, such as for an
 * `afterEach`, would connect again and again until then, those of every run.
 */
class ConnectionsOfRun {
  #port;
  #sockets = new Set();
  #hasEnded = false;

  constructor(port) {
    guardSockets();
    this.#port = port;
  }

  /** Connects a socket, unless it is to the server and the run has ended. */
  connect(socket, connect, port) {
    // What a test connects to elsewhere may be for all runs.
    if (port !== this.#port) return void connect();
    if (this.#hasEnded) {
      // An error, because clients end what waits for the connection then.
      const error = Object.assign(new Error('connect ECONNREFUSED: the run of the sweep has ended'), { code: 'ECONNREFUSED' });
      return void setTimeout(() => socket.destroy(error), REFUSED_MS).unref();
    }
    this.#sockets.add(socket);
    socket.once('close', () => this.#sockets.delete(socket));
    connect();
  }

  end() {
    this.#hasEnded = true;
    for (const socket of this.#sockets) socket.destroy();
  }
}

let isGuarded = false;

/** Lets the owner of a socket decide whether it connects. */
function guardSockets() {
  if (isGuarded) return;
  isGuarded = true;
  const { connect } = Socket.prototype;
  Socket.prototype.connect = function connectUnlessCrashed(...given) {
    const { crashable, connections } = context.getStore() ?? {};
    if (crashable === undefined && connections === undefined) return connect.apply(this, given);
    // So that what is written waits.
    this.connecting = true;
    if (crashable === undefined) connections.connect(this, () => connect.apply(this, given), portOf(...given));
    else crashable.connect(this, () => connect.apply(this, given)).catch((error) => this.destroy(error));
    return this;
  };
}

/** The port to which a socket is told to connect: by options, in a list that node:net makes, or alone. */
function portOf(given) {
  const [options] = Array.isArray(given) ? given : [given];
  return Number(typeof options === 'object' ? options?.port : options);
}

module.exports = { ConnectionsOfRun, Crashable, giveUp, release, runAs, watch };
