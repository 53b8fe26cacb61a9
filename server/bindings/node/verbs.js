'use strict';

// Generated from the table of verbs, server/src/control/verbs. To generate it again:
// UPDATE_EXPECT=1 cargo test -p minikeeper --test bindings

const { dataJson, dataOf, directory, faultId, fields, printed, sessionOf, treeJson, whoJson } = require('./values.js');

/** Every verb of a universe. Its subclass has the control API as `_api`, and makes faults and universes. */
class Verbs {
  async now() {
    const answer = await this._api.read('now');
    return { elapsedMs: answer.elapsed_ms, wallMs: answer.wall_ms, isFrozen: answer.is_frozen, hasJournal: answer.has_journal };
  }

  async advance(options) {
    await this._api.act('advance', fields(options));
  }

  async freeze() {
    await this._api.act('freeze');
  }

  async unfreeze() {
    await this._api.act('unfreeze');
  }

  async autoAdvance(options) {
    await this._api.act('auto_advance', fields(options));
  }

  async sessions() {
    return (await this._api.read('sessions')).sessions.map(sessionOf);
  }

  async expire(who, options) {
    return (await this._api.act('expire', { ...whoJson(who), ...fields(options) })).count;
  }

  async disconnect(who, options) {
    return (await this._api.act('disconnect', { ...whoJson(who), ...fields(options) })).count;
  }

  async silence(who, options) {
    return (await this._api.act('silence', { ...whoJson(who), ...fields(options) })).count;
  }

  async unsilence(who, options) {
    return (await this._api.act('unsilence', { ...whoJson(who), ...fields(options) })).count;
  }

  async disconnectAll() {
    await this._api.act('disconnect_all');
  }

  async inject(options) {
    return this._fault((await this._api.act('inject', fields(options))).fault);
  }

  async faults() {
    return (await this._api.read('faults')).faults;
  }

  async removeFault(fault) {
    return (await this._api.act('remove_fault', { fault: faultId(fault) })).hits;
  }

  async resetFaults() {
    await this._api.act('reset_faults');
  }

  async untilHit(fault, hits = 1, options) {
    return (await this._api.act('until_hit', { fault: faultId(fault), hits, ...fields(options) })).hits;
  }

  async journal(limit = 1000, options) {
    const answer = await this._api.read('journal', { limit, ...fields(options) });
    return { entries: answer.entries, next: answer.next, oldest: answer.oldest };
  }

  async count(options) {
    return (await this._api.read('count', fields(options))).count;
  }

  async verify(options) {
    return (await this._api.act('verify', fields(options))).count;
  }

  async clearJournal() {
    await this._api.act('clear_journal');
  }

  async advise(options) {
    const answer = await this._api.read('advise', fields(options));
    return printed({ findings: answer.findings, entryCount: answer.entry_count, first: answer.first, text: answer.text });
  }

  async locks() {
    const answer = await this._api.read('locks');
    return printed({ locks: answer.locks, deadlocks: answer.deadlocks, isTruncated: answer.is_truncated, text: answer.text });
  }

  async story(options) {
    const answer = await this._api.read('story', fields(options));
    return printed({ text: answer.text, html: answer.html, json: answer.json, fileName: answer.file_name });
  }

  async startRecording(bytesMax = 67108864) {
    await this._api.act('start_recording', { bytes_max: bytesMax });
  }

  async stopRecording() {
    return (await this._api.act('stop_recording')).base64;
  }

  async resourceEnter(resource, options) {
    return (await this._api.act('resource_enter', { resource, ...fields(options) })).entry;
  }

  async resourceWrite(entry) {
    return (await this._api.act('resource_write', { entry })).is_accepted;
  }

  async resourceLeave(entry) {
    await this._api.act('resource_leave', { entry });
  }

  async resourceVerdict(resource) {
    const answer = await this._api.read('resource_verdict', { resource });
    return printed({ verdict: answer.verdict, entries: answer.entries, writes: answer.writes, refused: answer.refused, text: answer.text });
  }

  async sweepStart(depth = 1, seed = 0, rollback = 1, options) {
    return (await this._api.act('sweep_start', { depth, seed, rollback, ...fields(options) })).sweep;
  }

  async suiteStart(rollback = 1, depth = 1, seed = 0, options) {
    await this._api.act('suite_start', { rollback, depth, seed, ...fields(options) });
  }

  async suiteReport(options) {
    return (await this._api.read('suite_report', fields(options))).text;
  }

  async sweepNext(sweep) {
    const answer = await this._api.act('sweep_next', { sweep });
    return { run: answer.run, points: answer.points, sentence: answer.sentence };
  }

  async sweepFaults() {
    const answer = await this._api.read('sweep_faults');
    return { faults: answer.faults, points: answer.points, sentence: answer.sentence };
  }

  async sometimes(goal, options) {
    await this._api.act('sometimes', { goal, ...fields(options) });
  }

  async sweepCrashed(sweep, options) {
    return (await this._api.act('sweep_crashed', { sweep, ...fields(options) })).is_crashed;
  }

  async sweepEnd(sweep, options) {
    return (await this._api.act('sweep_end', { sweep, ...fields(options) })).is_reached;
  }

  async sweepReport(sweep, options) {
    return (await this._api.read('sweep_report', { sweep, ...fields(options) })).text;
  }

  async get(path) {
    const answer = await this._api.read('get', { path });
    return { data: dataOf(answer), stat: answer.stat };
  }

  async children(path) {
    return (await this._api.read('children', { path })).children;
  }

  async listChildren(path, after = '', containing = '', max = 1000, options) {
    const answer = await this._api.read('list_children', { path, after, containing, max, ...fields(options) });
    return { children: answer.children, total: answer.total, isTruncated: answer.is_truncated };
  }

  async findZnodes(containing, path = '/', max = 1000, options) {
    const answer = await this._api.read('find_znodes', { containing, path, max, ...fields(options) });
    return { paths: answer.paths, isTruncated: answer.is_truncated };
  }

  async acl(path) {
    return (await this._api.read('acl', { path })).acl;
  }

  async tree(path = '/', max = 1000) {
    const answer = await this._api.read('tree', { path, max });
    return { znodes: answer.znodes, isTruncated: answer.is_truncated };
  }

  async create(path, data = '', options) {
    return (await this._api.act('create', { path, ...dataJson(data), ...fields(options) })).path;
  }

  async set(path, data, options) {
    return (await this._api.act('set', { path, ...dataJson(data), ...fields(options) })).version;
  }

  async delete(path, options) {
    return (await this._api.act('delete', { path, ...fields(options) })).deleted;
  }

  async dump(options) {
    return (await this._api.read('dump', fields(options))).dump;
  }

  async exportTree(path = '/', options) {
    return (await this._api.read('export_tree', { path, ...fields(options) })).tree;
  }

  async seed(tree) {
    const answer = await this._api.act('seed', treeJson(tree));
    return { created: answer.created, changed: answer.changed };
  }

  async snapshot() {
    return (await this._api.act('snapshot')).snapshot;
  }

  async restore(snapshot) {
    await this._api.act('restore', { snapshot });
  }

  async dropSnapshot(snapshot) {
    await this._api.act('drop_snapshot', { snapshot });
  }

  async snapshots() {
    return (await this._api.read('snapshots')).snapshots;
  }

  async changesSince(snapshot, max = 1000) {
    const answer = await this._api.read('changes_since', { snapshot, max });
    return { changes: answer.changes, isTruncated: answer.is_truncated };
  }

  async fork(name) {
    return this._universe(name, (await this._api.act('fork', { name })).connect_string);
  }

  async untilWatched(path, options) {
    await this._api.act('until_watched', { path, ...fields(options) });
  }

  async untilExists(path, options) {
    await this._api.act('until_exists', { path, ...fields(options) });
  }

  async untilChildren(path, count, options) {
    await this._api.act('until_children', { path, count, ...fields(options) });
  }

  async untilContenders(lock, count, options) {
    await this._api.act('until_contenders', { lock, count, ...fields(options) });
  }

  async untilSessions(count, options) {
    await this._api.act('until_sessions', { count, ...fields(options) });
  }

  async untilNoticed(who, options) {
    await this._api.act('until_noticed', { ...whoJson(who), ...fields(options) });
  }

  async untilIdle(options) {
    await this._api.act('until_idle', fields(options));
  }

  async importData(dir) {
    await this._api.act('import_data', { dir: directory(dir) });
  }

  async exportData(dir) {
    return (await this._api.act('export_data', { dir: directory(dir) })).zxid;
  }

  async createUniverse(name) {
    return this._universe(name, (await this._api.act('create_universe', { name })).connect_string);
  }

  async universes() {
    return (await this._api.read('universes')).universes;
  }

  async dropUniverse(name) {
    await this._api.act('drop_universe', { name });
  }

  async restart(options) {
    await this._api.act('restart', fields(options));
  }

  async goDown() {
    return (await this._api.act('go_down')).control;
  }

  async comeUp(options) {
    await this._api.act('come_up', fields(options));
  }

  async servers() {
    return (await this._api.read('servers')).servers;
  }

  async setServer(server, options) {
    await this._api.act('set_server', { server, ...fields(options) });
  }

  async setLeader(server) {
    await this._api.act('set_leader', { server });
  }

  async save() {
    await this._api.act('save');
  }
}

module.exports = { Verbs };
