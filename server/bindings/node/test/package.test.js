'use strict';

// The installed packages: the program for this system, the command `minikeeper`, and what is said if there is no program.

const assert = require('node:assert/strict');
const { spawn, spawnSync } = require('node:child_process');
const { on, once } = require('node:events');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const test = require('node:test');
const { setTimeout: sleep } = require('node:timers/promises');

const PATIENCE_MS = 30_000;
const within = () => ({ signal: AbortSignal.timeout(PATIENCE_MS) });

const MODULES = path.join(__dirname, 'node_modules');
const COMMAND = path.join(MODULES, '.bin', 'minikeeper');
const SYSTEM = `${process.platform}-${process.arch}`;

function temporary(t) {
  const folder = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), 'minikeeper-')));
  t.after(() => fs.rmSync(folder, { recursive: true }));
  return folder;
}

function run(command, args, options = {}) {
  return spawnSync(command, args, { encoding: 'utf8', timeout: PATIENCE_MS, ...options });
}

/** Starts a server with the command, in a process group of their own. Returns the command's process and the address. */
async function serve(t, command = [COMMAND], { stdin = 'ignore' } = {}) {
  const [program, ...args] = [...command, '--port', '0'];
  const child = spawn(program, args, { cwd: __dirname, stdio: [stdin, 'pipe', 'inherit'], detached: true });
  t.after(() => {
    try {
      process.kill(-child.pid, 'SIGKILL');
    } catch (error) {
      if (error.code !== 'ESRCH') throw error;
    }
  });
  let said = '';
  for await (const [piece] of on(child.stdout, 'data', within())) {
    said += piece;
    const line = /listening on (\S+)\n/.exec(said);
    // Else the program would end as soon as it prints.
    if (line !== null) return { child: child.stdout.resume() && child, address: line[1] };
  }
  throw new Error(`no address in ${said}`);
}

/** A program that is a script, in place of the one in the package. */
function script(t, text) {
  const file = path.join(temporary(t), 'script');
  fs.writeFileSync(file, `#!/bin/sh\n${text}\n`, { mode: 0o755 });
  return { env: { ...process.env, MINIKEEPER_BIN: file } };
}

test('package for this system has the programs and the licences', () => {
  const folder = path.join(MODULES, '@minikeeper', SYSTEM);
  const described = JSON.parse(fs.readFileSync(path.join(folder, 'package.json'), 'utf8'));
  assert.equal(described.name, `@minikeeper/${SYSTEM}`);
  assert.deepEqual([described.os, described.cpu], [[process.platform], [process.arch]]);
  // The program for Linux is static.
  assert.equal(described.libc, undefined);
  assert.deepEqual(fs.readdirSync(folder).sort(), ['LICENSE-APACHE', 'LICENSE-MIT', 'README.md', 'bin', 'package.json']);
  for (const program of ['minikeeper', 'minikeeper-cli']) {
    assert.equal(fs.statSync(path.join(folder, 'bin', program)).mode & 0o777, 0o755, program);
  }
});

test('description in the package is for those who have it', () => {
  const description = fs.readFileSync(path.join(MODULES, 'minikeeper', 'README.md'), 'utf8');
  assert.match(description, /^# minikeeper for Node/);
  assert.doesNotMatch(description, /Nothing is on|Rust/);
});

test('package has what it needs and nothing else', () => {
  const folder = path.join(MODULES, 'minikeeper');
  const { version, optionalDependencies, dependencies } = require('minikeeper/package.json');
  assert.equal(dependencies, undefined);
  assert.deepEqual(new Set(Object.values(optionalDependencies)), new Set([version]));
  assert.match(run(COMMAND, ['--version']).stdout, new RegExp(`^minikeeper ${version.replaceAll('.', '\\.')}\n`));
  const sources = fs.readdirSync(folder).filter((file) => !file.endsWith('.js') && !file.endsWith('.d.ts'));
  assert.deepEqual(sources.sort(), ['LICENSE-APACHE', 'LICENSE-MIT', 'README.md', 'package.json']);
});

test('npx runs the program, and passes its exit code on', () => {
  const help = run('npx', ['--offline', 'minikeeper', '--help'], { cwd: __dirname });
  assert.equal(help.status, 0, help.stderr);
  assert.match(help.stdout, /--exit-on-stdin-eof/);
  const wrong = run('npx', ['--offline', 'minikeeper', '--bogus'], { cwd: __dirname });
  assert.equal(wrong.status, 2);
  assert.match(wrong.stderr, /unexpected argument '--bogus'/);
});

test('command passes arguments, streams and exit codes on', (t) => {
  const echo = script(t, 'printf "%s;" "$@"; cat; echo problem >&2; exit 7');
  const { status, stdout, stderr } = run(COMMAND, ['a b', '', '--c=*'], { ...echo, input: 'in' });
  assert.deepEqual({ status, stdout, stderr }, { status: 7, stdout: 'a b;;--c=*;in', stderr: 'problem\n' });
});

test('command ends with the signal that ended the program', (t) => {
  assert.equal(run(COMMAND, [], script(t, 'kill -KILL $$')).signal, 'SIGKILL');
  assert.equal(run(COMMAND, [], script(t, 'kill -TERM $$')).signal, 'SIGTERM');
});

test('shell of the command talks to a server', async (t) => {
  const { address } = await serve(t);
  const shell = (...line) => run(COMMAND, ['cli', '-server', address, ...line]);
  assert.equal(shell('create', '/a', 'hello').status, 0);
  assert.equal(shell('get', '/a').stdout, 'hello\n');
  assert.equal(shell('get', '/missing').status, 1);
});

test('kill of the command stops the server', async (t) => {
  for (const signal of ['SIGTERM', 'SIGINT']) {
    const { child, address } = await serve(t);
    child.kill(signal);
    assert.deepEqual(await once(child, 'exit', within()), [0, null]);
    assert.equal(run(COMMAND, ['healthcheck', address]).status, 1);
  }
});

/** Waits until a server has ended, which nobody waits for. */
async function untilGone(address) {
  for (const end = Date.now() + PATIENCE_MS; run(COMMAND, ['healthcheck', address]).status === 0; await sleep(50)) {
    assert.ok(Date.now() < end, `the server at ${address} is still there`);
  }
}

test('server ends when the command is killed', async (t) => {
  for (const stdin of ['ignore', 'pipe']) {
    const { child, address } = await serve(t, [COMMAND], { stdin });
    child.kill('SIGKILL');
    await untilGone(address);
  }
});

test('server ends with npx', async (t) => {
  // On SIGINT npx waits for the shell, which waits for the program: a terminal sends Ctrl-C to all of them.
  for (const signal of ['SIGTERM', 'SIGHUP', 'SIGKILL']) {
    const { child, address } = await serve(t, ['npx', '--offline', 'minikeeper']);
    child.kill(signal);
    await untilGone(address);
  }
});

test('program ends with an npx that ends as soon as the program runs', { skip: process.platform !== 'linux' }, async (t) => {
  const { env } = script(t, `
    parent() { cut -d ' ' -f 4 "/proc/$1/stat"; }
    kill -STOP $PPID
    kill -KILL $(parent $(parent $PPID))
    kill -CONT $PPID
    exec cat >/dev/null`);
  const child = spawn('npx', ['--offline', 'minikeeper'], { cwd: __dirname, env, stdio: ['ignore', 'pipe', 'inherit'] });
  // All processes have it; it closes when the last one has ended.
  await once(child.stdout.resume(), 'close', within());
});

test('server ends when stdin does, if asked to, and else not', async (t) => {
  const asked = await serve(t, ['npx', '--offline', 'minikeeper', '--exit-on-stdin-eof'], { stdin: 'pipe' });
  asked.child.stdin.end();
  assert.deepEqual(await once(asked.child, 'exit', within()), [0, null]);
  const { child, address } = await serve(t, [COMMAND], { stdin: 'pipe' });
  child.stdin.end();
  // It goes on, with a client that comes later.
  assert.equal(run(COMMAND, ['ctl', '--server', address, 'now']).status, 0);
  child.kill('SIGTERM');
  assert.deepEqual(await once(child, 'exit', within()), [0, null]);
});

test('Ctrl-C stops the server and the command', async (t) => {
  // A terminal sends the signal to all processes of the group.
  const { child, address } = await serve(t);
  process.kill(-child.pid, 'SIGINT');
  assert.deepEqual(await once(child, 'exit', within()), [0, null]);
  assert.equal(run(COMMAND, ['healthcheck', address]).status, 1);
});

/** Copies the package without the one for this system. Returns a function that starts a server, and what it said. */
function alone(t) {
  const modules = path.join(temporary(t), 'node_modules');
  fs.cpSync(path.join(MODULES, 'minikeeper'), path.join(modules, 'minikeeper'), { recursive: true });
  const start = (environment = {}, before = '') => {
    const code = `${before};
      const { startServer } = require('minikeeper');
      startServer().then((server) => server.stop(), (error) => console.log(error.name + ': ' + error.message));`;
    const options = { cwd: path.dirname(modules), env: { ...process.env, ...environment } };
    return run(process.execPath, ['-e', code], options).stdout;
  };
  return { modules, start };
}

test('missing package is an error that says what to do', (t) => {
  const { modules, start } = alone(t);
  const missing = `the package @minikeeper/${SYSTEM} is not installed; optional dependencies were left out, `;
  assert.ok(start().startsWith(`MinikeeperError: ${missing}`));
  const command = run(process.execPath, [path.join(modules, 'minikeeper', 'launch.js')]);
  assert.equal(command.status, 1);
  assert.ok(command.stderr.startsWith(`minikeeper: ${missing}`));
  assert.match(command.stderr, /; or set MINIKEEPER_BIN to a program\n$/);
  const program = path.join(MODULES, '@minikeeper', SYSTEM, 'bin', 'minikeeper');
  assert.equal(start({ MINIKEEPER_BIN: program }), '');
});

test('package for another system is an error that says so', (t) => {
  const { modules, start } = alone(t);
  const bin = path.join(modules, '@minikeeper', 'win32-x64', 'bin');
  fs.mkdirSync(bin, { recursive: true });
  fs.writeFileSync(path.join(bin, 'minikeeper.exe'), '');
  assert.match(start(), /; @minikeeper\/win32-x64 is, so node_modules comes from another system: remove it/);
});

test('unsupported system is an error that names the supported ones', (t) => {
  const { start } = alone(t);
  const said = start({}, "Object.defineProperty(process, 'platform', { value: 'sunos' })");
  const systems = 'darwin-arm64, darwin-x64, linux-arm64, linux-x64, win32-x64';
  assert.ok(said.startsWith(`MinikeeperError: there is no program for sunos-${process.arch}, only for ${systems}: build`));
});

test('program that cannot be run is an error', (t) => {
  const { modules, start } = alone(t);
  const bin = path.join(modules, '@minikeeper', SYSTEM, 'bin');
  fs.mkdirSync(bin, { recursive: true });
  fs.writeFileSync(path.join(bin, 'minikeeper'), '');
  assert.match(start(), /bin\/minikeeper is not executable/);
  assert.match(start({ MINIKEEPER_BIN: '/no/such' }), /^MinikeeperError: no program at "\/no\/such"\n/);
  const command = path.join(modules, 'minikeeper', 'launch.js');
  assert.match(start({ MINIKEEPER_BIN: command }), /set MINIKEEPER_BIN to the program itself/);
});
