'use strict';

// The stories of tests that fail on purpose, in another process: with node:test, Jest and Vitest.

const assert = require('node:assert/strict');
const { spawnSync } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const test = require('node:test');

const PATIENCE_MS = 60_000;

/** The arguments of Node that run the tests of a file with this name. */
const RUNNERS = {
  node: (name) => ['--test', '--test-reporter=spec', `--test-name-pattern=/^${name}$/`, inFolder('on-purpose.js')],
  jest: (name, file = 'on-purpose.js') => {
    const config = { rootDir: __dirname, testMatch: [inFolder(file)], testEnvironment: 'node' };
    return [inFolder('node_modules/jest/bin/jest.js'), '--config', JSON.stringify(config), '-t', `^${name}$`];
  },
  vitest: (name) => {
    const where = ['--root', __dirname, 'on-purpose-vitest'];
    return [inFolder('node_modules/vitest/vitest.mjs'), 'run', ...where, '-t', `^${name}$`];
  },
};

function inFolder(file) {
  return path.join(__dirname, file);
}

/** Runs a test. Returns what it printed, the folder of its stories, and whether it passed. */
function run(t, runner, name, environment = {}, ...more) {
  const cwd = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), 'minikeeper-')));
  t.after(() => fs.rmSync(cwd, { recursive: true }));
  // Vitest colours what it prints where `CI` is set, which splits the texts looked for.
  const env = { ...process.env, NO_COLOR: '1', ...environment };
  delete env.FORCE_COLOR;
  if (environment.MINIKEEPER_STORIES === undefined) delete env.MINIKEEPER_STORIES;
  // Otherwise it would report to this process.
  delete env.NODE_TEST_CONTEXT;
  const options = { cwd, env, timeout: PATIENCE_MS };
  const { stdout, stderr, status, error } = spawnSync(process.execPath, RUNNERS[runner](name, ...more), options);
  return { cwd, printed: `${stdout}${stderr}`, passed: status === 0, ended: error === undefined };
}

function filesIn(folder) {
  return fs.existsSync(folder) ? fs.readdirSync(folder).sort() : [];
}

function assertParts(printed, parts) {
  for (const part of parts) assert.ok(printed.includes(part), `${part} is missing in ${printed}`);
}

for (const runner of ['node', 'jest']) {
  test(`failed test prints its story and saves a bundle, ${runner}`, (t) => {
    const { cwd, printed, passed } = run(t, runner, 'printer');
    assert.equal(passed, false);
    const folder = path.join(cwd, 'minikeeper-stories');
    assertParts(printed, [
      'minikeeper: story of on-purpose.js/printer\nserver 127.0.0.1:',
      '\nmutex /locks/printer (curator)\n  held by   session 0x',
      '\n  waits 1   session 0x',
      '\nsessions:\n  0x',
      ' fault 1 (error, op getData, path "/printer/*"): acted 1 time, matched 1\n',
      ' fault 1: error getData /printer/paper\n',
      `\nsaved in ${folder}/on-purpose.js-printer.html\n`,
    ]);
    assert.equal(printed.split('minikeeper: story').length, 2, printed);
    assert.deepEqual(filesIn(folder), ['.gitignore', 'on-purpose.js-printer.html', 'on-purpose.js-printer.json']);
    const page = fs.readFileSync(path.join(folder, 'on-purpose.js-printer.html'), 'utf8');
    assert.ok(page.startsWith('<!doctype html>'));
    const story = JSON.parse(fs.readFileSync(path.join(folder, 'on-purpose.js-printer.json'), 'utf8'));
    assert.match(story.failure, /^AssertionError: Expected values to be strictly equal/);
    assert.equal(story.locks.locks[0].waiters.length, 1);
    assert.equal(story.faults[0].hits, 1);
    assert.equal(story.sessions.length, 2);
  });

  test(`server that is gone does not hide the failure, ${runner}`, (t) => {
    const { cwd, printed, passed } = run(t, runner, 'is gone');
    assert.equal(passed, false);
    assert.match(printed, /no story of 127\.0\.0\.1:\d+: story: no answer/);
    assert.match(printed, /1 !== 2|Expected value to strictly be equal/);
    assert.deepEqual(filesIn(cwd), []);
  });
}

for (const [runner, command] of [['node', /node --test --test-name-pattern='sweeps' \S*\/on-purpose\.js$/m], ['jest', /npx jest -t 'sweeps' \S*\/on-purpose\.js$/m]]) {
  test(`sweep fails with its report, and is repeated by its command, ${runner}`, (t) => {
    const points = 'reply-lost:1:create:1:/orders/order-';
    for (const environment of [{}, { MINIKEEPER_SWEEP_ONLY: points }]) {
      const { cwd, printed, passed } = run(t, runner, 'sweeps', environment);
      assert.equal(passed, false);
      assertParts(printed, [` MINIKEEPER_SWEEP_ONLY='${points}' `, 'on-purpose.js-sweep']);
      assert.match(printed, command);
      assert.match(printed, environment.MINIKEEPER_SWEEP_ONLY ? /: 1 of 1 points tried: 0 passed, 1 failed/ : / 1 failed, 0 hung/);
      // The story of the server's own universe would tell nothing.
      assert.ok(!printed.includes('minikeeper: story'), printed);
      assert.ok(filesIn(path.join(cwd, 'minikeeper-stories')).length >= 4, printed);
    }
  });
}

for (const runner of ['node', 'jest']) {
  test(`run that hangs does not keep the process alive, ${runner}`, (t) => {
    const { printed, passed, ended } = run(t, runner, 'hangs in a sweep');
    assert.ok(ended, `still running after ${PATIENCE_MS} ms: ${printed}`);
    assert.equal(passed, false);
    assertParts(printed, [' 1 hung, ', 'Error: the run did not end within 500 ms']);
  });
}

test('sweep fails with its report in Vitest', (t) => {
  const { cwd, printed, passed } = run(t, 'vitest', 'sweeps');
  assert.equal(passed, false);
  assertParts(printed, ['The test fails without any fault: AssertionError: ']);
  const report = 'on-purpose-vitest.test.mjs-sweeps-sweep.html';
  assertParts(printed, [`report: ${path.join(cwd, 'minikeeper-stories', report)}`]);
  assert.ok(!printed.includes('minikeeper: story'), printed);
});

test('rows of a table of Jest have a server each', (t) => {
  const { printed } = run(t, 'jest', 'row .');
  assertParts(printed, ['✓ row a', '✕ row b', 'minikeeper: story of on-purpose.js/row b\n']);
  assert.equal(printed.split('minikeeper: story').length, 2, printed);
});

for (const page of fs.readdirSync(inFolder('pages')).filter((name) => name.endsWith('.jest.js'))) {
  test(`${page} passes in Jest`, (t) => {
    const { printed, passed } = run(t, 'jest', '.*', {}, path.join('pages', page));
    assert.ok(passed && printed.includes('1 passed, 1 total'), printed);
  });
}

test('story has the file and the whole name of a test of Vitest', (t) => {
  const { cwd, printed, passed } = run(t, 'vitest', 'printer has paper');
  assert.equal(passed, false);
  assertParts(printed, [
    'minikeeper: story of on-purpose-vitest.test.mjs/printer has paper\nserver 127.0.0.1:',
    ' seed ',
    `\nsaved in ${cwd}/minikeeper-stories/on-purpose-vitest.test.mjs-printer-has-paper-`,
  ]);
  assert.equal(printed.split('minikeeper: story').length, 2, printed);
});

for (const runner of Object.keys(RUNNERS)) {
  test(`story is told when a test reaches its time limit, ${runner}`, (t) => {
    const { cwd, printed, passed } = run(t, runner, 'never ends');
    assert.equal(passed, false);
    assert.match(printed, /minikeeper: story of on-purpose\S*js\/never ends\n/);
    assert.equal(filesIn(path.join(cwd, 'minikeeper-stories')).length, 3, printed);
  });
}

// A test passed though its fault had not acted.
for (const runner of Object.keys(RUNNERS)) {
  test(`fault that has never acted fails the test, ${runner}`, (t) => {
    const { cwd, printed, passed } = run(t, runner, 'injects in vain');
    assert.equal(passed, false);
    assertParts(printed, [
      'fault 1 (lose-reply, op create, path "/jbo"): ended and never acted; messages that matched it: 0; check its op, path',
      'fault 1 (cut, path "/orders"): ended and never acted; messages that matched it: 0; check its op, path',
      // The story was told while the server still had it.
      ' fault 1 (lose-reply, op create, path "/jbo"): acted 0 times, matched 0\n',
    ]);
    assert.equal(printed.split('minikeeper: story').length, 2, printed);
    assert.equal(filesIn(path.join(cwd, 'minikeeper-stories')).length, 3, printed);
  });
}

test('story is told by a hook of node:test', (t) => {
  // Since Node 20.12.
  if (!('passed' in t)) return t.skip('the contexts of this Node do not say whether a test has passed');
  const { cwd, printed } = run(t, 'node', 'by a hook', { MINIKEEPER_STORIES: 'here' });
  assert.ok(printed.includes('minikeeper: story of on-purpose.js/by a hook\n'), printed);
  assert.equal(filesIn(path.join(cwd, 'here')).length, 3, printed);
  assert.ok(run(t, 'node', 'by a hook', { MINIKEEPER_STORIES: __filename }).printed.includes('\nnot saved: '));
});

test('story is told by a hook of Vitest', (t) => {
  const { printed } = run(t, 'vitest', 'hook .*');
  assertParts(printed, ['minikeeper: story of on-purpose-vitest.test.mjs/hook fails\n', '\nError: on purpose']);
  assert.equal(printed.split('minikeeper: story').length, 2, printed);
});

test('nothing is printed or saved unless a test fails', (t) => {
  const passing = { node: ['passes', 'skips', 'passes with a hook'], jest: ['passes'], vitest: ['passes'] };
  for (const [runner, names] of Object.entries(passing)) {
    for (const name of names) {
      const { cwd, printed, passed } = run(t, runner, name);
      assert.ok(passed && !printed.includes('minikeeper: '), printed);
      assert.deepEqual(filesIn(cwd), []);
    }
  }
});
