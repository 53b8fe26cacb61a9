'use strict';

// Test functions with a server of their own, for node:test, Jest and Vitest, which differ in how a test knows its name,
// whether it has failed, and whether its time is over.

const { AsyncLocalStorage } = require('node:async_hooks');
const path = require('node:path');

const { checkOptions } = require('./options.js');
const { tell } = require('./story.js');

/** The test that runs, of which `withServer` has seen the context. */
const current = new AsyncLocalStorage();

/** The runs that have not ended. */
const running = new Set();

/** The tests of a suite that have not begun, in this process. */
let ahead = 0;

/** One run of a test, with its server. */
class Run {
  #end;

  constructor(server, title, stories) {
    Object.assign(this, { server, title, stories });
  }

  /** Stops the server. Rejects if one of its faults has never acted, and tells the story. */
  pass() {
    running.delete(this);
    return (this.#end ??= this.#stop());
  }

  /** Tells the story of the server and stops it, unless the run has already ended. */
  fail(error) {
    running.delete(this);
    return (this.#end ??= this.#tell(error));
  }

  failLate() {
    return this.fail(new Error('the test did not end within its time limit'));
  }

  async #stop() {
    try {
      await this.server._checkFaults((error) => tell(this.server, this.title, error, this.stories));
    } catch (error) {
      await this.server.stop().catch(() => {});
      throw error;
    }
    await this.server.stop();
  }

  async #tell(error) {
    await tell(this.server, this.title, error, this.stories);
    // The error of the test tells more.
    await this.server.stop().catch(() => {});
  }
}

/** Returns a test function that starts a server, calls `use` with it, and stops it. */
function testFunction(start, use, stories) {
  endWithTestsOfJest();
  // Without parameters: Jest passes a callback to a function that has one, and waits for its call.
  return async (...context) => {
    const [t] = context;
    const known = testOf(t);
    const run = new Run(await start(), titleOf(t), stories);
    failAtLimit(t, run);
    try {
      await current.run(known, () => use(run.server, ...context));
    } catch (error) {
      await run.fail(error);
      throw error;
    }
    await run.pass();
  };
}

/** Calls `failLate` of a run if its test reaches its time limit. */
function failAtLimit(t, run) {
  running.add(run);
  // After a test of Vitest or node:test, also one that has reached its time limit, whose function is not heard any more.
  const after = t?.onTestFinished ?? t?.after;
  if (typeof after === 'function') after.call(t, () => run.failLate());
}

/** After a test of Jest, which passes no context. */
function endWithTestsOfJest() {
  const state = stateOfExpect();
  // It accepts hooks only while it collects tests.
  if (state?.testPath === undefined || state.currentTestName !== undefined) return;
  globalThis.afterEach?.(async () => {
    const title = titleOf();
    const late = [...running].filter((run) => run.title === title);
    await Promise.all(late.map((run) => run.failLate()));
  });
}

/** What the `expect` of Jest knows, which Vitest has too if its globals are on. */
function stateOfExpect() {
  return globalThis.expect?.getState?.();
}

/** The title of the test that runs: its file and its name. `t` is its context in node:test and Vitest. */
function titleOf(t) {
  const { file, name } = testOf(t);
  const within = path.relative('', file ?? '');
  // A path, so that files with one name in several folders have titles of their own.
  const shown = within.startsWith('..') || path.isAbsolute(within) ? path.basename(within) : within.replaceAll('\\', '/');
  return name === undefined ? shown : `${shown}/${name}`;
}

/** The file and the name of the test that runs, and what selects it, each undefined if it is not known. */
function testOf(t) {
  if (nameOf() !== undefined) return { file: fileOf(), name: nameOf(), pattern: nameOf() };
  if (t === undefined && current.getStore() !== undefined) return current.getStore();
  // Some versions of node:test select by the name with those of its suites, which it contains, others by the name alone.
  if (t?.task === undefined) return { file: t?.filePath ?? fileOf(), name: t?.fullName ?? t?.name, pattern: t?.name };
  const names = [];
  for (let task = t.task; task !== undefined && task !== t.task.file; task = task.suite) names.unshift(task.name);
  const name = names.join(' ');
  return { file: t.task.file?.filepath ?? t.task.file?.name, name, pattern: name };
}

/** The file of the test that runs, as far as it is known without its context. */
function fileOf() {
  const { testPath } = stateOfExpect() ?? {};
  // The workers of Vitest run a file of its own.
  return testPath ?? (process.env.VITEST === undefined ? process.argv[1] : callerOf());
}

/** The file that called this package. */
function callerOf() {
  const frames = new Error().stack.split('\n').slice(1);
  const frame = frames.find((line) => !line.includes(__dirname)) ?? '';
  return /(?:\(|at )(?:file:\/\/)?([^()]+):\d+:\d+\)?$/.exec(frame)?.[1];
}

/** The name of the test that runs, in Jest, and in Vitest if its globals are on. */
function nameOf() {
  return stateOfExpect()?.currentTestName;
}

/** Counts a test of a suite. Returns a function that says that it begins. */
function expectTest() {
  ahead += 1;
  let has = false;
  return () => {
    // The rows of a table are tests with one function.
    if (!has) ahead -= 1;
    has = true;
  };
}

/** How many tests of a suite are still to come in this process, that which runs included. */
function testsLeft() {
  return ahead + 1;
}

/** Calls `use` as a part of this test. */
function within(known, use) {
  return current.run(known, use);
}

/** For an `afterEach` of node:test or Vitest, which pass the context of the test. */
async function tellIfFailed(t, universe, options = {}) {
  checkOptions('tellIfFailed', options, ['stories']);
  if (t?.name === undefined && t?.task === undefined) {
    throw new TypeError('tellIfFailed needs the context of a test, which Jest does not have: use withServer');
  }
  const result = t.task?.result;
  if (t.passed !== false && result?.state !== 'fail') return;
  const error = t.error?.cause ?? t.error ?? result?.errors?.[0];
  await tell(universe, titleOf(t), error, options.stories);
}

module.exports = { endWithTestsOfJest, expectTest, failAtLimit, running, tellIfFailed, testFunction, testOf, testsLeft, titleOf, within };
