'use strict';

// Sweeps of tests with planted bugs, and of sound ones, with node-zookeeper-client as the client.

const assert = require('node:assert/strict');
const { once } = require('node:events');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const test = require('node:test');
const { promisify } = require('node:util');
const zookeeper = require('node-zookeeper-client');
const { SweepError, startServer, sweep } = require('minikeeper');

const ATTEMPTS_MAX = 5;
/** Long enough for a run that does not hang, on a machine with load. */
const HANGS_AFTER_MS = 3_000;
const { PERSISTENT, PERSISTENT_SEQUENTIAL } = zookeeper.CreateMode;

/** Starts a server, and returns it with a folder for stories. */
async function setUp(t) {
  const server = await startServer();
  t.after(() => server.stop());
  const stories = fs.mkdtempSync(path.join(os.tmpdir(), 'minikeeper-'));
  t.after(() => fs.rmSync(stories, { recursive: true }));
  return { server, stories };
}

async function connect(universe, run) {
  const client = zookeeper.createClient(universe.connectString, { spinDelay: 10, retries: 0 });
  run.after(() => client.close());
  const connected = once(client, 'connected');
  client.connect();
  await connected;
  return (name, ...values) => promisify(client[name].bind(client))(...values);
}

/** Tries with a new client each time. */
async function retried(universe, run, use) {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await use(await connect(universe, run));
    } catch (error) {
      if (!['CONNECTION_LOSS', 'SESSION_EXPIRED'].includes(error.name) || attempt === ATTEMPTS_MAX) throw error;
    }
  }
}

/** Creates a znode with a client that connects again. */
async function withOneClient(universe, run, ...given) {
  const client = zookeeper.createClient(universe.connectString, { spinDelay: 10, retries: 0 });
  run.after(() => client.close());
  let connected = once(client, 'connected');
  client.connect();
  for (let isCreated = false; !isCreated; ) {
    await connected;
    connected = once(client, 'connected');
    isCreated = await promisify(client.create.bind(client))(...given).catch((error) => {
      if (error.name !== 'CONNECTION_LOSS') throw error;
    });
  }
}

/** A test of what places an order. */
function placesOneOrder(place) {
  return async (universe, run) => {
    await universe.seed({ '/orders': '' });
    await retried(universe, run, place);
    assert.equal((await universe.children('/orders')).length, 1);
  };
}

/** Planted: after a lost reply, a second attempt places a second order. */
const twice = placesOneOrder((call) => call('create', '/orders/order-', null, PERSISTENT_SEQUENTIAL));

const once42 = placesOneOrder(async (call) => {
  try {
    await call('create', '/orders/42', null, PERSISTENT);
  } catch (error) {
    if (error.name !== 'NODE_EXISTS') throw error;
  }
});

/** The points where a create is carried out and its reply is lost. */
const LOST = ['reply-lost', 'server-restarted'].map((fault) => `${fault}:1:create:1:/orders/order-`);

test('planted bug is found, with its points, stories and page', async (t) => {
  const { server, stories } = await setUp(t);
  const faults = ['reply-lost', 'request-lost', 'connection-cut', 'session-expired', 'server-restarted'];
  const options = { title: 'orders', stories, faults, all: true };
  const error = await sweep(server, twice, options).then(assert.fail, (reason) => reason);
  assert.ok(error instanceof SweepError);
  const { report } = error;
  assert.deepEqual(report.failures.sort(), LOST);
  assert.deepEqual([report.isClean, report.failed, report.hung], [false, LOST.length, 0]);
  assert.equal(report.tried, report.passed + report.failed);
  assert.equal(error.message, report.text);
  assert.ok(report.text.startsWith(`minikeeper sweep: ${report.summary}\n`), report.text);
  for (const part of [
    'The test fails: AssertionError: Expected values to be strictly equal:\n\n2 !== 1\n',
    'the 1st create of /orders/order- by client 1',
    ...LOST,
    `\nreport: ${path.join(stories, 'orders-sweep.html')}\n`,
  ]) {
    assert.ok(report.text.includes(part), `${part} is missing in ${report.text}`);
  }
  // Both have one cause, of which one point is shown.
  const shownPoints = LOST.filter((points) => report.text.includes(`MINIKEEPER_SWEEP_ONLY='${points}' node --test `));
  assert.equal(shownPoints.length, 1);
  assert.equal(fs.readFileSync(report.page, 'utf8'), report.html);
  const shown = JSON.parse(/ id="content">(.*?)<\/script>/s.exec(report.html)[1]).sweep;
  const pages = shown.groups.flatMap((group) => group.failures.map((failure) => failure.story));
  assert.equal(pages.length, LOST.length);
  for (const name of pages) assert.match(fs.readFileSync(path.join(stories, name), 'utf8'), /2 !== 1/);
  assert.deepEqual(await server.universes(), []);
});

test('failures with one message at two places of the test are two groups', async (t) => {
  const { server, stories } = await setUp(t);
  const fails = (isOnePlace) => async (universe, run) => {
    await once42(universe, run);
    if (run.fault === 'reply-lost' && !isOnePlace) throw new Error('on purpose');
    if (run.fault !== undefined) throw new Error('on purpose');
  };
  for (const isOnePlace of [true, false]) {
    const only = ['reply-lost', 'server-restarted'].map((fault) => ({ fault, op: 'connect', reason: 'handshakes fail alike' }));
    const options = { stories, throws: false, faults: ['reply-lost', 'server-restarted'], all: true, leaveOut: only };
    const report = await sweep(server, fails(isOnePlace), options);
    assert.equal(report.failed, 2, report.text);
    assert.equal(report.text.split('node --test ').length - 1, isOnePlace ? 1 : 2, report.text);
  }
});

test('MINIKEEPER_SWEEP_ONLY repeats a failure', async (t) => {
  const { server, stories } = await setUp(t);
  process.env.MINIKEEPER_SWEEP_ONLY = LOST[0];
  t.after(() => delete process.env.MINIKEEPER_SWEEP_ONLY);
  const tried = [];
  const options = { stories, throws: false, only: 'request-lost:1:create:1:/orders/order-' };
  const report = await sweep(server, (universe, run) => {
    tried.push(run.points);
    return twice(universe, run);
  }, options);
  // The failure twice, and else without faults.
  assert.deepEqual(tried.filter((points) => points !== ''), [LOST[0], LOST[0]]);
  assert.deepEqual(report.failures, [LOST[0]]);
  assert.equal(report.runs, tried.length);
  process.env.MINIKEEPER_SWEEP_ONLY = 'reply-lost:1:create:1:/elsewhere';
  const elsewhere = await sweep(server, twice, options);
  assert.deepEqual([elsewhere.isClean, elsewhere.state, elsewhere.notReached], [false, 'incomplete', 1]);
  assert.match(elsewhere.summary, /^incomplete\b.* 1 not reached/);
});

test('sound test passes a sweep, and saves nothing', async (t) => {
  const { server, stories } = await setUp(t);
  const runs = [];
  const report = await sweep(server, (universe, run) => {
    runs.push(run);
    return once42(universe, run);
  }, { stories, all: true });
  assert.deepEqual([report.isClean, report.failed, report.hung, report.failures], [true, 0, 0, []]);
  assert.equal(report.tried, report.points);
  assert.ok(report.passed > 0);
  assert.deepEqual(runs.map(({ number }) => number), Array.from({ length: report.runs }, (_, index) => index + 1));
  assert.ok(runs.some(({ sentence }) => sentence === 'the reply to the 1st create of /orders/42 by client 1 was lost'));
  assert.equal('page' in report, false);
  assert.deepEqual(fs.readdirSync(stories), []);
});

test('options choose what is tried', async (t) => {
  const { server } = await setUp(t);
  const triedWith = async (options) => {
    const tried = [];
    await sweep(server, (universe, run) => {
      tried.push(run.points);
      return once42(universe, run);
    }, options);
    return tried.filter((points) => points !== '');
  };
  const one = await triedWith({ faults: ['reply-lost', 'request-lost'], all: true, seed: 1 });
  // As `withServer` has them.
  const first = [];
  await sweep(server, { faults: ['reply-lost'] }, (universe, run) => {
    first.push(run.points);
    return once42(universe, run);
  });
  assert.ok(first.length > 1 && first.every((points) => /^(reply-lost:[^+]+)?$/.test(points)), first);
  assert.ok(one.includes('request-lost:1:create:1:/orders/42'), one);
  assert.ok(one.every((points) => /^re(ply|quest)-lost:[^+]+$/.test(points)), one);
  const allowUntried = 10_000;
  assert.equal((await triedWith({ runs: 4, allowUntried })).length, 2);
  // Whether the client connects again before a run ends is a matter of time.
  const pairs = { depth: 2, runs: 60, allowUntried, allowUnreached: 10 };
  assert.ok((await triedWith(pairs)).some((points) => points.includes('+')));
  await assert.rejects(triedWith({ faults: ['reply-eaten'] }), { status: 400, message: /reply-eaten.*reply-lost/ });
  await assert.rejects(triedWith({ maxRuns: 1 }), { name: 'TypeError', message: /^sweep: unknown option "maxRuns"; did you mean "runs"\?/ });
  assert.deepEqual(await server.universes(), []);
});

test('sweep that does not try every point is incomplete, unless the test allows it', async (t) => {
  const { server, stories } = await setUp(t);
  const faults = ['request-lost', 'reply-lost'];
  const incomplete = async (use, options) => {
    const error = await sweep(server, use, { stories, faults, ...options }).then(assert.fail, (reason) => reason);
    assert.ok(error instanceof SweepError, error);
    assert.match(error.message, /^minikeeper sweep: incomplete\b/);
    const { isClean, state, reasons } = error.report;
    assert.deepEqual([isClean, state, reasons.length > 0], [false, 'incomplete', true]);
    return error.report;
  };
  // They were green.
  for (const budget of [{ runs: 3 }, { timeMs: 0 }]) {
    const { left, tried } = await incomplete(once42, budget);
    assert.ok(left > 0);
    await incomplete(once42, { ...budget, allowUntried: left - 1 });
    if (tried > 0) assert.ok((await sweep(server, once42, { faults, ...budget, allowUntried: left })).isClean);
  }
  await incomplete(() => {});
  await incomplete(once42, { only: 'reply-lost:1:create:1:/elsewhere', allowUnreached: 1 });
  // Only the runs without faults send this request.
  const twoRequests = async (universe, run) => {
    await once42(universe, run);
    if (run.points === '') await (await connect(universe, run))('exists', '/orders');
  };
  const { notReached, unreached } = await incomplete(twoRequests);
  assert.ok(notReached > 0 && unreached.length === notReached);
  assert.ok((await sweep(server, twoRequests, { faults, allowUnreached: notReached })).isClean);
});

test('several runs are done at a time, each with its universe, and find the same', async (t) => {
  const { server, stories } = await setUp(t);
  const faults = ['reply-lost', 'request-lost', 'connection-cut', 'session-expired', 'server-restarted'];
  const begun = [];
  let meet;
  const met = new Promise((resolve) => {
    meet = resolve;
  });
  const report = await sweep(server, async (universe, run) => {
    begun.push({ name: universe.name, ...run });
    // No run with a fault ends before four of them have begun.
    if (run.points !== '' && begun.filter(({ points }) => points !== '').length === 4) meet();
    if (run.points !== '') await met;
    await twice(universe, run);
  }, { stories, faults, all: true, throws: false, jobs: 4 });
  assert.deepEqual([...new Set(report.failures)].sort(), LOST);
  assert.deepEqual([report.failed, report.hung, report.tried], [LOST.length, 0, report.points]);
  assert.equal(new Set(begun.map(({ name }) => name)).size, report.runs);
  assert.deepEqual(begun.map(({ number }) => number).sort((a, b) => a - b), Array.from({ length: report.runs }, (_, at) => at + 1));
  assert.deepEqual(await server.universes(), []);
  for (const jobs of [0, 1.5, '4', 257]) {
    await assert.rejects(sweep(server, twice, { jobs }), { name: 'TypeError', message: /^jobs: .* is not a whole number from 1 to 256$/ });
  }
  await assert.rejects(sweep(server, twice, { jobs: 2, orders: true }), { name: 'TypeError', message: /^jobs: 1 with orders: true/ });
});

test('error of one of several runs ends the sweep, after the others', async (t) => {
  const { server, stories } = await setUp(t);
  const ended = [];
  const using = async (universe, run) => {
    await once42(universe, run);
    if (run.points !== '') run.after(() => Promise.reject(new Error('not closed')));
    run.after(() => ended.push(run.number));
  };
  await assert.rejects(sweep(server, using, { stories, jobs: 4 }), /^Error: not closed$/);
  assert.ok(ended.length >= 3);
  assert.deepEqual(await server.universes(), []);
});

/** A test of a process that takes a job, and writes its result. */
function takesJob(isSound) {
  return async (universe, run) => {
    if (run.start === 1) await universe.seed({ '/job': '' });
    const call = await connect(universe, run);
    const isNew = await call('create', '/job/taken').then(() => true, (error) => {
      if (error.name !== 'NODE_EXISTS') throw error;
      return false;
    });
    // Planted: it takes its own znode of before for that of another process.
    if (isNew || isSound) {
      await call('create', '/job/result').catch((error) => {
        if (error.name !== 'NODE_EXISTS') throw error;
      });
    }
    assert.deepEqual((await universe.children('/job')).sort(), ['result', 'taken']);
  };
}

test('run in which the client dies begins again in its universe', async (t) => {
  const { server, stories } = await setUp(t);
  for (const jobs of [1, 4]) {
    const starts = [];
    const options = { stories, faults: ['client-crash'], all: true, throws: false, jobs };
    const counted = (use) => (universe, run) => {
      starts.push({ ...run, universe: universe.name });
      return use(universe, run);
    };
    const planted = await sweep(server, counted(takesJob(false)), options);
    assert.deepEqual([...new Set(planted.failures)], ['client-crash:1:create:1:/job/taken'], planted.text);
    assert.match(planted.text, /AssertionError/);
    starts.length = 0;
    const sound = await sweep(server, counted(takesJob(true)), options);
    assert.deepEqual([sound.state, sound.tried], ['clean', sound.points], sound.text);
    assert.ok(sound.points >= 2);
    starts.sort((one, other) => one.number - other.number || one.start - other.start);
    const second = starts.filter(({ start }) => start === 2);
    assert.deepEqual(
      starts.filter(({ fault, start }) => fault === 'client-crash' && start === 1),
      second.map((run) => ({ ...run, start: 1 })),
    );
    assert.equal(second.length, sound.tried);
    assert.ok(starts.filter(({ points }) => points === '').every(({ fault, start }) => fault === undefined && start === 1));
  }
  assert.deepEqual(await server.universes(), []);
});

test('client that has died does nothing any more, and its cleanup does not count', async (t) => {
  const { server, stories } = await setUp(t);
  const cleaned = [];
  const dead = [];
  await sweep(server, async (universe, run) => {
    const isFirst = run.fault !== undefined && run.start === 1;
    if (run.start === 1) await universe.seed({ '/orders': '' });
    run.after(() => cleaned.push(run.start));
    if (isFirst) {
      run.after(() => universe.create('/cleanup'));
      run.after(() => Promise.reject(new Error('not counted')));
    }
    await retried(universe, run, async (call) => {
      await call('create', '/orders/42').catch(async (error) => {
        if (error.name === 'NODE_EXISTS') return;
        // What a process that is dead would not do.
        if (isFirst) {
          const ghosts = [universe.create('/verb'), connect(universe, run).then((again) => again('create', '/client'))];
          dead.push(...ghosts);
          await Promise.any(ghosts);
        }
        throw error;
      });
    });
    assert.deepEqual(await universe.children('/'), ['zookeeper', 'orders']);
    assert.deepEqual(await universe.children('/orders'), ['42']);
  }, { stories, faults: ['client-crash'], all: true });
  assert.ok(dead.length >= 2);
  assert.ok(cleaned.filter((start) => start === 2).length >= dead.length / 2);
  assert.deepEqual(await server.universes(), []);
});

test('failures that the test expects are allowed, and points are left out', async (t) => {
  const { server, stories } = await setUp(t);
  const faults = ['reply-lost', 'request-lost', 'server-restarted'];
  const report = (rules) => sweep(server, twice, { stories, throws: false, all: true, faults, ...rules });
  const leaveOut = [{ fault: 'server-restarted', reason: 'it is like a lost reply' }];
  const place = { fault: 'reply-lost', client: 1, op: 'create', path: '/orders/*', reason: 'orders are told apart later' };
  const own = [assert.AssertionError, Error, /2 !== 1\s*$/, /^assertionerror:/gi, 'AssertionError', '2 !== 1'];
  for (const raises of own) {
    const allowed = await report({ leaveOut, allow: [{ ...place, raises }] });
    assert.deepEqual([allowed.state, allowed.allowed, allowed.failed], ['clean', 1, 0], allowed.text);
    assert.match(allowed.text, /Allowed: reply-lost:1:create:\*:\/orders\/\* raises .* because orders are told apart later: 1 point\b/);
    assert.match(allowed.text, /Left out: server-restarted because it is like a lost reply: \d+ points?\b/);
  }
  for (const other of [{ raises: TypeError }, { raises: /3 !== 1/ }, { raises: 'TypeError' }, { raises: Error, path: '/others/*' }]) {
    const failed = await report({ leaveOut, allow: [{ ...place, ...other }] });
    assert.deepEqual([failed.allowed, failed.failures], [0, [LOST[0]]], failed.text);
  }
  const one = await report({ leaveOut: [{ ...place, fault: 'reply-lost' }] });
  assert.deepEqual(one.failures, [LOST[1]], one.text);
});

test('rules that the server could not read are refused', async (t) => {
  const { server } = await setUp(t);
  const rule = { fault: 'reply-lost', raises: 'a', reason: 'b' };
  for (const [given, message] of [
    [{ allow: rule }, /^allow: not an array/],
    [{ allow: [null] }, /^allow\[0\]: the options must be an object/],
    [{ allow: [rule, { ...rule, reason: ' ' }] }, /^allow\[1\]: the reason is missing/],
    [{ leaveOut: [{ fault: 'reply-lost' }] }, /^leaveOut\[0\]: the reason is missing/],
    [{ leaveOut: [rule] }, /^leaveOut\[0\]: unknown option "raises"/],
    [{ leaveOut: [{ reason: 'b' }] }, /^leaveOut\[0\]: the fault is missing/],
    [{ allow: [{ ...rule, raises: undefined }] }, /^allow\[0\]: raises must be/],
    [{ allow: [{ ...rule, raises: Date }] }, /^allow\[0\]: raises must be/],
    [{ allow: [{ ...rule, raises: '' }] }, /^allow\[0\]: raises must be/],
    [{ allow: [{ ...rule, raises: 'a\nb' }] }, /^allow\[0\].raises: "a\\nb" must not contain/],
    [{ allow: [{ ...rule, reason: 'b because c' }] }, /^allow\[0\].reason: .* must not contain " because "/],
    [{ allow: [{ ...rule, path: '/a raises b' }] }, /^allow\[0\]: .* must not contain " raises "/],
  ]) {
    await assert.rejects(sweep(server, once42, given), { name: 'TypeError', message });
  }
  await assert.rejects(sweep(server, once42, { leaveOut: [{ fault: 'reply-eaten', reason: 'b' }] }), { status: 400, message: /reply-eaten/ });
});

test('sweep with `first` ends at the first failure', async (t) => {
  const { server, stories } = await setUp(t);
  const options = { stories, throws: false, faults: ['reply-lost', 'server-restarted'], all: true };
  const whole = await sweep(server, twice, options);
  const first = await sweep(server, twice, { ...options, first: true });
  assert.deepEqual([whole.failed, first.failed], [2, 1]);
  assert.ok(first.runs < whole.runs && first.left > 0, first.text);
});

test('sweep with `compare` finds what a test does not look at', async (t) => {
  const { server, stories } = await setUp(t);
  const blind = async (universe, run) => {
    await universe.seed({ '/orders': '' });
    await withOneClient(universe, run, '/orders/order-', null, PERSISTENT_SEQUENTIAL);
  };
  const options = { stories, throws: false, faults: ['reply-lost', 'request-lost'], all: true };
  assert.equal((await sweep(server, blind, options)).state, 'clean');
  const compared = await sweep(server, blind, { ...options, compare: true });
  assert.deepEqual(compared.failures, [LOST[0]], compared.text);
});

test('goal that no run reaches makes a sweep incomplete', async (t) => {
  const { server, stories } = await setUp(t);
  const options = { stories, throws: false, faults: ['reply-lost', 'client-crash'] };
  const noting = (goals) => async (universe, run) => {
    // Neither is awaited.
    for (const [goal, holds] of goals(run)) run.sometimes(goal, holds);
    await once42(universe, run);
  };
  const reached = await sweep(server, noting((run) => [['a reply was lost', run.fault === 'reply-lost'], ['it ran']]), options);
  assert.equal(reached.state, 'clean', reached.text);
  const begun = await sweep(server, noting((run) => [['it began again', run.start === 2]]), options);
  assert.equal(begun.state, 'clean', begun.text);
  const missed = await sweep(server, noting(() => [['a pig flew', false]]), options);
  assert.deepEqual([missed.state, missed.failed], ['incomplete', 0], missed.text);
  assert.match(missed.reasons.join(), /a pig flew/);
  await assert.rejects(sweep(server, noting(() => [['']]), { ...options, throws: true }), { name: 'SweepError', message: /the goal must be a text/ });
  // The server refuses it, though the test does not wait.
  await assert.rejects(sweep(server, noting(() => [['x'.repeat(201)]]), options), { name: 'MinikeeperError', message: /200 characters/ });
  assert.deepEqual(await server.universes(), []);
});

test('options say what outages and rollbacks are', async (t) => {
  const { server, stories } = await setUp(t);
  const options = { stories, throws: false };
  const outage = { ...options, only: 'outage:1:create:1:/orders/42', runTimeMs: HANGS_AFTER_MS };
  const patient = async (universe, run) => {
    await universe.seed({ '/orders': '' });
    await withOneClient(universe, run, '/orders/42');
  };
  const short = await sweep(server, patient, { ...outage, outageMs: 20 });
  assert.equal(short.state, 'clean', short.text);
  const endless = await sweep(server, patient, { ...outage, outageMs: 0 });
  assert.deepEqual([endless.hung, endless.failures], [1, [outage.only]], endless.text);
  const two = async (universe, run) => {
    const call = await connect(universe, run);
    await call('create', '/a');
    await call('create', '/b').catch(() => {});
    assert.equal((await universe.children('/')).join(), 'zookeeper,a,b');
  };
  for (const [rollback, children] of [[1, 'zookeeper,a'], [2, 'zookeeper']]) {
    const only = 'rollback:1:create:1:/b';
    const report = await sweep(server, two, { ...options, rollback, only });
    assert.deepEqual(report.failures, [only], report.text);
    assert.ok(report.text.includes(`+ '${children}'\n`), report.text);
  }
  const tried = new Set();
  await sweep(server, (universe, run) => {
    tried.add(run.fault);
    return once42(universe, run);
  }, { ...options, faults: 'all', all: true, outageMs: 20, jobs: 4 });
  for (const fault of ['reply-lost', 'client-crash', 'outage', 'client-outage', 'rollback']) assert.ok(tried.has(fault), fault);
});

test('run that hangs is found and cleaned up, and does not stop the sweep', async (t) => {
  const { server, stories } = await setUp(t);
  const hang = 'request-lost:1:create:1:/orders/42';
  let cleaned = 0;
  let late;
  const report = await sweep(server, async (universe, run) => {
    await universe.seed({ '/orders': '' });
    const call = await connect(universe, run);
    run.after(() => {
      cleaned += 1;
    });
    late = run;
    // Planted: it waits for an order that no one has placed.
    await call('create', '/orders/42', null, PERSISTENT).catch(() => {});
    while (!(await universe.children('/orders')).includes('42')) await once(process, 'never');
  }, { stories, throws: false, runTimeMs: HANGS_AFTER_MS, faults: ['request-lost', 'reply-lost'], only: hang });
  assert.deepEqual([report.hung, report.failed, report.failures], [1, 0, [hang]]);
  assert.match(report.text, /The test hangs: Error: the run did not end within 3000 ms/);
  assert.equal(cleaned, report.runs);
  await new Promise((resolve) => {
    late.after(resolve);
  });
  assert.deepEqual(await server.universes(), []);
});

test('cleanup that hangs ends the sweep', async (t) => {
  const { server, stories } = await setUp(t);
  const using = (_universe, run) => run.after(() => new Promise(() => {}));
  await assert.rejects(sweep(server, using, { stories, runTimeMs: 100 }), /^Error: the cleanup of the run did not end within 100 ms$/);
  assert.deepEqual(await server.universes(), []);
});

test('sweeps with one title have reports and stories of their own', async (t) => {
  const { server, stories } = await setUp(t);
  const fails = (message) => () => {
    throw new Error(message);
  };
  const reports = [];
  for (const message of ['one', 'two']) {
    reports.push(await sweep(server, fails(message), { title: 'same', stories, throws: false }));
  }
  assert.deepEqual(reports.map(({ page }) => path.basename(page)), ['same-sweep.html', 'same-2-bd9191c9-sweep.html']);
  for (const [place, message] of ['one', 'two'].entries()) {
    assert.ok(fs.readFileSync(reports[place].page, 'utf8').includes(`Error: ${message}`));
    const [, story] = /  story: (.+)/.exec(reports[place].text);
    assert.match(fs.readFileSync(story, 'utf8'), new RegExp(`Error: ${message}`));
  }
});

test('test that fails without faults ends the sweep', async (t) => {
  const { server, stories } = await setUp(t);
  const always = () => {
    throw new Error('on purpose');
  };
  await assert.rejects(sweep(server, always, { stories }), /The test fails without any fault: Error: on purpose/);
  const report = await sweep(server, always, { stories: 'off', throws: false });
  assert.deepEqual([report.runs, report.isClean, report.page], [1, false, undefined]);
});

test('cleanup that fails after a run that passed ends the sweep', async (t) => {
  const { server, stories } = await setUp(t);
  const ended = [];
  const using = (universe, run) => {
    run.after(() => ended.push('first'));
    run.after(() => Promise.reject(new Error('not closed')));
    run.after(() => ended.push('last'));
  };
  await assert.rejects(sweep(server, using, { stories }), /^Error: not closed$/);
  assert.deepEqual(ended, ['last', 'first']);
  assert.deepEqual(await server.universes(), []);
});

/** Two clients look whether a znode is there, and then each creates it. */
function race(isSound) {
  return async (universe, run) => {
    await universe.seed({ '/seen': '' });
    const calls = [await connect(universe, run), await connect(universe, run)];
    const creates = calls.map(async (call) => {
      if (await call('exists', '/a')) return;
      try {
        await call('create', '/a');
      } catch (error) {
        if (!isSound || error.name !== 'NODE_EXISTS') throw error;
      }
    });
    // A request of the test itself does not wait.
    assert.deepEqual(await universe.children('/seen'), []);
    await Promise.all(creates);
  };
}

test('sweep of orders finds a race, and repeats the order that shows it', async (t) => {
  const { server, stories } = await setUp(t);
  const options = { stories, throws: false, orders: true };
  const report = await sweep(server, race(false), options);
  assert.equal(report.isClean, false);
  assert.ok(report.failed > 0 && report.passed > 0 && report.hung === 0, report.text);
  assert.match(report.text, /orders of 2 clients tried, .*, all orders: .* 0 not followed;/);
  const [only] = report.failures;
  assert.match(only, /^order:/);
  assert.ok(report.text.includes(`MINIKEEPER_SWEEP_ONLY='${only}' node --test `), report.text);
  const again = await sweep(server, race(false), { ...options, only });
  assert.deepEqual([again.tried, again.failed, again.failures], [1, 1, [only]], again.text);
  assert.deepEqual(await server.universes(), []);
});

test('sweep of orders finds nothing in a repaired race', async (t) => {
  const { server, stories } = await setUp(t);
  const report = await sweep(server, race(true), { stories, orders: true });
  assert.ok(report.isClean && report.passed === report.tried && report.tried > 2, report.text);
  await assert.rejects(sweep(server, race(true), { clients: 2 }), { name: 'TypeError', message: /^clients: only with orders: true/ });
});
