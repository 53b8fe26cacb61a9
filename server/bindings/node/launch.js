#!/usr/bin/env node
'use strict';

// The command `minikeeper`: runs the program in the package with the same arguments. The program ends with this process, and
// this process with npx, even if they are killed.

const { spawn, spawnSync } = require('node:child_process');
const fs = require('node:fs');

const { findProgram } = require('./program.js');

// A terminal sends Ctrl-C to both processes, `kill` to this one alone. A second signal does not matter to the program.
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'];
const IS_WINDOWS = process.platform === 'win32';
const WITH_STDIN = '--exit-on-stdin-eof';
const LOOK_MS = 500;

function launch(program) {
  let child;
  const stop = (signal) => {
    // Windows has no signals: this would end the program before it saves. Ctrl-C reaches both.
    if (!IS_WINDOWS) child.kill(signal);
  };
  // Before the program starts: a signal would end this process alone.
  for (const signal of SIGNALS) process.on(signal, () => stop(signal));
  const hasNpxEnded = npx();
  child = start(program, process.argv.slice(2));
  child.on('error', fail);
  child.on('exit', (code, signal) => {
    if (signal === null) process.exit(code);
    // Ends as the program did.
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  });
  if (hasNpxEnded === undefined) return;
  const timer = setInterval(() => {
    if (!hasNpxEnded()) return;
    clearInterval(timer);
    stop('SIGTERM');
  }, LOOK_MS);
}

function start(program, args) {
  const serves = args.length === 0 || args[0].startsWith('-') || args[0] === 'serve';
  if (!serves) return spawn(program, args, { stdio: 'inherit' });
  // A server does not read its stdin. This end of the pipe closes with this process.
  const isAsked = args.includes(WITH_STDIN) || process.env.MINIKEEPER_EXIT_ON_STDIN_EOF === 'true';
  const child = spawn(program, isAsked ? args : [...args, WITH_STDIN], { stdio: ['pipe', 'inherit', 'inherit'] });
  child.stdin?.on('error', () => {});
  if (isAsked) process.stdin.pipe(child.stdin);
  return child;
}

/**
 * Returns a function that says whether npx has ended, undefined if npx has not started this process: it passes signals to the
 * shell between them, which ends alone. Asked before the program starts, because npx may end as soon as the program prints.
 */
function npx() {
  if (process.env.npm_command !== 'exec') return undefined;
  const chain = [process.pid, process.ppid];
  while (!isNpx(chain.at(-1))) {
    const parent = parentOf(chain.at(-1));
    // npx runs another command, which has started this one.
    if (parent === undefined || chain.length === 3) return undefined;
    chain.push(parent);
  }
  return () => chain.some((pid, place) => place > 0 && parentOf(chain[place - 1]) !== pid);
}

/** Whether a process is npx, which names itself. */
function isNpx(pid) {
  return /^npm exec\b/.test(shown(pid, 'args', 'cmdline'));
}

function parentOf(pid) {
  if (pid === process.pid) return process.ppid;
  // In /proc, the number behind the name in parentheses and the state.
  const [, parent] = /(?:^|\) \w )\s*(\d+)/.exec(shown(pid, 'ppid', 'stat').replace(/^.*\)/s, ')')) ?? [];
  return parent === undefined ? undefined : Number(parent);
}

/** What the system says of a process: a column of `ps`, on Linux a file of /proc, because small images have no `ps`. */
function shown(pid, column, file) {
  try {
    if (process.platform === 'linux') return fs.readFileSync(`/proc/${pid}/${file}`, 'latin1');
    return spawnSync('ps', ['-o', `${column}=`, '-p', String(pid)], { encoding: 'utf8' }).stdout ?? '';
  } catch {
    return '';
  }
}

function fail(error) {
  process.stderr.write(`minikeeper: ${error.message}\n`);
  process.exit(1);
}

try {
  launch(findProgram());
} catch (error) {
  fail(error);
}
