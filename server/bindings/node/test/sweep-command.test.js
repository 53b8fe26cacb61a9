'use strict';

// node:test under `minikeeper sweep`: a server of the package is that of the sweep, or says that it cannot be.

const assert = require('node:assert/strict');
const { spawnSync } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const test = require('node:test');

const PATIENCE_MS = 120_000;
const COMMAND = path.join(__dirname, 'node_modules', '.bin', 'minikeeper');

/** Sweeps the tests whose names match. Returns the exit code and what was printed. */
function sweepOf(t, names) {
  const cwd = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), 'minikeeper-')));
  t.after(() => fs.rmSync(cwd, { recursive: true }));
  const command = [process.execPath, '--test', '--test-reporter=tap', `--test-name-pattern=/^${names}$/`];
  const env = { ...process.env };
  // Otherwise it would report to this process.
  delete env.NODE_TEST_CONTEXT;
  const args = ['sweep', '--fault', 'reply-lost', '--out', 'out', '--', ...command, path.join(__dirname, 'swept.js')];
  const { status, stdout, stderr } = spawnSync(COMMAND, args, { cwd, env, encoding: 'utf8', timeout: PATIENCE_MS });
  const outputs = fs.readdirSync(path.join(cwd, 'out')).filter((name) => name.endsWith('.out'));
  const output = outputs.map((name) => fs.readFileSync(path.join(cwd, 'out', name), 'utf8')).join('');
  return { status, printed: `${stdout}${stderr}${output}` };
}

test('server of the package is that of the sweep, and tests share nothing', (t) => {
  // A server of its own met no fault, so that the sweep was green.
  const sound = sweepOf(t, 'sound.*');
  assert.equal(sound.status, 0, sound.printed);
  const planted = sweepOf(t, 'twice');
  assert.equal(planted.status, 1, planted.printed);
  assert.ok(planted.printed.includes("--only 'reply-lost:1:create:1:/orders/order-'"), planted.printed);
});

for (const [names, why] of [
  ['options', 'give minikeeper sweep the options, such as --tick-time'],
  ['two servers', 'another Server uses it: stop that first'],
  ['sweeps by itself', 'this test sweeps by itself: run it without minikeeper sweep'],
]) {
  test(`what cannot be swept says so: ${names}`, (t) => {
    const { status, printed } = sweepOf(t, names);
    assert.equal(status, 1, printed);
    assert.ok(printed.includes(why), printed);
  });
}
