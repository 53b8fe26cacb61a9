'use strict';

// Every verb of the installed package, with node-zookeeper-client as the client.

const assert = require('node:assert/strict');
const { spawn } = require('node:child_process');
const { once } = require('node:events');
const fs = require('node:fs');
const net = require('node:net');
const os = require('node:os');
const path = require('node:path');
const { setTimeout: sleep } = require('node:timers/promises');
const test = require('node:test');
const { inspect, promisify } = require('node:util');
const zookeeper = require('node-zookeeper-client');
const { MinikeeperError, Server, Universe, startServer, tellIfFailed, withServer: testWithServer } = require('minikeeper');

const PATIENCE_MS = 30_000;
const ALL_VERBS = process.env.MINIKEEPER_ALL_VERBS !== undefined;
const within = () => ({ signal: AbortSignal.timeout(PATIENCE_MS) });

/** Connects a client, and adds calls that return promises. */
async function connect(server) {
  const client = zookeeper.createClient(server.connectString, { sessionTimeout: 10_000, spinDelay: 50, retries: 0 });
  const connected = once(client, 'connected', within());
  client.connect();
  await connected;
  const call = (name) => promisify(client[name].bind(client));
  return Object.assign(client, {
    make: (where, data = null, mode = zookeeper.CreateMode.PERSISTENT) => call('create')(where, data, mode),
    has: async (where) => (await call('exists')(where)) !== null,
  });
}

/** Defines a test with its own server and client; skips it if the program lacks one of its verbs. */
function withServer(name, verbs, body) {
  test(name, async (t) => {
    const server = await startServer();
    t.after(() => server.stop());
    const answer = await fetch(`http://${server.address}/v1/openapi.json`);
    const { paths } = await answer.json();
    const missing = verbs.filter((verb) => paths[`/v1/${verb}`] === undefined);
    if (missing.length > 0 && !ALL_VERBS) return t.skip(`the program has no verb ${missing.join(', ')}`);
    const client = await connect(server);
    t.after(() => client.close());
    return body(server, client, t);
  });
}

function listens(port) {
  return new Promise((resolve, reject) => {
    const socket = net.connect(port, '127.0.0.1');
    socket.once('connect', () => resolve(true)).once('connect', () => socket.destroy());
    socket.once('error', (error) => (error.code === 'ECONNREFUSED' ? resolve(false) : reject(error)));
  });
}

// Answers.

withServer('locks and advice print as text', ['locks', 'advise'], async (server, client) => {
  await server.seed({ '/locks/printer': '' });
  await client.make('/locks/printer/00000000000000000000000000000000__lock__', null, zookeeper.CreateMode.EPHEMERAL_SEQUENTIAL);
  for (const answer of [await server.locks(), await server.advise()]) {
    assert.notEqual(answer.text, '');
    assert.equal(inspect(answer), answer.text);
    assert.equal(`${answer}`, answer.text);
    // Otherwise it is an object as any other.
    assert.deepEqual(answer, { ...answer });
    assert.deepEqual(JSON.parse(JSON.stringify(answer)), { ...answer });
  }
  assert.match(String(await server.locks()), /^mutex \/locks\/printer /);
});

withServer('resource is unsafe if two are inside, and refuses lower tokens', ['resource_enter', 'resource_verdict'], async (server) => {
  await server.withResource('printer', {}, async (first) => {
    await server.withResource('printer', {}, () => {});
    assert.equal((await server.resourceVerdict('printer')).verdict, 'undecided');
    assert.equal(await first.write(), true);
  });
  assert.equal((await server.resourceVerdict('printer')).verdict, 'unsafe');
  await server.withResource('fenced', { token: 1 }, async (first) => {
    await server.withResource('fenced', { token: 2, holder: 'second' }, () => {});
    assert.equal(await first.write(), false);
  });
  assert.equal((await server.resourceVerdict('fenced')).verdict, 'safe');
});

withServer('journal that differs is a failed assertion', ['verify'], async (server, client) => {
  await client.make('/a');
  await assert.rejects(server.verify({ path: '/a', exactly: 3 }), (error) => {
    assert(error instanceof assert.AssertionError);
    assert.equal(error.code, 'ERR_ASSERTION');
    assert.equal(error.status, 409);
    assert.match(error.message, /\/a/);
    return true;
  });
  await assert.rejects(server.verify({ exactly: 1, atMost: 2 }), { name: 'MinikeeperError', status: 400 });
});

withServer('empty tree has the znode of the server and exports nothing', ['children', 'export_tree'], async (server) => {
  assert.deepEqual(await server.children('/'), ['zookeeper']);
  assert.deepEqual(await server.exportTree(), {});
});

// The program.

test('stopped server starts again on its port', async () => {
  const server = await startServer();
  const { port } = server;
  assert.equal(await server.start(), server);
  await server.stop();
  await server.stop();
  assert.equal(await listens(port), false);
  await server.start();
  assert.equal(server.port, port);
  assert.equal(await listens(port), true);
  await server.stop();
});

test('data directory keeps the last save of a killed server', async (t) => {
  const dataDir = fs.mkdtempSync(path.join(os.tmpdir(), 'minikeeper-'));
  t.after(() => fs.rmSync(dataDir, { recursive: true }));
  const server = await startServer({ dataDir });
  const client = await connect(server);
  await client.make('/saved');
  await server.save();
  await client.make('/lost');
  client.close();
  await server.kill();
  await server.start();
  assert.deepEqual((await server.children('/')).sort(), ['saved', 'zookeeper']);
  await server.stop();
});

test('options reach the program', async () => {
  const server = await startServer({ tickTimeMs: 100, options: ['--log', 'info'] });
  const client = await connect(server);
  // 20 ticks at most.
  assert.equal((await server.sessions())[0].timeoutMs, 2_000);
  assert.match(server.log, /session opened/);
  client.close();
  await server.stop();
});

test('errors say what is wrong', async () => {
  await assert.rejects(startServer({ options: ['--bogus'] }), /exited with code 2 at startup: error: unexpected argument '--bogus'/);
  await assert.rejects(startServer({ program: '/no/such' }), /no program at "\/no\/such"$/);
  await assert.rejects(startServer({ program: 'minikeeper' }), /no program at ".*\/minikeeper"; "minikeeper" must be a path, such as /);
  await assert.rejects(new Universe('127.0.0.1:1').dump(), /dump: no answer .*; is a server running there\?$/);
  await assert.rejects(new Server().dump(), /is not running: call start\(\)/);
  assert.throws(() => new Universe('localhost'), /HOST:PORT/);
});

test('unknown options are refused, with the nearest', async () => {
  const server = (name) => `unknown option "${name}"; did you mean "tickTimeMs"? The options are port, dataDir, `;
  for (const name of ['tickTime', 'tickTimeMS', 'tick_time_ms']) {
    const refused = (error) => error instanceof TypeError && error.message.includes(server(name));
    await assert.rejects(startServer({ [name]: 200 }), refused);
    assert.throws(() => new Server({ [name]: 200 }), refused);
    assert.throws(() => testWithServer({ [name]: 200 }, () => {}), refused);
  }
  for (const wrong of ['2181', 2181, null, []]) {
    await assert.rejects(startServer(wrong), /^TypeError: Server: the options must be an object, not /);
  }
  const universe = () => new Universe('127.0.0.1:1', { tokn: 'secret' });
  assert.throws(universe, /^TypeError: Universe: unknown option "tokn"; did you mean "token"\?/);
  await assert.rejects(tellIfFailed({ name: 'a' }, undefined, { story: 'off' }), /tellIfFailed: unknown option "story"; did you mean "stories"/);
});

test('universe of a running server needs its token', async () => {
  const server = await startServer({ options: ['--control-token', 'secret'] });
  await assert.rejects(server.dump(), (error) => error instanceof MinikeeperError && error.status === 401);
  assert.match(await new Universe(server.address, { token: 'secret' }).dump(), /znode \//);
  await server.stop();
});

test('server exits when its parent is killed', async () => {
  const script = `require('minikeeper').startServer().then((s) => console.log(s.port)); process.stdin.resume();`;
  const parent = spawn(process.execPath, ['-e', script], { cwd: __dirname, stdio: ['pipe', 'pipe', 'inherit'] });
  const [line] = await once(parent.stdout, 'data', within());
  assert.equal(await listens(Number(line)), true);
  parent.kill('SIGKILL');
  for (const end = Date.now() + PATIENCE_MS; await listens(Number(line)); await sleep(10)) {
    assert.ok(Date.now() < end, 'the server outlives its parent');
  }
});

test('server that is not stopped does not keep its parent alive', async () => {
  const script = `require('minikeeper').startServer().then((s) => console.log(s.port));`;
  const parent = spawn(process.execPath, ['-e', script], { cwd: __dirname, stdio: ['ignore', 'pipe', 'inherit'] });
  assert.deepEqual(await once(parent, 'exit', within()), [0, null]);
});

// Time.

withServer('clock runs', ['now'], async (server) => {
  const first = await server.now();
  assert.equal(first.isFrozen, false);
  assert.ok((await server.now()).elapsedMs >= first.elapsedMs);
  assert.ok(first.wallMs > 1_700_000_000_000);
});

withServer('frozen clock is advanced', ['freeze', 'unfreeze', 'advance'], async (server) => {
  await server.freeze();
  const { elapsedMs, isFrozen } = await server.now();
  assert.equal(isFrozen, true);
  await server.advance({ byMs: 3_600_000 });
  assert.equal((await server.now()).elapsedMs, elapsedMs + 3_600_000);
  await server.unfreeze();
});

withServer('connected client survives an advance unless it is strict', ['freeze', 'advance'], async (server, client) => {
  await client.make('/mine', null, zookeeper.CreateMode.EPHEMERAL);
  await server.freeze();
  await server.advance({ byMs: 3_600_000 });
  assert.equal(await client.has('/mine'), true);
  await server.advance({ byMs: 3_600_000, strict: true });
  assert.ok(!(await server.children('/')).includes('mine'));
});

withServer('auto advance moves the clock when clients are idle', ['auto_advance', 'freeze'], async (server, client) => {
  await client.make('/mine', null, zookeeper.CreateMode.EPHEMERAL);
  await server.freeze();
  const { elapsedMs } = await server.now();
  // A session that is not silenced would live on, however far the clock moves.
  await server.silence(client);
  await server.autoAdvance({ idleMs: 100 });
  await server.untilChildren('/', 1);
  await server.autoAdvance({ idleMs: null });
  // On the frozen clock, the session would never have expired without autoAdvance.
  assert.ok((await server.now()).elapsedMs >= elapsedMs + 9_000);
});

// Sessions.

withServer('expire takes a session in every form', ['sessions', 'expire'], async (server, client) => {
  await client.make('/mine', null, zookeeper.CreateMode.EPHEMERAL);
  const [session] = await server.sessions();
  const bytes = client.getSessionId();
  assert.equal(BigInt(session.id), bytes.readBigUInt64BE());
  assert.equal(session.isConnected, true);
  assert.equal(session.isUnbound, false);
  assert.match(session.lastOperation.name, /^create/);
  assert.ok(session.lastOperation.atMs <= (await server.now()).elapsedMs);
  assert.equal(await server.expire(client), 1);
  assert.deepEqual(await server.children('/'), ['zookeeper']);
  for (const who of [bytes, bytes.readBigInt64BE(), session.id, { session: session.id }]) {
    await assert.rejects(server.expire(who), { status: 404, message: /^expire: no session matches session 0x/ });
    assert.equal(await server.expire(who, { allowNone: true }), 0);
  }
  for (const who of [undefined, null, {}, { owner: '/a', address: 'b' }, { name: 'c' }]) {
    await assert.rejects(server.expire(who), TypeError);
  }
});

withServer('verb without a match is an error', ['expire', 'inject'], async (server) => {
  const nobody = [1n, { address: '127.0.0.1:1' }, { identity: 'digest:x' }, { owner: '/x' }];
  for (const verb of ['expire', 'disconnect', 'silence', 'unsilence']) {
    for (const who of nobody) {
      await assert.rejects(server[verb](who), { status: 404 });
      assert.equal(await server[verb](who, { allowNone: true }), 0);
    }
  }
  for (const missing of [
    () => server.get('/x'),
    () => server.children('/x'),
    () => server.restore(999),
    () => server.dropSnapshot(999),
    () => server.removeFault(999),
    () => server.untilHit(999),
    () => server.dropUniverse('x'),
  ]) {
    await assert.rejects(missing(), { status: 404 });
  }
  const never = { action: 'cut', path: '/x' };
  await assert.rejects((await server.inject(never)).remove(), { status: 409, message: /never acted/ });
  await assert.rejects(server.withFault(never, () => 1), { status: 409, message: /never acted/ });
  await assert.rejects(server.withFault(never, () => Promise.reject(new Error('mine'))), /^Error: mine$/);
  assert.equal(await server.withFault({ ...never, optional: true }, (fault) => fault.hits()), 0);
  assert.deepEqual(await server.faults(), []);
});

withServer('misuse says what to do', ['inject', 'create_universe'], async (server) => {
  const mine = await server.createUniverse('mine');
  for (const [call, message] of [
    [() => server.inject({ action: 'drop' }), /drop-request/],
    [() => server.inject({ action: 'error', error: 'NOSUCH' }), /NONODE/],
    [() => server.inject({ action: 'cut', op: 'getdata' }), /getData/],
    [() => server.inject({ action: 'cut', path: '/q/' }), /write \/q for the znode/],
    [() => server.untilChildren('/q/', 0), /slash/],
    [() => mine.inject({ action: 'refuse' }), /server's own universe/],
    [() => mine.goDown(), /the whole server/],
    [() => mine.comeUp(), /the whole server/],
    [() => mine.restart(), /the whole server/],
    [() => mine.save(), /the whole server/],
  ]) {
    await assert.rejects(call(), { status: 400, message });
  }
});

withServer('errors have the names of this package', ['inject', 'create_universe'], async (server) => {
  const mine = await server.createUniverse('mine');
  for (const [call, message] of [
    [() => server.advance({}), /^parameter byMs: missing$/],
    [() => server.expire('0x1'), /set allowNone to permit that$/],
    [() => server.advance({ by: 1 }), /^unknown parameter "by"; expected byMs, strict$/],
    [() => mine.goDown(), /call it without a universe: server\.goDown\(\)$/],
    // A path is the caller's.
    [() => server.get('/x by_ms y'), /^no znode "\/x by_ms y"$/],
  ]) {
    await assert.rejects(call(), { message });
  }
  const { paths } = await (await fetch(`http://${server.address}/v1/openapi.json`)).json();
  const { WIRE_NAMES } = require(path.join(path.dirname(require.resolve('minikeeper')), 'control.js'));
  for (const { get = {}, post = {} } of Object.values(paths)) {
    const names = [...(get.parameters ?? []), ...(post.parameters ?? [])].map(({ name }) => name);
    names.push(...Object.keys(post.requestBody?.content?.['application/json']?.schema?.properties ?? {}));
    // No option of this package is data in base64.
    const known = [...WIRE_NAMES, 'data_base64'];
    for (const name of names) assert.ok(!name.includes('_') || known.includes(name), name);
  }
});

withServer('session without a universe yet is found', ['create_universe', 'until_sessions'], async (server, client) => {
  const mine = await server.createUniverse('mine');
  await client.has('/');
  const other = await connect(mine);
  await mine.untilSessions(1);
  const [session] = await mine.sessions();
  assert.equal(session.isUnbound, true);
  assert.equal(await mine.expire(other), 1);
  await mine.untilSessions(0);
  other.close();
});

withServer('ensureReady brings up a server that was left down', ['go_down', 'come_up'], async (server) => {
  await server.goDown();
  await server.ensureReady();
  assert.equal(await listens(server.port), true);
  await new Universe(server.address).goDown();
  await server.ensureReady();
  await server.freeze();
  // This fault refuses verbs too.
  await server.inject({ action: 'refuse' });
  await server.ensureReady();
  assert.deepEqual(await server.faults(), []);
  assert.equal((await server.now()).isFrozen, false);
  await server.stop();
  await (await connect(await server.ensureReady())).close();
});

withServer('owner of a path is expired', ['expire'], async (server, client, t) => {
  await client.make('/mine', null, zookeeper.CreateMode.EPHEMERAL);
  try {
    assert.equal(await server.expire({ owner: '/mine' }), 1);
  } catch (error) {
    if (error.status !== 409 || ALL_VERBS) throw error;
    t.skip(error.message);
  }
});

withServer('disconnected client keeps its session', ['disconnect', 'disconnect_all'], async (server, client) => {
  const id = client.getSessionId().toString('hex');
  for (const cut of [() => server.disconnect(client), () => server.disconnectAll()]) {
    const states = [once(client, 'disconnected', within()), once(client, 'connected', within())];
    await cut();
    await Promise.all(states);
    assert.equal(client.getSessionId().toString('hex'), id);
  }
});

withServer('silenced client is served again', ['silence', 'unsilence'], async (server, client) => {
  assert.equal(await server.silence(client), 1);
  assert.equal((await server.sessions())[0].isSilenced, true);
  // Sends nothing while silenced: the server would drop it, and the client would wait for the reply.
  assert.equal(await server.unsilence(client), 1);
  assert.equal((await server.sessions())[0].isSilenced, false);
  assert.equal(await client.has('/'), true);
});

// State.

withServer('tree is read without a client', ['get', 'children', 'dump'], async (server, client) => {
  await client.make('/a', Buffer.from([0xff]));
  await client.make('/a/b', Buffer.from('ä'));
  const { data, stat } = await server.get('/a');
  assert.deepEqual(data, Buffer.from([0xff]));
  assert.equal(stat.num_children, 1);
  assert.equal((await server.get('/a/b')).data.toString(), 'ä');
  assert.deepEqual(await server.children('/a'), ['b']);
  assert.match(await server.dump(), /\/a\/b/);
  await assert.rejects(server.get('/none'), { name: 'MinikeeperError', status: 404, message: 'no znode "/none"' });
});

withServer('save without a directory says what to do', ['save'], async (server) => {
  await assert.rejects(server.save(), { status: 409, message: /--data-dir/ });
});

withServer('seeded tree is exported the same', ['seed', 'export_tree'], async (server, client) => {
  await server.seed({ '/app/config': 'on' });
  assert.equal(await client.has('/app/config'), true);
  await server.seed(await server.exportTree());
  await server.seed(await server.exportTree('/', { format: 'yaml' }));
});

withServer('bytes are seeded, and equal trees have equal dumps', ['seed', 'dump'], async (server) => {
  const tree = { '/raw': Buffer.of(0xff, 0), '/box': { data: Buffer.of(0xfe), container: true }, '/text': 'x' };
  const [mine, other] = [await server.createUniverse('mine'), await server.createUniverse('other')];
  await mine.seed(tree);
  for (const path of Object.keys(tree).reverse()) await other.seed({ [path]: tree[path] });
  assert.deepEqual((await mine.get('/raw')).data, Buffer.of(0xff, 0));
  assert.equal(await mine.dump(), await other.dump());
  assert.match(await mine.dump(), /^znode \/raw bytes "\\xff\\x00"$/m);
});

withServer('restore goes back to a snapshot', ['snapshot', 'restore', 'drop_snapshot'], async (server, client) => {
  const mark = await server.snapshot();
  await client.make('/new');
  await server.restore(mark);
  assert.deepEqual(await server.children('/'), ['zookeeper']);
  await server.dropSnapshot(mark);
  await assert.rejects(server.restore(mark), MinikeeperError);
});

withServer('exported data is imported again', ['export_data', 'import_data'], async (server, client, t) => {
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'minikeeper-'));
  t.after(() => fs.rmSync(dir, { recursive: true }));
  await client.make('/kept', Buffer.from('x'));
  await server.exportData(dir);
  await server.importData(dir);
  assert.equal((await server.get('/kept')).data.toString(), 'x');
});

// Faults.

const FAULTS = ['inject', 'faults', 'remove_fault', 'reset_faults', 'until_hit'];

withServer('lost reply leaves the created znode', FAULTS, async (server, client) => {
  const fault = await server.inject({ action: 'lose-reply', op: 'create', count: 1 });
  await assert.rejects(client.make('/orphan'), /CONNECTION_LOSS/);
  await fault.untilHit();
  assert.equal(await fault.hits(), 1);
  assert.ok((await server.children('/')).includes('orphan'));
  assert.equal(await fault.remove(), 1);
  assert.equal(await fault.hits(), 1);
  assert.deepEqual(await server.faults(), []);
});

withServer('faults are removed one by one or together', FAULTS, async (server, client) => {
  const refuse = () => server.inject({ action: 'error', error: 'NODEEXISTS', op: 'create' });
  const fault = await refuse();
  await assert.rejects(client.make('/a'), /NODE_EXISTS/);
  assert.deepEqual((await server.faults()).map(({ hits }) => hits), [1]);
  await server.removeFault(fault);
  await client.make('/a');
  await refuse();
  await refuse();
  await server.resetFaults();
  assert.deepEqual(await server.faults(), []);
  await client.make('/b');
});

withServer('fault tells what it acted on last', FAULTS, async (server, client) => {
  const fault = await server.inject({ action: 'trigger', op: 'request', client: 1, path: '/told/**' });
  assert.equal(await fault.lastHit(), null);
  await client.make('/told');
  assert.equal(await fault.lastHit(), null);
  await client.make('/told/a');
  const { session, op, path, xid } = await fault.lastHit();
  assert.deepEqual([BigInt(session), path], [client.getSessionId().readBigUInt64BE(), '/told/a']);
  assert.match(op, /^create/);
  assert.ok(Number.isInteger(xid));
  const [shown] = await server.faults();
  assert.deepEqual([shown.client, shown.last_hit.path], [1, '/told/a']);
  await fault.remove();
  await assert.rejects(fault.lastHit(), { status: 404, message: /removed/ });
});

withServer('session expires and replies wait by faults', FAULTS, async (server, client) => {
  await server.freeze();
  await server.withFault({ action: 'delay-reply', op: 'create', path: '/late', delayMs: 1_000 }, async (fault) => {
    const made = client.make('/late');
    await fault.untilHit();
    assert.ok((await server.children('/')).includes('late'));
    await server.advance({ byMs: 1_000 });
    await made;
  });
  const expired = once(client, 'expired', within());
  await server.withFault({ action: 'expire', op: 'create', path: '/last' }, () => client.make('/last'));
  await expired;
  assert.ok((await server.children('/')).includes('last'));
});

// A test passed though its fault had not acted.
test('passing test fails at its end if a fault has never acted', async () => {
  const run = (use) => testWithServer({ stories: 'off' }, use)();
  const never = { action: 'cut', path: '/orders' };
  const sentence = (fault) => `fault ${fault} (cut, path "/orders"): ended and never acted; messages that matched it: 0; check its `;
  const refused = (...faults) => (error) => {
    const lines = error.message.split('\n');
    assert.deepEqual(lines.map((line) => line.split('op,')[0]), faults.map(sentence));
    return error instanceof MinikeeperError && error.status === 409;
  };
  let address;
  const inject = async (server) => {
    ({ address } = server);
    await server.inject(never);
    await server.inject({ ...never, optional: true });
    await server.inject(never);
  };
  await assert.rejects(run(inject), refused(1, 3));
  // The server stops, too.
  assert.equal(await listens(Number(address.split(':')[1])), false);
  await assert.rejects(run(async (server) => (await server.createUniverse('other')).inject(never)), refused(1));
  await assert.rejects(run(async (server) => server.goDown().then(() => server.inject(never))), refused(1));
  await assert.rejects(run(async (server) => server.inject(never).then(() => assert.fail('mine'))), /mine/);
  for (const passes of [
    async (server) => server.inject({ ...never, optional: true }),
    async (server) => server.inject(never).then(() => server.resetFaults()),
    async (server) => server.inject({ action: 'refuse' }),
    async (server) => server.inject(never).then(() => server.kill()),
    async (server) => server.stop(),
  ]) {
    await run(passes);
  }
});

// Restart.

withServer('restart keeps what the argument says', ['restart', 'go_down', 'come_up'], async (server, client) => {
  await client.make('/data');
  await server.restart();
  await server.restart({ keep: 'data' });
  assert.ok((await server.children('/')).includes('data'));
  const down = await server.goDown();
  assert.equal(await listens(server.port), false);
  assert.ok((await server.children('/')).includes('data'));
  await server.comeUp({ keep: 'nothing' });
  assert.ok(!(await server.children('/')).includes('data'));
  await assert.rejects(new Universe(down).now(), MinikeeperError);
  await new Universe(await server.goDown()).comeUp();
  await server.now();
});

// Universes.

const UNIVERSES = ['create_universe', 'universes', 'drop_universe', 'fork'];

withServer('universes share nothing', UNIVERSES, async (server, client) => {
  await client.make('/here');
  const other = await server.createUniverse('other');
  const copy = await server.fork('copy');
  assert.deepEqual((await server.universes()).sort(), ['copy', 'other']);
  assert.ok(!(await other.children('/')).includes('here'));
  assert.ok((await copy.children('/')).includes('here'));
  await other.dropUniverse();
  await server.dropUniverse('copy');
  assert.deepEqual(await server.universes(), []);
});

// Waiting.

const WAITS = ['until_watched', 'until_children', 'until_contenders', 'until_sessions', 'until_idle'];

withServer('waits return when their condition holds, or say what was seen', WAITS, async (server, client) => {
  await promisify(client.getChildren.bind(client))('/', () => {});
  await server.untilWatched('/');
  await server.untilChildren('/', 1);
  await client.make('/lock');
  await client.make('/lock/lock-', null, zookeeper.CreateMode.EPHEMERAL_SEQUENTIAL);
  await server.untilContenders('/lock', 1);
  await server.untilSessions(1);
  await server.untilIdle({ quietMs: 1 });
  await assert.rejects(server.untilChildren('/', 100, { withinMs: 1 }), { status: 408 });
});

// Several servers of an ensemble.

test('client fails over between the servers of an ensemble', async (t) => {
  const server = await startServer({ servers: 3 });
  t.after(() => server.stop());
  const client = await connect(server);
  t.after(() => client.close());
  await client.make('/owned', null, zookeeper.CreateMode.EPHEMERAL);
  const session = `0x${client.getSessionId().toString('hex').replace(/^0+/, '')}`;
  const itsServer = async () => (await server.servers()).find(({ sessions }) => sessions.includes(session))?.id;
  const before = await itsServer();
  const reconnected = once(client, 'connected', within());
  await server.setServer(before, { mode: 'down' });
  await reconnected;
  assert.ok(await client.has('/owned'));
  assert.notEqual(await itsServer(), before);
  // Control goes through any server that listens.
  await server.setServer(before, { mode: 'up' });
  await server.setServer(1, { mode: 'down' });
  await server.ensureReady();
  assert.deepEqual(
    (await server.servers()).map(({ mode }) => mode),
    ['up', 'up', 'up'],
  );
});
