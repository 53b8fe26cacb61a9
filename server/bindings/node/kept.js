'use strict';

// Connections to control that are kept between the calls of a sweep, whose runs are shorter than what node:http takes for their
// calls: about 0.15 ms each, and five times as much on a new connection.

const net = require('node:net');

const HEAD_BYTES_MAX = 16 * 1024;
const HEAD_END = Buffer.from('\r\n\r\n');

/** A connection, for one call at a time. */
class KeptConnection {
  #socket;
  #pieces = [];
  #length = 0;
  /** The end of the answer, undefined until its head is complete. */
  #end;
  #call;
  isUsed = false;

  constructor({ host, port }) {
    this.#socket = net.connect({ host, port, noDelay: true });
    this.#socket.on('data', (piece) => this.#read(piece));
    this.#socket.on('error', (error) => this.#fail(error));
    this.#socket.on('close', () => this.#fail(Object.assign(new Error('the connection was closed'), { code: 'ECONNRESET' })));
  }

  get isOpen() {
    return !this.#socket.destroyed;
  }

  /** Sends a request. Resolves to the status and the text of the answer. */
  exchange(request, { timeout, bytesMax, signal }) {
    return new Promise((resolve, reject) => {
      const late = () => this.#fail(new Error(`no answer within ${timeout} ms`));
      this.#call = { resolve, reject, bytesMax, timer: setTimeout(late, timeout), signal };
      signal?.addEventListener('abort', this.#abort);
      this.#socket.ref();
      this.#socket.write(request);
    });
  }

  destroy() {
    this.#socket.destroy();
  }

  #abort = () => this.#fail(new Error('the call was given up'));

  #read(piece) {
    if (this.#call === undefined) return this.destroy();
    this.#pieces.push(piece);
    this.#length += piece.length;
    if (this.#end === undefined && !this.#readHead()) return;
    if (this.#length < this.#end.at) return;
    const { status, isLast, start, at } = this.#end;
    const text = Buffer.concat(this.#pieces).toString('utf8', start, at);
    const call = this.#take();
    this.#pieces = [];
    this.#length = 0;
    this.#end = undefined;
    this.isUsed = true;
    if (isLast) this.destroy();
    // It does not keep the process alive.
    else this.#socket.unref();
    call.resolve({ status, text });
  }

  /** Reads the head of an answer. Returns whether it is complete. */
  #readHead() {
    const read = Buffer.concat(this.#pieces);
    this.#pieces = [read];
    const at = read.indexOf(HEAD_END);
    if (at === -1) {
      if (read.length > HEAD_BYTES_MAX) this.#fail(new Error(`the head of the answer exceeds ${HEAD_BYTES_MAX} bytes`));
      return false;
    }
    const head = read.toString('latin1', 0, at);
    const [, status] = /^HTTP\/1\.1 (\d{3}) /.exec(head) ?? [];
    const [, length] = /\r\ncontent-length: *(\d+) *(?:\r\n|$)/i.exec(head) ?? [];
    const { bytesMax } = this.#call;
    if (status === undefined || length === undefined) this.#fail(new Error('the answer has no status or no length'));
    else if (Number(length) > bytesMax) this.#fail(new Error(`the answer is longer than the limit of ${bytesMax} bytes`));
    if (this.#call === undefined) return false;
    const start = at + HEAD_END.length;
    const isLast = /\r\nconnection: *close/i.test(head);
    this.#end = { status: Number(status), isLast, start, at: start + Number(length) };
    return true;
  }

  #fail(error) {
    // A kept connection may be closed before the request arrives, such as in a restart of the server.
    const isStale = this.isUsed && this.#length === 0 && ['ECONNRESET', 'EPIPE'].includes(error.code);
    this.#take()?.reject(Object.assign(error, { isStale }));
    this.destroy();
  }

  #take() {
    const call = this.#call;
    this.#call = undefined;
    clearTimeout(call?.timer);
    call?.signal?.removeEventListener('abort', this.#abort);
    return call;
  }
}

/** The connections of a sweep. */
class KeptConnections {
  /** Those that wait for a call, by address. */
  #idle = new Map();
  #all = new Set();

  async exchange(host, request, options) {
    const address = `${host.host}:${host.port}`;
    if (!this.#idle.has(address)) this.#idle.set(address, []);
    const idle = this.#idle.get(address);
    for (;;) {
      const connection = this.#open(idle) ?? this.#connect(host);
      try {
        return await connection.exchange(request, options);
      } catch (error) {
        if (!error.isStale) throw error;
      } finally {
        if (connection.isOpen) idle.push(connection);
        else this.#all.delete(connection);
      }
    }
  }

  #connect(host) {
    const connection = new KeptConnection(host);
    this.#all.add(connection);
    return connection;
  }

  /** Returns an idle connection that is still open. */
  #open(idle) {
    for (;;) {
      const connection = idle.pop();
      if (connection === undefined || connection.isOpen) return connection;
      this.#all.delete(connection);
    }
  }

  destroy() {
    for (const connection of this.#all) connection.destroy();
  }
}

module.exports = { KeptConnections };
