'use strict';

// The program `minikeeper` as a child of this process.

const { spawn } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');

const { MinikeeperError } = require('./control.js');
const { optionalDependencies } = require('./package.json');

const START_MS = 30_000;
const STOP_MS = 10_000;
const SAID_MAX = 64 * 1024;

/** Returns the address of the server of `minikeeper sweep`, undefined if that does not run this process. */
function addressOfSweep() {
  return process.env.MINIKEEPER_SWEEP_RUN ? process.env.MINIKEEPER_CONNECT : undefined;
}

/** Returns the address of the server of `minikeeper sweep --suite`, undefined if that does not run this process. */
function addressOfSuite() {
  return process.env.MINIKEEPER_SWEEP_SUITE || undefined;
}

/** Finds the program: the argument, else MINIKEEPER_BIN, else the one in the package for this system. */
function findProgram(named = process.env.MINIKEEPER_BIN) {
  const program = named ? path.resolve(named) : installed();
  try {
    fs.accessSync(program, fs.constants.X_OK);
  } catch (error) {
    // Unlike a shell, this looks for a bare name in no folder of PATH.
    const isName = named !== undefined && path.basename(named) === named;
    const missing = `no program at "${program}"${isName ? `; "${named}" must be a path, such as /usr/bin/minikeeper` : ''}`;
    const fault = error.code === 'EACCES' ? `${program} is not executable` : missing;
    throw new MinikeeperError(fault, { cause: error });
  }
  if (fs.realpathSync(program) === path.join(__dirname, 'launch.js')) {
    throw new MinikeeperError(`"${program}" only starts the program: set MINIKEEPER_BIN to the program itself`);
  }
  return program;
}

/** Returns the path of the program in the package for this system, which npm installs with ours. */
function installed() {
  const system = `${process.platform}-${process.arch}`;
  const wanted = `@minikeeper/${system}`;
  const found = locate(wanted);
  if (found !== undefined) return found;
  const packages = Object.keys(optionalDependencies);
  if (!packages.includes(wanted)) {
    const systems = packages.map((name) => name.replace('@minikeeper/', '')).join(', ');
    throw new MinikeeperError(
      `there is no program for ${system}, only for ${systems}: build minikeeper on this system and set MINIKEEPER_BIN to it`,
    );
  }
  const other = packages.find((name) => locate(name) !== undefined);
  const why =
    other === undefined
      ? 'optional dependencies were left out, or the lock file lacks it: install without --omit=optional, and remove ' +
        'node_modules and the lock file first if that does not help'
      : `${other} is, so node_modules comes from another system: remove it and install on this one`;
  throw new MinikeeperError(`the package ${wanted} is not installed; ${why}; or set MINIKEEPER_BIN to a program`);
}

/** Returns the path of the program in a package, undefined if it is not installed. */
function locate(name) {
  const program = name.includes('win32') ? 'minikeeper.exe' : 'minikeeper';
  try {
    return require.resolve(`${name}/bin/${program}`);
  } catch {
    return undefined;
  }
}

/** One run of the program. It exits with this process, even if that is killed: its stdin is a pipe from here. */
class Program {
  /** Starts it and waits until it listens. */
  static async start(program, options) {
    const run = new Program(program, options);
    try {
      run.address = await run.#firstAddress();
    } catch (error) {
      run.child.kill('SIGKILL');
      throw error;
    }
    // Lets this process exit even if a test forgets to stop the program, which then exits too.
    for (const handle of [run.child, run.child.stdin, run.child.stdout, run.child.stderr]) handle.unref();
    return run;
  }

  constructor(program, options) {
    this.said = '';
    this.child = spawn(program, ['serve', '--control', '--exit-on-stdin-eof', ...options], {
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    this.ended = new Promise((resolve) => {
      this.child.once('error', (error) => resolve(`cannot run ${program}: ${error.message}`));
      this.child.once('close', (code, signal) => resolve(signal ?? code));
    });
    // The program may exit before its stdin is closed.
    this.child.stdin.on('error', () => {});
    const keep = (piece) => {
      this.said = (this.said + piece).slice(-SAID_MAX);
    };
    this.child.stderr.on('data', keep);
    this.child.stdout.on('data', keep);
  }

  get isRunning() {
    return this.child.exitCode === null && this.child.signalCode === null;
  }

  /** Reads the first line, `minikeeper VERSION listening on ADDRESS`, which is printed once it listens. */
  #firstAddress() {
    return new Promise((resolve, reject) => {
      const late = () => reject(new MinikeeperError(`minikeeper did not listen within ${START_MS} ms`));
      const timer = setTimeout(late, START_MS);
      let text = '';
      const look = (piece) => {
        text += piece;
        const line = /^minikeeper \S+ listening on (\S+)\n/.exec(text);
        if (line === null) return;
        clearTimeout(timer);
        this.child.stdout.off('data', look);
        resolve(line[1]);
      };
      this.child.stdout.on('data', look);
      this.ended.then((end) => {
        clearTimeout(timer);
        const what = typeof end === 'string' ? end : `minikeeper exited with code ${end} at startup`;
        reject(new MinikeeperError(`${what}: ${this.said.trim()}`));
      });
    });
  }

  /** Stops it and waits until it has exited. */
  async stop() {
    const late = setTimeout(() => this.child.kill('SIGKILL'), STOP_MS);
    this.child.ref();
    this.child.stdin.end();
    // Windows has no signals: this would kill it before it saves. The end of its stdin stops it everywhere.
    if (process.platform !== 'win32') this.child.kill('SIGTERM');
    const end = await this.ended;
    clearTimeout(late);
    if (end === 'SIGKILL') throw new MinikeeperError(`minikeeper did not stop within ${STOP_MS} ms and was killed`);
    if (end !== 0) throw new MinikeeperError(`minikeeper exited with code ${end}: ${this.said.trim()}`);
  }

  /** Kills it, as in a crash. */
  async kill() {
    this.child.ref();
    this.child.kill('SIGKILL');
    await this.ended;
  }
}

module.exports = { Program, addressOfSuite, addressOfSweep, findProgram };
