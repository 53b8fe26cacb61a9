'use strict';

// Runs a test once for every fault at every place where it can happen. The server decides what each run tries.

const { randomUUID } = require('node:crypto');
const path = require('node:path');

const { MinikeeperError } = require('./control.js');
const { KeptConnections } = require('./kept.js');
const { ConnectionsOfRun, Crashable, giveUp, release, runAs, watch } = require('./leftovers.js');
const { checkOptions } = require('./options.js');
const { addressOfSweep } = require('./program.js');
const { allowText, leaveOutText, messageOf } = require('./rules.js');
const { testOf, testsLeft, titleOf } = require('./runners.js');
const { fileNameOf, filesOf, placeOf, save, storyOf } = require('./story.js');
const { camelCased, fields } = require('./values.js');

const VARIABLE = 'MINIKEEPER_SWEEP_ONLY';

const OPTIONS = [
  ...['faults', 'timeMs', 'runs', 'depth', 'seed', 'all', 'only', 'runTimeMs', 'jobs'],
  ...['outageMs', 'rollback', 'first', 'compare', 'allow', 'leaveOut'],
  ...['allowUnreached', 'allowUntried', 'title', 'throws', 'stories'],
  ...['orders', 'changes', 'more', 'alike', 'clients'],
];

/** How long a run may take, unless the caller says it. */
const RUN_TIME_MS = 60_000;

/** What the server accepts. */
const JOBS_MAX = 256;

/** Points with the fault that ends the clients. */
const CRASHES = /(^|\+)client-crash:/;

/** How long a start of the test that has crashed may clean up: what waits for an answer would never end. */
const ABANDONED_MS = 100;

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

/** A call of the test in a run, in a universe of that. */
class SweepRun {
  #universe;
  #cleanups = [];
  #hasEnded = false;
  #noted = [];

  constructor(universe, { run, points, sentence }, start) {
    this.#universe = universe;
    const fault = points === '' || points.startsWith('order:') ? undefined : points.split(':', 1)[0];
    Object.assign(this, { number: run, start, fault, points, sentence });
  }

  after(cleanup) {
    this.#cleanups.push(cleanup);
    // A run that was given up may go on.
    if (this.#hasEnded) this._end().catch(() => {});
  }

  sometimes(goal, holds = true) {
    if (typeof goal !== 'string' || goal === '') throw new TypeError('sometimes: the goal must be a text');
    const noted = this.#universe.sometimes(goal, { holds: Boolean(holds) });
    // The end of the run waits for it, whether the test does or not.
    noted.catch(() => {});
    this.#noted.push(noted);
    return noted;
  }

  /** Waits until the server knows all goals. */
  async _note() {
    await Promise.all(this.#noted);
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

  /** Calls the cleanups of a start that has crashed, none of which waits for another: they may never end. */
  async _abandon() {
    this.#hasEnded = true;
    const cleanups = this.#cleanups.splice(0).reverse();
    await Promise.allSettled(cleanups.map(async (cleanup) => cleanup()));
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
  const repeat = `${VARIABLE}='{}' ${commandOf(file, pattern)}`;
  const title = unique(options.title ?? titleOf());
  const keeper = server._keeper();
  // Its options are those of the suite, and the rules of these.
  const isOfSuite = keeper !== server && !options.orders;
  return doSweep(keeper, test, options, { title, repeat, isOfSuite });
}

/** Sweeps a test of which `withServer` has the context, for `minikeeper sweep --suite`. */
function sweepTest(keeper, test, known, { stories, signal }) {
  const repeat = `npx minikeeper sweep --only '{}' -- ${commandOf(known.file, known.pattern)}`;
  return doSweep(keeper, test, { stories }, { title: unique(titleOf()), repeat, isOfSuite: true, endsConnections: true, signal });
}

/** Calls a test once, in a universe of its own, without a sweep. Returns its outcome and that universe. */
async function tryTest(keeper, test) {
  const name = `trial-${randomUUID()}`;
  const { connect_string: connectString } = await keeper._api.act('create_universe', { name });
  const universe = keeper._universe(name, connectString);
  const run = new SweepRun(universe, { run: 0, points: '', sentence: '' }, 1);
  const owner = { connections: new ConnectionsOfRun(keeper._api.port) };
  const unwatch = watch();
  try {
    const outcome = await outcomeOf('the test', () => runAs(owner, () => test(universe, run)), RUN_TIME_MS);
    // What it has left must not keep the process alive.
    if (outcome.error !== undefined) giveUp(owner);
    const { error } = await outcomeOf('the cleanup of the test', () => run._end(), RUN_TIME_MS);
    return { universe, error: outcome.error ?? error };
  } finally {
    unwatch();
    owner.connections.end();
    await keeper._api.act('drop_universe', { name });
  }
}

async function doSweep(server, test, options, { title, repeat, isOfSuite, endsConnections, signal }) {
  const { runTimeMs = RUN_TIME_MS, jobs = 1, throws = true, stories } = options;
  const { faults, outageMs, rollback, timeMs, runs, depth, seed, all, first, compare, allowUnreached, allowUntried } = options;
  checkJobs(jobs, options.orders);
  const started = await server._api.act('sweep_start', fields({
    ...{ outageMs, rollback, timeMs, runs, depth, seed, all, first, compare, allowUnreached, allowUntried },
    ...{ allow: allowText(options.allow), leaveOut: leaveOutText(options.leaveOut) },
    ...ofOrders(options),
    faults: Array.isArray(faults) ? faults.join(',') : faults,
    only: process.env[VARIABLE] || options.only,
    ...(isOfSuite ? { test: title, testsLeft: testsLeft(), repeat } : {}),
  }));
  const number = started.sweep;
  await new Sweep(server, number, test, { title, runTimeMs, stories, allow: options.allow, endsConnections }).doRuns(jobs, signal);
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
  // What the budget of a suite leaves is told at its end.
  const isPassed = isOfSuite ? report.state !== 'failed' : report.isClean;
  if (throws && !isPassed) throw new SweepError(report);
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

function checkJobs(jobs, orders) {
  if (!Number.isInteger(jobs) || jobs < 1 || jobs > JOBS_MAX) {
    throw new TypeError(`jobs: ${jobs} is not a whole number from 1 to ${JOBS_MAX}`);
  }
  if (orders && jobs > 1) throw new TypeError('jobs: 1 with orders: true, because an order holds the requests of the whole process');
}

/** The runs of a sweep, each in a universe of its own. */
class Sweep {
  #server;
  #api;
  #kept = new KeptConnections();
  #number;
  #test;
  #settings;
  #universes = 0;
  /** The end of the last call of `sweep_next`, which may have to wait until other runs have ended. */
  #asked = Promise.resolve();
  #failed = new AbortController();

  constructor(server, number, test, settings) {
    this.#server = server;
    this.#api = server._api.of(server.name);
    this.#api.kept = this.#kept;
    this.#number = number;
    this.#test = test;
    this.#settings = settings;
  }

  /** Does all runs, so many at a time. Begins none after `signal`. */
  async doRuns(jobs, signal) {
    const unwatch = watch();
    signal?.addEventListener('abort', () => this.#failed.abort(signal.reason));
    try {
      // All end before this does: what has failed must not leave runs behind.
      await Promise.allSettled(Array.from({ length: jobs }, () => this.#work()));
    } finally {
      unwatch();
      this.#kept.destroy();
    }
    const { aborted, reason } = this.#failed.signal;
    if (aborted) throw reason;
  }

  async #work() {
    try {
      while (!this.#failed.signal.aborted && (await this.#doRun()));
    } catch (error) {
      this.#failed.abort(error);
    }
  }

  /** Does the next run. Returns whether there was one. */
  async #doRun() {
    const { title, runTimeMs, stories, allow } = this.#settings;
    const place = await this.#createUniverse();
    // Unlike that of the test, it goes on after a crash.
    const universe = this.#universeOf(place);
    let start;
    let outcome;
    try {
      const next = await this.#next(universe);
      if (next === undefined) return false;
      start = this.#begin(place, next, 1);
      outcome = await start.outcome;
      if (start.crashable?.hasCrashed) {
        await this.#abandon(start);
        start = this.#begin(place, next, 2);
        outcome = await start.outcome;
      }
      const { name, error } = outcome;
      await start.run._note();
      const story = error && (await saveStory(universe, `${title} ${next.points}`.trim(), error, stories));
      const failure = error && { message: messageOf(error, allow), place: placeOf(error), story };
      await universe._api.act('sweep_end', fields({ sweep: this.#number, run: next.run, outcome: name, ...failure }));
    } finally {
      try {
        const { error } = await outcomeOf('the cleanup of the run', () => start?.run._end(), runTimeMs);
        // The outcome of a run that did not pass tells more.
        if (error !== undefined && outcome?.name === 'passed') throw error;
      } finally {
        start?.connections?.end();
        await this.#api.of().act('drop_universe', { name: place.name });
        if (outcome?.name === 'passed') release(start);
        else if (start !== undefined) giveUp(start);
      }
    }
    return true;
  }

  /** Calls the test. Returns the call, which owns what the test creates. */
  #begin(place, next, number) {
    const start = {};
    if (number === 1 && CRASHES.test(next.points)) start.crashable = this.#crashable(place, next);
    if (this.#settings.endsConnections) start.connections = new ConnectionsOfRun(this.#api.port);
    const universe = this.#universeOf(place, start.crashable);
    start.run = new SweepRun(universe, next, number);
    const call = () => runAs(start, () => this.#test(universe, start.run));
    start.outcome = outcomeOf('the run', call, this.#settings.runTimeMs, start.crashable?.crashed).then(async (outcome) => {
      // The test may have ended by what its clients were told in the crash.
      await start.crashable?.check();
      return outcome;
    });
    return start;
  }

  /** Returns what crashes when the fault of this run ends its clients. */
  #crashable(place, next) {
    const control = this.#universeOf(place)._api;
    const hasCrashed = (withinMs) => {
      const body = { sweep: this.#number, run: next.run, within_ms: withinMs };
      // A run that has ended has no such fault any more.
      return control.act('sweep_crashed', body).then((answer) => answer.is_crashed, () => false);
    };
    const crashable = new Crashable(() => hasCrashed(0));
    hasCrashed(this.#settings.runTimeMs).then((is) => is && crashable.crash());
    return crashable;
  }

  /** Ends a start of the test that has crashed, as far as possible. */
  async #abandon(start) {
    const ended = runAs(start, () => start.run._abandon());
    await outcomeOf('the cleanup after the crash', () => ended, ABANDONED_MS);
    giveUp(start);
  }

  async #createUniverse() {
    this.#universes += 1;
    const name = `sweep-${this.#number}-${this.#universes}`;
    const { connect_string: connectString } = await this.#api.act('create_universe', { name });
    return { name, connectString };
  }

  /** Returns a universe, for a start of the test that may crash, or else for one that may not. */
  #universeOf({ name, connectString }, crashable) {
    const universe = this.#server._universe(name, connectString);
    universe._api.kept = this.#kept;
    universe._api.around = async (call) => {
      await crashable?.proceed();
      // A kept connection belongs to no run.
      return runAs(undefined, call);
    };
    return universe;
  }

  /** Prepares a universe for the next run. Returns that, undefined if the sweep is over. */
  #next(universe) {
    // One call after the other: with several, those that wait would keep the universes of runs that may never be.
    const next = this.#asked.then(async () => {
      if (this.#failed.signal.aborted) return undefined;
      // It may wait for the end of a run, which may begin twice.
      const options = { withinMs: 2 * this.#settings.runTimeMs, signal: this.#failed.signal };
      const { run, points, sentence } = await universe._api.act('sweep_next', { sweep: this.#number }, options);
      return run === 0 ? undefined : { run, points, sentence };
    });
    this.#asked = next.catch(() => {});
    return next;
  }
}

/** Says how `use` has ended: it passed, it failed with an error, or it hung. Does not wait after a crash. */
async function outcomeOf(what, use, runTimeMs, crashed) {
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
  const ends = [done, late];
  if (crashed !== undefined) ends.push(crashed.then(() => ({ name: 'crashed' })));
  const outcome = await Promise.race(ends);
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

/** The command that runs the test in this file again. */
function commandOf(file, pattern) {
  let runner = 'node --test';
  let select = '--test-name-pattern=';
  if (process.env.JEST_WORKER_ID !== undefined) [runner, select] = ['npx jest', '-t '];
  if (process.env.VITEST !== undefined) [runner, select] = ['npx vitest run', '-t '];
  // Each of the three reads a pattern. The options of Node stand before the file.
  const selection = pattern === undefined ? '' : ` ${select}'${pattern.replace(/[^\p{L}\p{N} _-]/gu, '.')}'`;
  return `${runner}${selection} ${quoted(path.relative('', file ?? ''))}`;
}

function quoted(word) {
  return /^[\w./@-]*$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

module.exports = { SweepError, sweep, sweepTest, tryTest };
