'use strict';

// The control API of a server: JSON over HTTP, on the port of the clients.

const http = require('node:http');

/** Longer than any verb works; waits have this on top of their own bound. */
const PATIENCE_MS = 30_000;

/**
 * A verb that did not do what was asked, or a program that did not run. Its message is a sentence for people; `status` is
 * that of the HTTP answer, 408 for a wait whose time ran out, undefined without an answer.
 */
class MinikeeperError extends Error {
  constructor(message, options = {}) {
    super(message, options);
    this.name = 'MinikeeperError';
    this.status = options.status;
  }
}

/** Asks one server; each question has a connection of its own, and none is asked twice. */
class Control {
  /** Where control is while the server is down, as it says when it goes there. */
  #side;

  constructor(host, port, token, universe) {
    Object.assign(this, { host, port, token, universe });
    this.prefix = universe === undefined ? '/v1/' : `/v1/universes/${encodeURIComponent(universe)}/`;
  }

  /** Asks a verb that changes nothing. */
  read(verb, query = {}) {
    const text = new URLSearchParams(query).toString();
    return this.#ask('GET', verb, text ? `${verb}?${text}` : verb, undefined, 0);
  }

  /** Asks a verb that changes or waits. */
  async act(verb, body = {}) {
    const answer = await this.#ask('POST', verb, verb, JSON.stringify(body), body.within_ms ?? 0);
    if (verb === 'go_down' && answer.control !== undefined) this.#side = splitAddress(answer.control);
    if (verb === 'come_up' || verb === 'restart') this.#side = undefined;
    return answer;
  }

  async #ask(method, verb, path, body, withinMs) {
    const where = `${this.host}:${this.port}`;
    let status;
    let text;
    try {
      ({ status, text } = await this.#exchangeSomewhere(method, path, body, PATIENCE_MS + withinMs));
    } catch (error) {
      throw new MinikeeperError(
        `${verb}: no answer from the control API at ${where} (${error.message}); is it running, and with --control?`,
        { cause: error },
      );
    }
    let answer;
    try {
      answer = text === '' ? {} : JSON.parse(text);
    } catch {
      // Told below, as it is.
    }
    if (status === 200 && answer !== null && typeof answer === 'object') return answer;
    throw new MinikeeperError(answer?.error ?? `${verb}: status ${status}: ${text.slice(0, 200)}`, { status });
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
    return this.#exchange(this, ...request);
  }

  #exchange({ host, port }, method, path, body, timeout) {
    const headers = { Accept: 'application/json' };
    if (this.token !== undefined) headers.Authorization = `Bearer ${this.token}`;
    if (body !== undefined) {
      headers['Content-Type'] = 'application/json';
      headers['Content-Length'] = Buffer.byteLength(body);
    }
    return new Promise((resolve, reject) => {
      // Without an agent the connection ends with the answer.
      const options = { host, port, method, path: this.prefix + path, headers, agent: false };
      const request = http.request(options, (response) => {
        const pieces = [];
        response.on('data', (piece) => pieces.push(piece));
        response.on('error', reject);
        response.on('end', () => resolve({ status: response.statusCode, text: Buffer.concat(pieces).toString() }));
      });
      request.setTimeout(timeout, () => request.destroy(new Error(`silent for ${timeout} ms`)));
      request.on('error', reject);
      request.end(body);
    });
  }
}

/** The host and port of HOST:PORT, neither of them known if it is none. */
function splitAddress(address) {
  const [, host, port] = /^\[?(.+?)\]?:(\d+)$/.exec(address) ?? [];
  return { host, port: Number(port) };
}

module.exports = { Control, MinikeeperError, splitAddress };
