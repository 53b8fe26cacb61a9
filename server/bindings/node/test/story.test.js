'use strict';

// The stories of tests that fail on purpose, in another process.

const assert = require('node:assert/strict');
const { spawnSync } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const test = require('node:test');

const PATIENCE_MS = 60_000;

/** Runs a test. Returns what it printed, the folder of its stories, and whether it passed. */
function run(t, name, environment = {}) {
  const cwd = fs.mkdtempSync(path.join(os.tmpdir(), 'minikeeper-'));
  t.after(() => fs.rmSync(cwd, { recursive: true }));
  const env = { ...process.env, ...environment };
  if (environment.MINIKEEPER_STORIES === undefined) delete env.MINIKEEPER_STORIES;
  // Otherwise it would report to this process.
  delete env.NODE_TEST_CONTEXT;
  const file = path.join(__dirname, 'on-purpose.js');
  const options = ['--test', '--test-reporter=spec', `--test-name-pattern=/^${name}$/`, file];
  const { stdout, stderr, status } = spawnSync(process.execPath, options, { cwd, env, timeout: PATIENCE_MS });
  return { cwd, printed: `${stdout}${stderr}`, passed: status === 0 };
}

function filesIn(folder) {
  return fs.existsSync(folder) ? fs.readdirSync(folder).sort() : [];
}

test('failed test prints its story and saves a bundle', (t) => {
  const { cwd, printed, passed } = run(t, 'printer');
  assert.equal(passed, false);
  const folder = path.join(fs.realpathSync(cwd), 'minikeeper-stories');
  for (const part of [
    'minikeeper: story of on-purpose.js/printer\nserver 127.0.0.1:',
    '\nmutex /locks/printer (curator)\n  held by   session 0x',
    '\n  waits 1   session 0x',
    '\nsessions:\n  0x',
    ' fault 1 (error, op getData, path "/printer/*"): acted 1 time, matched 1\n',
    ' fault 1: error getData /printer/paper\n',
    `\nsaved in ${folder}/on-purpose.js-printer.html\n`,
  ]) {
    assert.ok(printed.includes(part), `${part} is missing in ${printed}`);
  }
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

test('story is told by a hook', (t) => {
  const { cwd, printed } = run(t, 'by a hook', { MINIKEEPER_STORIES: 'here' });
  assert.ok(printed.includes('minikeeper: story of on-purpose.js/by a hook\n'), printed);
  assert.equal(filesIn(path.join(cwd, 'here')).length, 3, printed);
  assert.ok(run(t, 'by a hook', { MINIKEEPER_STORIES: __filename }).printed.includes('\nnot saved: '));
});

test('nothing is printed or saved unless a test fails', (t) => {
  for (const name of ['passes', 'skips', 'passes with a hook']) {
    const { cwd, printed, passed } = run(t, name);
    assert.ok(passed && !printed.includes('minikeeper: '), printed);
    assert.deepEqual(filesIn(cwd), []);
  }
});

test('server that is gone does not hide the failure', (t) => {
  const { cwd, printed, passed } = run(t, 'is gone');
  assert.equal(passed, false);
  assert.match(printed, /no story of 127\.0\.0\.1:\d+: story: no answer/);
  assert.match(printed, /1 !== 2/);
  assert.deepEqual(filesIn(cwd), []);
});
