'use strict';

// Generated from the table of verbs, server/src/control/verbs. To generate it again:
// UPDATE_EXPECT=1 cargo test -p minikeeper --test bindings

const { dataOf, directory, faultId, fields, sessionOf, treeJson, whoJson } = require('./values.js');

/** Every verb of a universe. Its subclass has the control API as `_api`, and makes faults and universes. */
class Verbs {
  async now() {
    const answer = await this._api.read('now');
    return { elapsedMs: answer.elapsed_ms, wallMs: answer.wall_ms, isFrozen: answer.is_frozen };
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

  async get(path) {
    const answer = await this._api.read('get', { path });
    return { data: dataOf(answer), stat: answer.stat };
  }

  async children(path) {
    return (await this._api.read('children', { path })).children;
  }

  async dump() {
    return (await this._api.read('dump')).dump;
  }

  async exportTree(options) {
    return (await this._api.read('export_tree', fields(options))).tree;
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

  async save() {
    await this._api.act('save');
  }
}

module.exports = { Verbs };
