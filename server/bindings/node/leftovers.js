'use strict';

// What a run of a sweep leaves behind: timers, sockets, child processes. A run that hangs cannot be stopped, but what it
// leaves must not keep the process alive after the last test.

const { AsyncLocalStorage, createHook } = require('node:async_hooks');

const context = new AsyncLocalStorage();

/** What keeps a process alive, by the number that Node gives it: its owner, and a weak reference. */
const owned = new Map();

/** The sweeps that run, and the runs that were given up and may go on. */
let watched = 0;

const hook = createHook({
  init(id, _type, _trigger, resource) {
    const owner = context.getStore();
    if (owner === undefined || typeof resource?.unref !== 'function') return;
    // It is not complete yet.
    if (owner.isGivenUp) queueMicrotask(() => resource.unref());
    else owned.set(id, { owner, resource: new WeakRef(resource) });
  },
  destroy(id) {
    owned.delete(id);
  },
});

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
  for (const [id, one] of owned) if (one.owner === owner) owned.delete(id);
}

/** Lets the process end in spite of what the owner has created, and of what it still creates. */
function giveUp(owner) {
  owner.isGivenUp = true;
  // It may go on, so that the end of the sweep is not the end of its watch.
  watched += 1;
  for (const one of owned.values()) if (one.owner === owner) one.resource.deref()?.unref();
  release(owner);
}

module.exports = { giveUp, release, runAs, watch };
