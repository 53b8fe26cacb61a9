'use strict';

// Runs a test once for every fault at every place where it can happen. The server decides what each run tries.

const path = require('node:path');

const { fileOf, nameOf, titleOf } = require('./runners.js');
const { failureOf, save, storyOf } = require('./story.js');
const { camelCased } = require('./values.js');

const VARIABLE = 'MINIKEEPER_SWEEP_ONLY';

/** A sweep has found something. The message is its report. */
class SweepError extends Error {
  constructor(report) {
    super(report.text);
    this.name = 'SweepError';
    this.report = report;
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

async function sweep(server, test, options = {}) {
  // While the stack still has the caller.
  const repeat = repeatCommand();
  const { title = titleOf(), runTimeMs = 60_000, throws = true, stories, depth, seed, faults, ...others } = options;
  const number = await server.sweepStart(depth, seed, {
    ...others,
    faults: Array.isArray(faults) ? faults.join(',') : faults,
    only: process.env[VARIABLE] || others.only,
  });
  for (let count = 1; await doRun(server, number, count, { test, title, runTimeMs, stories }); count += 1);
  const report = camelCased(await server._api.read('sweep_report', { sweep: number, title, repeat }));
  if (!report.isClean) {
    const name = `${title.replace(/[^\w.]+/g, '-')}-sweep.html`;
    try {
      const paths = save({ [name]: report.html }, stories);
      if (paths !== undefined) {
        [report.page] = paths;
        report.text += `\nreport: ${report.page}\n`;
      }
    } catch (error) {
      report.text += `\nreport not saved: ${error.message}\n`;
    }
  }
  if (throws && !report.isClean) throw new SweepError(report);
  return report;
}

/** Does the next run of a sweep. Returns whether there was one. */
async function doRun(server, number, count, { test, title, runTimeMs, stories }) {
  const universe = await server.createUniverse(`sweep-${number}-${count}`);
  let run;
  let outcome;
  try {
    const next = await universe.sweepNext(number);
    if (next.run === 0) return false;
    run = new SweepRun(next);
    outcome = await outcomeOf(() => test(universe, run), runTimeMs);
    const story = outcome.error && (await saveStory(universe, `${title} ${run.points}`.trim(), outcome.error, stories));
    const { error } = outcome;
    await universe.sweepEnd(number, { outcome: outcome.name, message: error && failureOf(error), story });
  } finally {
    try {
      await run?._end();
    } catch (error) {
      // The outcome of a run that did not pass tells more.
      if (outcome?.name === 'passed') throw error;
    } finally {
      await universe.dropUniverse();
    }
  }
  return true;
}

async function outcomeOf(test, runTimeMs) {
  let timer;
  const late = new Promise((resolve) => {
    const error = new Error(`the run did not end within ${runTimeMs} ms`);
    timer = setTimeout(resolve, runTimeMs, { name: 'hung', error });
  });
  const done = (async () => {
    try {
      await test();
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
    const { fileName, html, json } = await storyOf(universe, title, error);
    return save({ [`${fileName}.html`]: html, [`${fileName}.json`]: json }, stories)?.[0];
  } catch (reason) {
    process.stderr.write(`no story of ${universe.connectString}: ${reason.message}\n`);
    return undefined;
  }
}

/** The command that does a run again, with {} in place of its points. */
function repeatCommand() {
  const file = path.relative('', fileOf() ?? '');
  let runner = 'node --test';
  if (process.env.JEST_WORKER_ID !== undefined) runner = 'npx jest';
  if (process.env.VITEST !== undefined) runner = 'npx vitest run';
  // A pattern of both.
  const name = nameOf()?.replace(/[^\p{L}\p{N} _-]/gu, '.');
  return `${VARIABLE}='{}' ${runner} ${quoted(file)}${name === undefined ? '' : ` -t '${name}'`}`;
}

function quoted(word) {
  return /^[\w./@-]*$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

module.exports = { SweepError, sweep };
