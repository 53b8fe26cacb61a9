'use strict';

// The control API of a server: JSON over HTTP, on the port of the clients.

const { AssertionError } = require('node:assert');
const http = require('node:http');

const { camelCase } = require('./values.js');

/** Longer than any verb takes until its answer begins or goes on; waits add their own limit. */
const PATIENCE_MS = 30_000;
/** For an answer that does not end. Far above those of a server with millions of znodes. */
const ANSWER_BYTES_MAX = 256 * 1024 * 1024;
const ANSWER_MS_MAX = 300_000;

/** The parameters of verbs whose names differ here. */
const WIRE_NAMES = [
  ...['allow_none', 'allow_unreached', 'allow_untried', 'at_least', 'at_most', 'by_ms', 'bytes_max'],
  ...['delay_ms', 'fencing_token', 'idle_ms', 'in_data', 'in_order', 'leave_out', 'outage_ms', 'quiet_ms', 'sort_by'],
  ...['tests_left', 'time_ms', 'ttl_ms', 'within_ms'],
];

/**
 * A verb failed, or the program could not run. The message is an explanation for humans; `status` is the HTTP status,
 * 408 if a wait timed out, undefined without an answer.
 */
class MinikeeperError extends Error {
  constructor(message, options = {}) {
    super(message, options);
    this.name = 'MinikeeperError';
    this.status = options.status;
  }
}

/** Calls the verbs of one server. Each call uses a new connection, unless the caller keeps some, and none is retried. */
class Control {
  /** The connections of a caller with many calls, which closes them. */
  kept;

  /** Makes each call. */
  around = (call) => call();

  /** The address of control while the server is down, which `go_down` returned. */
  #side;

  constructor(connectString, token, universe) {
    const addresses = connectString.split('/', 1)[0].split(',');
    // One for each server of the ensemble.
    this.hosts = addresses.map((address) => {
      const { host, port } = splitAddress(address);
      if (host === undefined) throw new TypeError(`invalid address "${address}"; write HOST:PORT`);
      return { host, port };
    });
    const [{ port }] = this.hosts;
    Object.assign(this, { connectString, address: addresses[0], port, token });
    this.prefix = universe === undefined ? '/v1/' : `/v1/universes/${encodeURIComponent(universe)}/`;
  }

  /** Returns the control API of a universe of the same server, also while that is down. */
  of(universe) {
    const control = new Control(this.connectString, this.token, universe);
    control.#side = this.#side;
    control.kept = this.kept;
    return control;
  }

  /** Calls a verb that only reads. */
  read(verb, query = {}) {
    const text = new URLSearchParams(query).toString();
    return this.#ask('GET', verb, text ? `${verb}?${text}` : verb, undefined, 0);
  }

  /** Calls a verb that changes something or waits. */
  async act(verb, body = {}, { withinMs = body.within_ms ?? 0, signal } = {}) {
    const answer = await this.#ask('POST', verb, verb, JSON.stringify(body), withinMs, signal);
    if (verb === 'go_down' && answer.control !== undefined) this.#side = splitAddress(answer.control);
    if (verb === 'come_up' || verb === 'restart') this.#side = undefined;
    return answer;
  }

  async #ask(method, verb, path, body, withinMs, signal) {
    let status;
    let text;
    try {
      const call = () => this.#exchangeSomewhere(method, path, body, PATIENCE_MS + withinMs, signal);
      ({ status, text } = await this.around(call));
    } catch (error) {
      if (error instanceof MinikeeperError) throw new MinikeeperError(`${verb}: ${error.message}`);
      // Nothing listens there, or what listens is not control.
      const question = error.code === 'ECONNREFUSED' ? 'is a server running there?' : 'is the server running with --control?';
      throw new MinikeeperError(
        `${verb}: no answer from the control API at ${this.address} (${error.message}); ${question}`,
        { cause: error },
      );
    }
    let answer;
    try {
      answer = text === '' ? {} : JSON.parse(text);
    } catch {
      // The error below quotes the text.
    }
    if (status === 200 && answer !== null && typeof answer === 'object') return answer;
    // The znodes of a seed have the names of the server.
    const message = (verb === 'seed' ? answer?.error : inCamelCase(answer?.error)) ?? `${verb}: status ${status}: ${text.slice(0, 200)}`;
    // A runner reports a failure instead of an error.
    if (verb === 'verify' && status === 409) throw Object.assign(new AssertionError({ message }), { status });
    throw new MinikeeperError(message, { status });
  }

  async #exchangeSomewhere(...request) {
    const side = this.#side;
    if (side !== undefined) {
      try {
        return await this.#exchange(side, ...request);
      } catch (error) {
        if (error.code !== 'ECONNREFUSED') throw error;
        // Another caller has brought the server up.
        this.#side = undefined;
      }
    }
    for (const [place, host] of this.hosts.entries()) {
      try {
        return await this.#exchange(host, ...request);
      } catch (error) {
        // A server of the ensemble may be down.
        if (error.code !== 'ECONNREFUSED' || place + 1 === this.hosts.length) throw error;
      }
    }
  }

  #exchange({ host, port }, method, path, body, timeout, signal) {
    const headers = { Accept: 'application/json' };
    if (this.token !== undefined) headers.Authorization = `Bearer ${this.token}`;
    if (body !== undefined) {
      headers['Content-Type'] = 'application/json';
      headers['Content-Length'] = Buffer.byteLength(body);
    }
    if (this.kept !== undefined) {
      const named = { Host: `${host.includes(':') ? `[${host}]` : host}:${port}`, ...headers };
      for (const [name, value] of Object.entries(named)) http.validateHeaderValue(name, value);
      const lines = Object.entries(named).map(([name, value]) => `${name}: ${value}\r\n`);
      const request = `${method} ${this.prefix}${path} HTTP/1.1\r\n${lines.join('')}\r\n${body ?? ''}`;
      return this.kept.exchange({ host, port }, request, { timeout, bytesMax: limits.bytes, signal });
    }
    const endless = (what) => new MinikeeperError(`the answer of ${host}:${port} ${what}; is it a minikeeper?`);
    return new Promise((resolve, reject) => {
      // Without an agent, the connection closes after the answer.
      const options = { host, port, method, path: this.prefix + path, headers, agent: false };
      const request = http.request(options, (response) => {
        const pieces = [];
        let length = 0;
        response.on('data', (piece) => {
          length += piece.length;
          if (length <= limits.bytes) pieces.push(piece);
          else request.destroy(endless(`is longer than the limit of ${limits.bytes} bytes`));
        });
        response.on('error', reject);
        response.on('end', () => resolve({ status: response.statusCode, text: Buffer.concat(pieces).toString() }));
      });
      request.setTimeout(timeout, () => request.destroy(new Error(`no answer within ${timeout} ms`)));
      const total = limits.ms + timeout;
      const late = setTimeout(() => request.destroy(endless(`did not end within ${total} ms`)), total);
      request.on('error', reject);
      request.on('close', () => clearTimeout(late));
      request.end(body);
    });
  }
}

/** Returns a message of the server with the names that verbs and their parameters have here, outside of what it quotes. */
function inCamelCase(message) {
  if (typeof message !== 'string') return undefined;
  const called = message.replace(/, at \/v1\/(\w+)$/, (_, verb) => `: server.${camelCase(verb)}()`);
  // What is quoted is the caller's, such as a path.
  const parts = called.split(/("(?:[^"\\]|\\.)*")/);
  const word = new RegExp(`(?<![\\w/])(${WIRE_NAMES.join('|')})(?![\\w/])`, 'g');
  return parts.map((part, at) => (at % 2 === 1 ? part : part.replace(word, camelCase))).join('');
}

/** Splits HOST:PORT; the host is undefined if the address is invalid. */
function splitAddress(address) {
  const [, host, port] = /^\[?(.+?)\]?:(\d+)$/.exec(address) ?? [];
  return { host, port: Number(port) };
}

/** The limits of an answer, which tests lower. */
const limits = { bytes: ANSWER_BYTES_MAX, ms: ANSWER_MS_MAX };

module.exports = { Control, MinikeeperError, WIRE_NAMES, limits };
