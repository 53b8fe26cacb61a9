#!/usr/bin/env node
'use strict';

// The command `minikeeper`: runs the program in the package with the same arguments.

const { spawn } = require('node:child_process');

const { findProgram } = require('./program.js');

// A terminal sends Ctrl-C to both processes, `kill` to this one alone. A second signal does not matter to the program.
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'];

function launch(program) {
  let child;
  // Before the program starts: a signal would end this process alone.
  for (const signal of SIGNALS) {
    process.on(signal, () => {
      // Windows has no signals: this would end the program before it saves. Ctrl-C reaches both.
      if (process.platform !== 'win32') child.kill(signal);
    });
  }
  child = spawn(program, process.argv.slice(2), { stdio: 'inherit' });
  child.on('error', fail);
  child.on('exit', (code, signal) => {
    if (signal === null) process.exit(code);
    // Ends as the program did.
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  });
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
