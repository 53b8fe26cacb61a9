'use strict';

// Servers that are not what they seem: one that names files outside of the folder for stories, and answers that do not end.

const assert = require('node:assert/strict');
const { once } = require('node:events');
const fs = require('node:fs');
const http = require('node:http');
const net = require('node:net');
const os = require('node:os');
const path = require('node:path');
const test = require('node:test');
const { Universe, sweep } = require('minikeeper');

// The package does not export them.
const internal = (file) => require(path.join(__dirname, 'node_modules', 'minikeeper', file));

async function listening(t, server) {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.close();
    server.closeAllConnections?.();
  });
  return `127.0.0.1:${server.address().port}`;
}

function temporary(t) {
  const folder = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), 'minikeeper-')));
  t.after(() => fs.rmSync(folder, { recursive: true }));
  return folder;
}

/** A server whose stories and universes have names that lead out of every folder. */
function leading(t) {
  const story = { text: 'a story\n', html: 'owned', json: 'owned', file_name: '../package', failure: '', title: '' };
  const report = { is_clean: false, summary: 'bad', text: 'bad', html: 'owned', failures: ['../../package'] };
  const answers = {
    ...{ story, sweep_report: report, sweep_start: { sweep: 1 }, sweep_end: { is_reached: true }, drop_universe: {} },
    create_universe: { name: '../..' },
  };
  let runs = 0;
  const server = http.createServer((request, response) => {
    request.resume();
    const verb = new URL(request.url, 'http://a').pathname.split('/').pop();
    runs += verb === 'sweep_next' ? 1 : 0;
    const next = { run: runs < 3 ? runs : 0, points: '../../package', sentence: 's' };
    const { port } = server.address();
    const answer = verb === 'sweep_next' ? next : answers[verb] ?? {};
    response.end(JSON.stringify({ ...answer, connect_string: `127.0.0.1:${port}/..` }));
  });
  return listening(t, server);
}

test('no name of a server leads out of the folder for stories', async (t) => {
  const work = temporary(t);
  const stories = path.join(work, 'stories');
  const universe = new Universe(await leading(t));
  const { tell } = internal('story.js');
  // It prints the story.
  const { write } = process.stderr;
  process.stderr.write = () => true;
  try {
    await tell(universe, '../../a test', new Error('on purpose'), stories);
  } finally {
    process.stderr.write = write;
  }
  const fails = () => {
    throw new Error('on purpose');
  };
  await sweep(universe, fails, { title: '/etc/../../x', stories, throws: false });
  assert.deepEqual(fs.readdirSync(work), ['stories']);
  for (const name of fs.readdirSync(stories)) assert.match(name, /^(\.gitignore|[a-z][\w.-]*\.(html|json))$/);
  assert.ok(fs.readdirSync(stories).length > 4);
});

test('names of files are those that the server would give', () => {
  const { fileNameOf } = internal('story.js');
  for (const [title, name] of [
    ['order.test.js', 'order.test.js'],
    ['order.test.js/places one', 'order.test.js-places-one-'],
    ['a::b', 'a.b'],
    ['../../package', 'package'],
    ['..', 'story'],
    ['/', 'story'],
    ['', 'story'],
    ['a\0b', 'a-b-'],
    ['ä', 'story'],
  ]) {
    assert.ok(fileNameOf(title).startsWith(name), `${title}: ${fileNameOf(title)}`);
  }
  const long = [1, 2].map((number) => fileNameOf(`${'x'.repeat(300)}${number}`));
  assert.notEqual(...long);
  assert.ok(long[0].length <= 100);
});

test('place of an error is a line of the program', () => {
  const { placeOf } = internal('story.js');
  assert.match(placeOf(new Error('here')), /^hostile\.test\.js:\d+$/);
  for (const [line, place] of [
    ['    at use (/shop/order.js:17:3)', 'order.js:17'],
    ['    at async /shop/order.js:18:3', 'order.js:18'],
    ['    at file:///shop/order.mjs:19:3', 'order.mjs:19'],
    ['    at async Shop.use (file:///my shop/order.mjs:20:3)', 'order.mjs:20'],
    ['    at node:internal/process/task_queues:95:5', undefined],
    ['    at use (/shop/node_modules/client/index.js:1:1)', undefined],
    ['    at new Promise (<anonymous>)', undefined],
    ['', undefined],
  ]) {
    assert.equal(placeOf({ stack: `Error: at x:1:2\n${line}` }), place);
  }
  assert.equal(placeOf(undefined), undefined);
});

/** A server that answers any request with this head, and then with `piece` again and again. */
function endless(t, head, piece) {
  const server = net.createServer((socket) => {
    socket.on('error', () => {});
    const more = () => {
      while (!socket.destroyed && socket.write(piece));
    };
    socket.once('data', () => {
      socket.write(head);
      more();
    });
    socket.on('drain', more);
    t.after(() => socket.destroy());
  });
  return listening(t, server);
}

for (const [what, head] of [
  ['without a length', 'HTTP/1.1 200 OK\r\n\r\n'],
  ['in chunks', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'],
  ['of an error', 'HTTP/1.1 400 Bad Request\r\n\r\n'],
]) {
  test(`answer that does not end is refused, ${what}`, async (t) => {
    const piece = what === 'in chunks' ? `10000\r\n${'x'.repeat(65_536)}\r\n` : 'x'.repeat(65_536);
    const address = await endless(t, head, piece);
    await assert.rejects(new Universe(address).dump(), {
      name: 'MinikeeperError',
      message: `dump: the answer of ${address} is longer than the limit of 268435456 bytes; is it a minikeeper?`,
    });
  });
}

test('head of an answer that does not end is refused', async (t) => {
  const address = await endless(t, 'HTTP/1.1 200 OK\r\n', `x: ${'x'.repeat(1_000)}\r\n`);
  await assert.rejects(new Universe(address).dump(), { name: 'MinikeeperError', message: /Header overflow/ });
});

test('answer that takes for ever is refused', async (t) => {
  const { limits } = internal('control.js');
  const { ms } = limits;
  t.after(() => Object.assign(limits, { ms }));
  // Less than the patience that is added to it, which has passed when this is reached.
  limits.ms = -29_900;
  for (const [head, piece] of [['HTTP/1.1 200 OK\r\n\r\n', ''], ['', 'HTTP/1.1 102 Processing\r\n\r\n']]) {
    const address = await endless(t, head, Buffer.from(piece || ' '));
    await assert.rejects(new Universe(address).dump(), { message: /did not end within 100 ms|longer than the limit/ });
  }
});

/** A control API whose sweep keeps its connections to a server that answers each request so, given its number and its socket. */
async function keeping(t, answer) {
  const { Control } = internal('control.js');
  const { KeptConnections } = internal('kept.js');
  let count = 0;
  const server = net.createServer((socket) => {
    socket.on('error', () => {});
    socket.on('data', () => {
      count += 1;
      answer(count, socket);
    });
    t.after(() => socket.destroy());
  });
  const control = new Control(await listening(t, server));
  control.kept = new KeptConnections();
  t.after(() => control.kept.destroy());
  return control;
}

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 18\r\n\r\n{"text":"\u00e4\u00f6\u00fc"}\n';

test('kept connection is used again, in whatever pieces answers come', async (t) => {
  const sockets = new Set();
  const bytes = Buffer.from(OK);
  const control = await keeping(t, (count, socket) => {
    sockets.add(socket);
    socket.setNoDelay();
    const send = (at) => {
      if (at < bytes.length) socket.write(bytes.subarray(at, at + count), () => setImmediate(send, at + count));
    };
    send(0);
  });
  for (let count = 1; count <= 8; count += 1) assert.deepEqual(await control.act('freeze'), { text: '\u00e4\u00f6\u00fc' });
  assert.equal(sockets.size, 1);
  await Promise.all([control.act('freeze'), control.read('now')]);
  assert.equal(sockets.size, 2);
});

test('kept connection that the server has closed is replaced', async (t) => {
  const sockets = new Set();
  const control = await keeping(t, (count, socket) => {
    sockets.add(socket);
    // The third request closes the connection; the fifth answer says that it is the last one of its connection.
    if (count === 3) socket.destroy();
    else socket.write(count === 5 ? OK.replace('\r\n', '\r\nConnection: close\r\n') : OK);
  });
  for (let count = 1; count <= 5; count += 1) await control.act('freeze');
  assert.equal(sockets.size, 3);
});

test('kept connection refuses what is no answer', async (t) => {
  const { limits } = internal('control.js');
  const answers = [
    ['HTTP/1.1 200 OK\r\n\r\n', /no status or no length/],
    ['SSH-2.0-x\r\nContent-Length: 1\r\n\r\n', /no status or no length/],
    [`HTTP/1.1 200 OK\r\nContent-Length: ${limits.bytes + 1}\r\n\r\n`, /longer than the limit of 268435456 bytes/],
    ['x'.repeat(20_000), /the head of the answer exceeds 16384 bytes/],
    ['HTTP/1.1 400 Bad Request\r\nContent-Length: 13\r\n\r\n{"error":"a"}', /^a$/],
    ['HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\noops', /^freeze: status 200: oops$/],
  ];
  for (const [answer, message] of answers) {
    const control = await keeping(t, (_, socket) => socket.write(answer));
    await assert.rejects(control.act('freeze'), { name: 'MinikeeperError', message });
  }
  // A server that is gone in the middle may have done it: it is not asked again.
  const cut = await keeping(t, (count, socket) => (count === 2 ? socket.end(OK.slice(0, 9)) : socket.write(OK)));
  await cut.act('freeze');
  await assert.rejects(cut.act('freeze'), { name: 'MinikeeperError', message: /the connection was closed/ });
  const silent = await keeping(t, () => {});
  const controller = new AbortController();
  const given = silent.act('freeze', {}, { signal: controller.signal });
  controller.abort();
  await assert.rejects(given, { message: /the call was given up/ });
});
