'use strict';

// A suite of node:test, of Jest and of Vitest under `minikeeper sweep --suite`: each test sweeps itself, and there is one report.

const assert = require('node:assert/strict');
const { spawnSync } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const test = require('node:test');

const PATIENCE_MS = 240_000;
const BIN = path.join(__dirname, 'node_modules', '.bin');
const FAULTS = ['reply-lost', 'connection-cut', 'session-expired'].flatMap((fault) => ['--fault', fault]);

/** Runs a command with minikeeper, in a folder of its own. */
function run(t, args) {
  const cwd = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), 'minikeeper-')));
  t.after(() => fs.rmSync(cwd, { recursive: true }));
  const env = { ...process.env };
  // Otherwise it would report to this process.
  delete env.NODE_TEST_CONTEXT;
  const command = path.join(BIN, 'minikeeper');
  const { status, stdout, stderr } = spawnSync(command, args, { cwd, env, encoding: 'utf8', timeout: PATIENCE_MS });
  return { status, stdout, printed: `${stdout}${stderr}` };
}

/** Sweeps the tests of suite-of-tests.js whose names match. */
function sweepSuite(t, names, options = FAULTS) {
  const command = [process.execPath, '--test', '--test-reporter=tap', `--test-name-pattern=/^(${names})$/`];
  const file = path.join(__dirname, 'suite-of-tests.js');
  return run(t, ['sweep', '--suite', ...options, '--', ...command, file]);
}

test('bug in one of three tests of a suite is found', (t) => {
  const { status, stdout, printed } = sweepSuite(t, 'sound.*|twice');
  assert.equal(status, 1, printed);
  for (const part of [
    /^# pass 2$/m,
    /^# fail 1$/m,
    /^3 tests swept, 2 of them clean$/m,
    /^suite-of-tests\.js\/twice: failed: /m,
    /suite-of-tests\.js\/twice: when the reply to the 1st create of \/orders\/order- by client 1 was lost/,
    /2 of 3 tests are clean/,
  ]) {
    assert.match(printed.replaceAll(/\S*\/(?=suite-of-tests\.js)/g, ''), part);
  }
  // It does the run again.
  const again = /npx minikeeper (sweep --only '(\S+)' -- node --test .*)/.exec(stdout);
  assert.equal(again[2], 'reply-lost:1:create:1:/orders/order-', printed);
  const file = path.join(__dirname, 'suite-of-tests.js');
  const command = ['node', '--test', '--test-reporter=tap', '--test-name-pattern=twice', file];
  assert.ok(again[1].includes(" --test-name-pattern='twice' "), printed);
  const repeated = run(t, ['sweep', '--only', again[2], '--', ...command]);
  assert.equal(repeated.status, 1, repeated.printed);
});

test('suite without a bug is clean', (t) => {
  const { status, printed } = sweepSuite(t, 'sound.*');
  assert.equal(status, 0, printed);
  assert.match(printed, /^2 tests swept, 2 of them clean$/m);
});

test('test that calls sweep is one test of the suite, with its rules', (t) => {
  const { status, printed } = sweepSuite(t, 'sweeps.*', ['--fault', 'reply-lost']);
  assert.equal(status, 0, printed);
  assert.match(printed, /^2 tests swept, 2 of them clean$/m);
  assert.match(printed, /because the orders are merged/);
});

test('tests that need a server of their own run as they are', (t) => {
  const { status, printed } = sweepSuite(t, 'own .*|skips', ['--fault', 'reply-lost']);
  // No test was swept.
  assert.equal(status, 3, printed);
  assert.match(printed, /^# fail 0$/m);
  assert.match(printed, /^# pass [1-9]/m);
  assert.match(printed, /^ok \d+ - skips # SKIP today$/m);
  assert.match(printed, /^0 tests swept/m);
});

test('hooks and mocks of a test are those of a run', (t) => {
  const { status, printed } = sweepSuite(t, 'hooks', ['--fault', 'reply-lost']);
  assert.equal(status, 0, printed);
  assert.match(printed, /^1 tests swept, 1 of them clean$/m);
});

test('clients that a test leaves to a hook end with their run', (t) => {
  const { status, printed } = sweepSuite(t, 'leaves clients', [...FAULTS, '--all']);
  assert.equal(status, 0, printed);
  assert.match(printed, /^1 tests swept, 1 of them clean$/m);
});

test('budget that ends leaves the suite incomplete, and no test fails', (t) => {
  const { status, printed } = sweepSuite(t, 'sound.*', ['--time', '0']);
  assert.equal(status, 3, printed);
  assert.match(printed, /^# fail 0$/m);
});

test('test that fails without faults, and one that reaches its limit, fail', (t) => {
  const broken = sweepSuite(t, 'broken', ['--fault', 'reply-lost']);
  assert.equal(broken.status, 1, broken.printed);
  assert.match(broken.printed, /1 !== 2/);
  const limited = sweepSuite(t, 'limited', ['--fault', 'reply-lost']);
  assert.equal(limited.status, 1, limited.printed);
});

const OF_JEST = (rootDir) => ['jest', '--config', JSON.stringify({ rootDir, testRegex: 'suite-of-tests.js' })];
const OF_VITEST = (root) => ['vitest', 'run', `--root=${root}`];

for (const [runner, name, command] of [
  ['Jest', 'suite-of-tests.js', OF_JEST],
  ['Vitest', 'suite-of-tests.test.mjs', OF_VITEST],
]) {
  test(`suite of ${runner} is swept`, (t) => {
    const folder = fs.mkdtempSync(path.join(__dirname, 'suite-'));
    t.after(() => fs.rmSync(folder, { recursive: true }));
    fs.copyFileSync(path.join(__dirname, name), path.join(folder, name));
    const [program, ...args] = command(folder);
    const tests = [path.join(BIN, program), ...args, '--testTimeout=120000'];
    const { status, printed } = run(t, ['sweep', '--suite', '--fault', 'reply-lost', '--', ...tests]);
    assert.equal(status, 1, printed);
    assert.match(printed, /^3 tests swept, 2 of them clean$/m);
    assert.ok(printed.includes("--only 'reply-lost:1:create:1:/orders/order-'"), printed);
  });
}
