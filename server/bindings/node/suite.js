'use strict';

// Tests that `minikeeper sweep --suite` sweeps: each run has a universe of the server of the suite.

const { MinikeeperError } = require('./control.js');
const { endWithTestsOfJest, expectTest, failAtLimit, running, testOf, titleOf, within } = require('./runners.js');
const { sweepTest, tryTest } = require('./sweep.js');

/** Returns a test function that sweeps `use`, or calls `own` if that needs a server of its own. */
function suiteFunction(keeper, use, own, stories) {
  endWithTestsOfJest();
  const begin = expectTest();
  // Without parameters, as in `testFunction`.
  return async (...context) => {
    begin();
    const [t] = context;
    const known = testOf(t);
    const late = new AbortController();
    const failLate = () => late.abort(new MinikeeperError('the test reached its time limit in the middle of its sweep'));
    const limited = { title: titleOf(t), failLate };
    failAtLimit(t, limited);
    try {
      const needsOwn = await within(known, () => sweepIn(keeper, use, context, { known, stories, signal: late.signal }));
      if (needsOwn) await own(...context);
    } finally {
      running.delete(limited);
    }
  };
}

/** Sweeps a test. Returns whether it needs a server of its own, and was not swept. */
async function sweepIn(keeper, use, context, settings) {
  const [t, ...given] = context;
  let isSkipped = false;
  const skip = () => {
    isSkipped = true;
  };
  const test = (universe, run) => {
    return use(universe, ...(isContext(t) ? [contextOf(t, universe, run, skip), ...given] : context));
  };
  // It tells what kind of test this is.
  const { universe, error } = await tryTest(keeper, test);
  if (universe.needs !== undefined) return true;
  if (universe.sweeps || isSkipped || error?.code === 'VITEST_PENDING') {
    if (error !== undefined) throw error;
    return false;
  }
  await sweepTest(keeper, test, settings.known, settings);
  return false;
}

/** Whether this is the context of a test in Vitest or node:test, and not the row of a table. */
function isContext(t) {
  return typeof t?.onTestFinished === 'function' || typeof t?.after === 'function' && typeof t.diagnostic === 'function';
}

/** Returns the context of a test for one run of it, whose hooks are called after the run. */
function contextOf(t, universe, run, skip) {
  const after = (hook) => run.after(() => hook(t));
  const isOfNode = t.task === undefined;
  return new Proxy(t, {
    get(target, name) {
      if (name === 'after' || name === 'onTestFinished') return after;
      // They are counted for all runs together.
      if (isOfNode && (name === 'test' || name === 'plan')) return () => universe._need(name);
      if (isOfNode && name === 'mock') run.after(() => target.mock.reset());
      const value = Reflect.get(target, name, target);
      if (!isOfNode || typeof value !== 'function') return value;
      return (...values) => {
        if (name === 'skip') skip();
        // It has private fields.
        return value.apply(target, values);
      };
    },
  });
}

module.exports = { suiteFunction };
