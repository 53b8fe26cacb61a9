// Every name of the package, with the type that it should have: types.test.js checks the types of this file, runs it, and
// compares what each verb returns with its type.

import {
  Fault,
  MinikeeperError,
  Server,
  startServer,
  sweep,
  SweepError,
  tellIfFailed,
  Universe,
  withServer,
  type Advice,
  type AllowedFailure,
  type ChangesSince,
  type Contender,
  type Deadlock,
  type EnsembleServer,
  type ErrorName,
  type FaultHit,
  type FaultOptions,
  type FindZnodes,
  type Finding,
  type InjectedFault,
  type Journal,
  type JournalEntry,
  type LastOperation,
  type ListChildren,
  type ListedChild,
  type ListedZnode,
  type Lock,
  type LockHistory,
  type Locks,
  type Now,
  type ResourceVerdict,
  type Seeded,
  type Session,
  type Stat,
  type Story,
  type SweepFault,
  type SweepNext,
  type SweepOptions,
  type SweepPlace,
  type SweepReport,
  type SweepRun,
  type TakenSnapshot,
  type Tree,
  type TreeFormat,
  type TreeListing,
  type Who,
  type Znode,
  type ZnodeChange,
} from 'minikeeper';

/** What is needed of a client. */
export interface Client {
  getSessionId(): Buffer;
  /** Creates a persistent znode, or an ephemeral one with a number, whose data is no text. */
  create(path: string, isQueued?: boolean): Promise<string>;
  /** Sets data, then sets it again and deletes the znode, in a multi. */
  change(path: string): Promise<void>;
  /** Checks whether a znode exists, and leaves a watch. */
  watch(path: string): Promise<void>;
}

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;

/** Fails to compile if the type of the value is another one than `Wanted`. */
function exactly<Wanted>(): <Given>(value: Given, ...fault: Same<Wanted, Given> extends true ? [] : [never]) => Given {
  return (value, ..._fault) => value;
}

export async function useEveryName(server: Server, first: Client, second: Client, folder: string): Promise<void> {
  const universe: Universe = server;

  const now = exactly<Now>()(await universe.now());
  exactly<number>()(now.elapsedMs + now.wallMs);
  exactly<boolean>()(now.isFrozen && now.hasJournal);
  await universe.freeze();
  await universe.advance({ byMs: 1, strict: false });
  await universe.autoAdvance({ idleMs: null });
  await universe.unfreeze();
  exactly<string>()(universe.address);
  exactly<string>()(universe.connectString);
  exactly<number>()(universe.port);
  exactly<string | undefined>()(universe.name);

  const seeded = await universe.seed({
    '/a': 'x',
    '/b': { data: Buffer.of(0xff), acl: ['world:anyone:cdrwa'] },
    '/c': { container: true },
    '/d': { ttl_ms: 10_000, data: null },
    '/e': Buffer.of(0xfe),
    '/f': null,
  });
  exactly<number>()(exactly<Seeded>()(seeded).created + seeded.changed);
  await universe.seed('/a: x\n');
  exactly<string>()(await universe.create('/g', Buffer.from('y'), { sequential: true, ttlMs: 1_000, container: undefined }));
  exactly<number>()(await universe.set('/a', 'z', { version: -1 }));
  const { data, stat }: Znode = await universe.get('/a');
  exactly<Buffer | null>()(data);
  exactly<string>()(exactly<Stat>()(stat).czxid);
  await universe.get('/f');
  exactly<string[]>()(await universe.children('/'));
  const listed: ListChildren = await universe.listChildren('/', '', 'a', 9);
  exactly<ListedChild | undefined>()(listed.children[0]);
  exactly<number>()(listed.total);
  exactly<boolean>()(listed.isTruncated);
  const found: FindZnodes = await universe.findZnodes('a', '/', 9, { inData: true });
  exactly<string | undefined>()(found.paths[0]);
  const tree: TreeListing = await universe.tree('/', 99);
  exactly<ListedZnode | undefined>()(tree.znodes[0]);
  exactly<string[]>()(await universe.acl('/a'));
  exactly<string>()(await universe.dump({ ids: true }));
  const exported = exactly<Tree>()(await universe.exportTree());
  await universe.seed(exported);
  exactly<string>()(await universe.exportTree('/', { format: 'yaml' }));
  const formats: TreeFormat[] = ['json'];
  exactly<string | Tree>()(await universe.exportTree('/a', { format: formats[0] }));

  const snapshot = exactly<number>()(await universe.snapshot());
  exactly<TakenSnapshot | undefined>()((await universe.snapshots())[0]);
  exactly<number>()(await universe.delete('/b', { recursive: true }));
  await universe.set('/a', 'other');
  await universe.create('/h');
  const changes: ChangesSince = await universe.changesSince(snapshot, 9);
  exactly<ZnodeChange | undefined>()(changes.changes[0]);
  await universe.restore(snapshot);
  await universe.dropSnapshot(snapshot);

  // Two locks, whose contenders wait for each other.
  const queue = (client: Client, lock: string, digit: number): Promise<string> =>
    client.create(`${lock}/_c_0e6a1a3a-6c1e-4b0d-9f0a-2f6a3b1c9d1${digit}-lock-`, true);
  await universe.seed({ '/locks/one': '', '/locks/two': '' });
  const ahead = [await queue(first, '/locks/one', 1), await queue(second, '/locks/two', 2)];
  await queue(second, '/locks/one', 3);
  await queue(first, '/locks/two', 4);
  await universe.create('/locks/two/_c_0e6a1a3a-6c1e-4b0d-9f0a-2f6a3b1c9d15-lock-', 'of nobody', { sequential: true });
  await second.watch(ahead[0] ?? '');
  await universe.untilWatched(ahead[0] ?? '', { withinMs: 10_000 });
  await universe.untilContenders('/locks/one', 2);
  await universe.untilChildren('/locks', 2);
  await universe.untilExists('/locks');
  await universe.untilSessions(2);
  await universe.untilIdle({ quietMs: 1 });
  const [session] = await universe.sessions();
  if (session === undefined) throw new Error('no session');
  exactly<Session>()(session);
  exactly<LastOperation | null>()(session.lastOperation);
  const report: Locks = await universe.locks();
  exactly<Deadlock | undefined>()(report.deadlocks[0]);
  const lock = exactly<Lock | undefined>()(report.locks[0]);
  exactly<Contender | undefined>()(lock?.waiters[0]);

  const delay: FaultOptions = { action: 'delay', op: 'create', path: '/i', delayMs: 1, count: 1, probability: 1, seed: 7 };
  await universe.withFault(delay, async (fault) => {
    exactly<Fault>()(fault);
    exactly<number>()(fault.id);
    await first.create('/i');
    exactly<number>()(await fault.untilHit(1, { withinMs: 10_000 }));
    exactly<number>()(await universe.untilHit(fault, 1));
    exactly<number>()(await universe.untilHit(fault.id));
    exactly<number>()(await fault.hits());
    exactly<FaultHit | null>()(await fault.lastHit());
    exactly<FaultHit | null | undefined>()((await universe.faults())[0]?.last_hit);
  });
  await universe.withFault({ action: 'hold-events', path: '/i' }, async () => {
    await second.watch('/i');
    await first.change('/i');
  });
  const others: FaultOptions[] = [
    { action: 'error', error: 'NOAUTH', op: 'getData,setData', address: '127.0.0.1:1', optional: true },
    { action: 'lose-reply', op: 'connect', session: session.id, skip: 1, optional: true },
    { action: 'hold-events', path: '/never', optional: true, count: undefined },
    { action: 'refuse', address: '127.0.0.9', optional: true },
    { action: 'cut', path: '/never/**', optional: true },
    { action: 'cut-reply', path: '/never', optional: true },
    { action: 'drop-request', path: '/never', optional: true },
    { action: 'never-answer', path: '/never', optional: true },
    { action: 'expire', op: 'delete', path: '/never', client: 1, optional: true },
    { action: 'pause', delayMs: 1, op: 'delete', path: '/never', optional: true },
    { action: 'outage', path: '/never', optional: true },
    { action: 'client-outage', delayMs: 1, path: '/never', optional: true },
    { action: 'crash', path: '/never', optional: true },
    { action: 'rollback', path: '/never', optional: true },
    { action: 'cut-after', op: 'request', path: '/never', client: undefined, optional: true },
    { action: 'trigger', op: 'any', session: session.id, optional: true },
    { action: 'delay-reply', op: 'setData', path: '/never', delayMs: 1, optional: true },
    { action: 'delay-events', path: '/never', client: 2, delayMs: 1, optional: true },
  ];
  const injected: Fault[] = [];
  for (const one of others) injected.push(await universe.inject(one));
  exactly<InjectedFault | undefined>()((await universe.faults())[0]);
  exactly<number | undefined>()(await injected[0]?.remove());
  if (injected[1] !== undefined) exactly<number>()(await universe.removeFault(injected[1]));
  exactly<void>()(await universe.resetFaults());
  try {
    await universe.removeFault(999);
  } catch (error) {
    if (!(error instanceof MinikeeperError)) throw error;
    exactly<number | undefined>()(error.status);
  }

  await universe.startRecording(1_000_000);
  exactly<string>()(await universe.stopRecording());

  const started = exactly<number>()(await universe.sweepStart(1, 0, 1, { all: false, runs: 9, faults: 'reply-lost' }));
  const swept: Universe = await server.createUniverse('swept');
  const next: SweepNext = await swept.sweepNext(started);
  exactly<number>()(next.run);
  exactly<string>()(next.points + next.sentence);
  exactly<string[]>()((await swept.sweepFaults()).faults);
  exactly<void>()(await swept.sometimes('it is swept', { holds: true }));
  const entry = await swept.resourceEnter('printer', { fencingToken: 1, holder: 'a' });
  exactly<boolean>()(await swept.resourceWrite(entry));
  exactly<void>()(await swept.resourceLeave(entry));
  const judged: ResourceVerdict = await swept.resourceVerdict('printer');
  exactly<string>()(judged.verdict + judged.text);
  exactly<number>()(judged.entries + judged.writes + judged.refused);
  exactly<boolean>()(await swept.withResource('printer', { token: 2 }, (it) => it.write()));
  exactly<boolean>()(await swept.sweepCrashed(started, { run: next.run, withinMs: 1 }));
  exactly<boolean>()(await swept.sweepEnd(started, { outcome: 'passed', message: undefined, story: undefined }));
  exactly<string>()(await universe.sweepReport(started, { repeat: 'again {}', title: 'uses' }));
  await swept.dropUniverse();

  exactly<void>()(await universe.suiteStart(1, 1, 0, { timeMs: 1_000 }));
  exactly<string>()(await universe.suiteReport({ title: 'uses' }));

  const story: Story = await universe.story({ title: 'uses', failure: 'none' });
  exactly<string>()(story.text + story.html + story.json + story.fileName);

  const id = first.getSessionId();
  const everyWho: Who[] = [first, session.id, id, id.readBigInt64BE(), { session: id }];
  for (const who of everyWho) {
    await universe.silence(who, { allowNone: true });
    exactly<number>()(await universe.unsilence(who, { allowNone: true }));
  }
  exactly<number>()(await universe.disconnect({ identity: 'digest:alice' }, { allowNone: true }));
  await universe.disconnect({ address: '127.0.0.9' }, { allowNone: true });
  exactly<number>()(await universe.expire({ owner: ahead[0] ?? '' }));
  exactly<void>()(await universe.untilNoticed(id));
  // The next holder sends a request.
  await second.watch('/a');
  // A mistake that `advise` names.
  await second.create('/unprotected-', true);
  exactly<LockHistory | undefined>()((await universe.locks()).locks[0]?.history);
  exactly<void>()(await universe.disconnectAll());

  const journal: Journal = await universe.journal(999, { kind: undefined });
  exactly<JournalEntry | undefined>()(journal.entries[0]);
  exactly<'OK' | 'NONE' | ErrorName | undefined>()(journal.entries[0]?.result);
  exactly<number>()(await universe.count({ path: '/i', op: 'create', result: 'OK', session: session.id }));
  exactly<number>()(await universe.verify({ inOrder: ['create /locks/one/* -> OK', 'create /i -> OK'] }));
  await universe.verify({ path: '/never', exactly: 0 });
  const advice: Advice = await universe.advise({ ignore: 'polling,/config/**' });
  exactly<Finding | undefined>()(advice.findings[0]);
  exactly<string>()(advice.text);
  exactly<void>()(await universe.clearJournal());

  exactly<Universe>()(await universe.fork('copy'));
  exactly<string>()(await universe.exportData(folder));
  exactly<void>()(await universe.importData(folder));
  const other = exactly<Universe>()(await server.createUniverse('other'));
  exactly<string[]>()(await server.universes());
  exactly<void>()(await other.dropUniverse());
  await server.dropUniverse('copy');
  exactly<string>()(server.log);
  await server.save();
  exactly<string>()(await server.goDown());
  await server.comeUp({ keep: 'data' });
  const servers = exactly<EnsembleServer[]>()(await server.servers());
  await server.setServer(servers[0]?.id ?? 1, { mode: 'up' });
  await server.setLeader(1);
  await server.restart({ keep: 'nothing' });
  exactly<Server>()(await server.ensureReady());
  await server.kill();
  exactly<Server>()(await server.start());
  exactly<void>()(await server.stop());
  new Universe('127.0.0.1:2181', { token: 'secret', name: undefined });
}

/** Types of what a program that is not a test does. */
export async function useAlone(): Promise<void> {
  const settings = { port: 0, tickTimeMs: 200, options: ['--log', 'info'], dataDir: undefined, program: undefined };
  const server = exactly<Server>()(await startServer(settings));
  const run: () => Promise<void> = withServer(async (started) => void exactly<Server>()(started));
  await run();
  withServer({ stories: 'off', minSessionTimeoutMs: 100, maxSessionTimeoutMs: 200 }, () => {});
  await tellIfFailed({ name: 'alone', passed: true }, server, { stories: undefined });
  const faults: SweepFault[] = ['reply-lost', 'request-lost'];
  const allow: AllowedFailure[] = [
    { fault: 'session-expired', raises: 'SESSION_EXPIRED', reason: 'the caller asks again' },
    { fault: 'reply-lost', raises: MinikeeperError, op: 'create', path: '/orders/*', client: 1, reason: 'it may have been placed' },
    { fault: 'outage', raises: /connection/i, reason: 'its retries are over' },
  ];
  const leaveOut: SweepPlace[] = [{ fault: 'event-late', reason: 'it has no watches' }];
  const asked: SweepOptions = { faults: 'all', allow, leaveOut, outageMs: 0, rollback: 2, first: true, compare: true };
  exactly<number | undefined>()(asked.outageMs);
  const options: SweepOptions = { faults, timeMs: 10_000, runs: 9, depth: 1, seed: 1, all: false, only: undefined };
  const report: SweepReport = await sweep(
    server,
    async (universe, run) => {
      exactly<Universe>()(universe);
      exactly<SweepRun>()(run);
      exactly<number>()(run.number);
      exactly<string>()(run.points + run.sentence);
      exactly<SweepFault | undefined>()(run.fault);
      exactly<1 | 2>()(run.start);
      if (run.fault !== undefined) await run.sometimes('a run with a fault', run.start === 2);
      run.after(() => universe.now());
    },
    { ...options, runTimeMs: 60_000, jobs: 2, title: 'alone', throws: false, stories: 'off' },
  );
  exactly<boolean>()(report.isClean);
  exactly<string>()(report.summary + report.text + report.html);
  exactly<string | undefined>()(report.page);
  exactly<string[]>()(report.failures);
  exactly<string[]>()(report.coverage);
  const { runs, points, tried, passed, allowed, failed, hung, notReached } = report;
  exactly<number>()(runs + points + tried + passed + allowed + failed + hung + notReached);
  exactly<SweepReport>()(exactly<SweepError>()(new SweepError(report)).report);
  const disposed: AsyncDisposable[] = [server, await server.inject({ action: 'cut', path: '/x', optional: true })];
  for (const one of disposed.reverse()) await one[Symbol.asyncDispose]();
  exactly<MinikeeperError>()(new MinikeeperError('on purpose', { cause: 1, status: 409 }));
}

/** Each line that the types must refuse. */
export async function misuse(server: Server, fault: Fault): Promise<void> {
  // @ts-expect-error an unknown action
  await server.inject({ action: 'drop' });
  // @ts-expect-error a delay needs delayMs
  await server.inject({ action: 'delay' });
  // @ts-expect-error only a delay has delayMs
  await server.inject({ action: 'cut', delayMs: 1 });
  // @ts-expect-error so does a delay of replies
  await server.inject({ action: 'delay-reply' });
  // @ts-expect-error so does a delay of events
  await server.inject({ action: 'delay-events', path: '/a' });
  // @ts-expect-error so does a pause
  await server.inject({ action: 'pause' });
  // @ts-expect-error a handshake has no session that could be paused
  await server.inject({ action: 'pause', delayMs: 1, op: 'connect' });
  // @ts-expect-error a crash has none
  await server.inject({ action: 'crash', delayMs: 1 });
  // @ts-expect-error an expiry has none
  await server.inject({ action: 'expire', delayMs: 1 });
  // @ts-expect-error an event has no operation
  await server.inject({ action: 'delay-events', delayMs: 1, op: 'create' });
  // @ts-expect-error a connection has no number of a client yet
  await server.inject({ action: 'refuse', client: 1 });
  // @ts-expect-error a client is a number
  await server.inject({ action: 'trigger', client: '1' });
  // @ts-expect-error an unknown fault of a sweep
  await sweep(server, () => {}, { faults: ['lose-reply'] });
  // @ts-expect-error a rule without a reason
  await sweep(server, () => {}, { leaveOut: [{ fault: 'reply-lost' }] });
  // @ts-expect-error an expected failure without an error
  await sweep(server, () => {}, { allow: [{ fault: 'reply-lost', reason: 'none' }] });
  // @ts-expect-error what is raised is an error
  await sweep(server, () => {}, { allow: [{ fault: 'reply-lost', raises: Date, reason: 'none' }] });
  // @ts-expect-error at most two faults
  await sweep(server, () => {}, { depth: 3 });
  // @ts-expect-error an error needs its name
  await server.inject({ action: 'error' });
  // @ts-expect-error an unknown error
  await server.inject({ action: 'error', error: 'NOSUCH' });
  // @ts-expect-error only an error has a name
  await server.inject({ action: 'lose-reply', error: 'NONODE' });
  // @ts-expect-error an unknown operation
  await server.inject({ action: 'cut', op: 'getdata' });
  // @ts-expect-error a handshake has no reply with an error
  await server.inject({ action: 'error', error: 'NONODE', op: 'connect' });
  // @ts-expect-error an event has no operation
  await server.inject({ action: 'hold-events', op: 'create' });
  // @ts-expect-error a connection has no path yet
  await server.inject({ action: 'refuse', path: '/a' });
  // @ts-expect-error a connection has no session yet
  await server.inject({ action: 'refuse', session: '0x1' });
  // @ts-expect-error names are in camel case
  await server.inject({ action: 'delay', delay_ms: 1 });
  // @ts-expect-error the same for withFault
  await server.withFault({ action: 'delay' }, () => 1);
  // @ts-expect-error a fault comes from inject
  new Fault();
  // @ts-expect-error read only
  fault.id = 1;
  // @ts-expect-error not what verbs of a fault return
  exactly<string>()(await fault.hits());
  // @ts-expect-error byMs has to be given
  await server.advance({ strict: true });
  // @ts-expect-error options that are easy to confuse are named
  await server.advance(10_000);
  // @ts-expect-error one way to select sessions
  await server.expire({ name: 'x' });
  // @ts-expect-error a number is no session: it has too few bits
  await server.expire(1);
  // @ts-expect-error an unknown lifetime
  await server.seed({ '/a': { ephemeral: true } });
  // @ts-expect-error fields of trees are in snake case, as in files
  await server.seed({ '/a': { ttlMs: 1 } });
  // @ts-expect-error what a restart keeps
  await server.restart({ keep: 'sessions' });
  // @ts-expect-error a tree in JSON is no text
  exactly<string>()(await server.exportTree());
  // @ts-expect-error the filters of inOrder are texts
  await server.verify({ inOrder: [{ path: '/a' }] });
  // @ts-expect-error a port is a number
  await startServer({ port: '2181' });
  // @ts-expect-error an unknown option
  await startServer({ tickTime: 200 });
  // @ts-expect-error the server comes first
  withServer((path: string) => void path);
  // @ts-expect-error an address is needed
  new Universe();
  // @ts-expect-error elements may be missing
  exactly<Session>()((await server.sessions())[0]);
}
