'use strict';

// Runs a test once for every fault at every place where it can happen. The server decides what each run tries.

const path = require('node:path');

const { MinikeeperError } = require('./control.js');
const { giveUp, release, runAs, watch } = require('./leftovers.js');
const { checkOptions } = require('./options.js');
const { addressOfSweep } = require('./program.js');
const { testOf, titleOf } = require('./runners.js');
const { failureOf, fileNameOf, filesOf, save, storyOf } = require('./story.js');
const { camelCased } = require('./values.js');

const VARIABLE = 'MINIKEEPER_SWEEP_ONLY';

const OPTIONS = [
  ...['faults', 'timeMs', 'runs', 'depth', 'seed', 'all', 'only', 'runTimeMs'],
  ...['allowUnreached', 'allowUntried', 'title', 'throws', 'stories'],
  ...['orders', 'changes', 'more', 'alike', 'clients'],
];

/** How many sweeps of this process have had a title. */
const titles = new Map();

/** A sweep has found something, or has not tried every point. The message is its report. */
class SweepError extends Error {
  constructor(report) {
    super(report.text);
    this.name = 'SweepError';
    // Not enumerable: node:test would print its page.
    Object.defineProperty(this, 'report', { value: report });
  }
}

/** One run of the test, in a universe of its own. */
class SweepRun {
  #cleanups = [];
  #hasEnded = false;

  constructor({ run, points, sentence }) {
    Object.assign(this, { number: run, points, sentence });
  }

  after(cleanup) {
    this.#cleanups.push(cleanup);
    // A run that was given up may go on.
    if (this.#hasEnded) this._end().catch(() => {});
  }

  /** Calls the cleanups, last first, and all of them. */
  async _end() {
    this.#hasEnded = true;
    const errors = [];
    for (const cleanup of this.#cleanups.splice(0).reverse()) {
      try {
        await cleanup();
      } catch (error) {
        errors.push(error);
      }
    }
    if (errors.length > 0) throw errors[0];
  }
}

async function sweep(server, ...given) {
  // In either order, because `withServer` has its options first.
  if (typeof given[1] === 'function') given.reverse();
  const [test, options = {}] = given;
  checkOptions('sweep', options, OPTIONS);
  if (addressOfSweep() !== undefined) {
    throw new MinikeeperError('this test sweeps by itself: run it without minikeeper sweep');
  }
  // While the stack still has the caller.
  const { file, pattern } = testOf();
  const repeat = repeatCommand(file, pattern);
  const title = unique(options.title ?? titleOf());
  const { runTimeMs = 60_000, throws = true, stories } = options;
  const { faults, timeMs, runs, depth, seed, all, allowUnreached, allowUntried } = options;
  const number = await server.sweepStart(depth, seed, {
    ...{ timeMs, runs, all, allowUnreached, allowUntried },
    ...ofOrders(options),
    faults: Array.isArray(faults) ? faults.join(',') : faults,
    only: process.env[VARIABLE] || options.only,
  });
  const unwatch = watch();
  try {
    for (let count = 1; await doRun(server, number, count, { test, title, runTimeMs, stories }); count += 1);
  } finally {
    unwatch();
  }
  const report = camelCased(await server._api.read('sweep_report', { sweep: number, title, repeat }));
  if (!report.isClean) {
    try {
      const paths = save({ [`${fileNameOf(title)}-sweep.html`]: report.html }, stories);
      if (paths !== undefined) {
        [report.page] = paths;
        report.text += `\nreport: ${report.page}\n`;
      }
    } catch (error) {
      report.text += `\nreport not saved: ${error.message}\n`;
    }
  }
  if (throws && !report.isClean) throw new SweepError(report);
  // What was tried is said without a flag, of a sweep that is clean too.
  process.stdout.write(`minikeeper sweep of ${title}: ${report.summary}\n`);
  return report;
}

/** Returns what `sweepStart` takes for a sweep of orders. */
function ofOrders({ orders = false, changes, more, alike, clients }) {
  const given = Object.entries({ changes, more, alike, clients }).find(([, value]) => value !== undefined);
  if (!orders && given !== undefined) throw new TypeError(`${given[0]}: only with orders: true`);
  // The threads of the process tell when no further request is coming.
  return orders ? { orders, changes: changes?.toString(), more, alike, clients, process: process.pid } : {};
}

/** Numbers the titles of the second and later sweeps that have the same: their files must not replace each other. */
function unique(title) {
  const count = (titles.get(title) ?? 0) + 1;
  titles.set(title, count);
  return count === 1 ? title : `${title} ${count}`;
}

/** Does the next run of a sweep. Returns whether there was one. */
async function doRun(server, number, count, { test, title, runTimeMs, stories }) {
  const universe = await server.createUniverse(`sweep-${number}-${count}`);
  const owner = {};
  let run;
  let outcome;
  try {
    const next = await universe.sweepNext(number);
    if (next.run === 0) return false;
    run = new SweepRun(next);
    outcome = await outcomeOf('the run', () => runAs(owner, () => test(universe, run)), runTimeMs);
    const story = outcome.error && (await saveStory(universe, `${title} ${run.points}`.trim(), outcome.error, stories));
    const { error } = outcome;
    await universe.sweepEnd(number, { outcome: outcome.name, message: error && failureOf(error), story });
  } finally {
    try {
      const { error } = await outcomeOf('the cleanup of the run', () => run?._end(), runTimeMs);
      // The outcome of a run that did not pass tells more.
      if (error !== undefined && outcome?.name === 'passed') throw error;
    } finally {
      await universe.dropUniverse();
      if (outcome?.name === 'passed') release(owner);
      else giveUp(owner);
    }
  }
  return true;
}

/** Says how `use` has ended: it passed, it failed with an error, or it hung. */
async function outcomeOf(what, use, runTimeMs) {
  let timer;
  const late = new Promise((resolve) => {
    const error = new Error(`${what} did not end within ${runTimeMs} ms`);
    timer = setTimeout(resolve, runTimeMs, { name: 'hung', error });
  });
  const done = (async () => {
    try {
      await use();
      return { name: 'passed' };
    } catch (error) {
      return { name: 'failed', error: error ?? new Error(`the test threw ${error}`) };
    }
  })();
  const outcome = await Promise.race([done, late]);
  clearTimeout(timer);
  return outcome;
}

/** Saves the story of a run. Returns its page, undefined if there is none. */
async function saveStory(universe, title, error, stories) {
  try {
    return save(filesOf(title, await storyOf(universe, title, error)), stories)?.[0];
  } catch (reason) {
    process.stderr.write(`no story of ${universe.connectString}: ${reason.message}\n`);
    return undefined;
  }
}

/** The command that does a run of the test in this file again, with {} in place of its points. */
function repeatCommand(file, pattern) {
  let runner = 'node --test';
  let select = '--test-name-pattern=';
  if (process.env.JEST_WORKER_ID !== undefined) [runner, select] = ['npx jest', '-t '];
  if (process.env.VITEST !== undefined) [runner, select] = ['npx vitest run', '-t '];
  // Each of the three reads a pattern. The options of Node stand before the file.
  const selection = pattern === undefined ? '' : ` ${select}'${pattern.replace(/[^\p{L}\p{N} _-]/gu, '.')}'`;
  return `${VARIABLE}='{}' ${runner}${selection} ${quoted(path.relative('', file ?? ''))}`;
}

function quoted(word) {
  return /^[\w./@-]*$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

module.exports = { SweepError, sweep };
