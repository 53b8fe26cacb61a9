'use strict';

// Converts values from and to the JSON of the control API.

const { resolve } = require('node:path');
const { inspect } = require('node:util');

/** Converts a session's id, in any form that clients use, or an object with one property that selects sessions. */
function whoJson(who) {
  if (typeof who === 'bigint') return { session: `0x${BigInt.asUintN(64, who).toString(16)}` };
  if (Buffer.isBuffer(who)) return { session: `0x${who.toString('hex')}` };
  if (typeof who === 'string') return { session: who };
  // node-zookeeper-client and similar ones return 8 bytes.
  if (typeof who?.getSessionId === 'function') return whoJson(who.getSessionId());
  const given = Object.entries(who ?? {}).filter(([, value]) => value !== undefined);
  if (given.length !== 1 || !['session', 'address', 'identity', 'owner'].includes(given[0][0])) {
    throw new TypeError('give exactly one of session, address, identity, owner');
  }
  const [[name, value]] = given;
  return name === 'session' ? whoJson(value) : { [name]: value };
}

/** Returns the field for a tree: an object by path, or text in YAML. */
function treeJson(tree) {
  if (typeof tree === 'string') return { yaml: tree };
  const znodes = Object.entries(tree).map(([path, znode]) => [path, znodeJson(znode)]);
  return { tree: Object.fromEntries(znodes) };
}

/** Converts a znode of a tree to JSON, with bytes in base64. */
function znodeJson(znode) {
  if (znode instanceof Uint8Array) return { data_base64: Buffer.from(znode).toString('base64') };
  if (znode?.data instanceof Uint8Array) {
    const { data, ...rest } = znode;
    return { ...znodeJson(data), ...rest };
  }
  return znode;
}

/** Returns the field for the data of a znode: text, or bytes in base64. */
function dataJson(data) {
  return typeof data === 'string' ? { data } : { data_base64: Buffer.from(data).toString('base64') };
}

/** Converts options to fields. Keeps unknown names, so that the server refuses them. */
function fields(options = {}) {
  const given = Object.entries(options).filter(([, value]) => value !== undefined);
  return Object.fromEntries(given.map(([name, value]) => [snakeCase(name), value]));
}

/** Returns the number of a fault, which may already be a number. */
function faultId(fault) {
  return fault.id ?? fault;
}

/** Returns the absolute path of a folder: the program may run in a different working directory. */
function directory(path) {
  return resolve(path);
}

/** Returns the data in an answer, null if the znode has none. */
function dataOf({ data, data_base64: coded }) {
  if (coded !== undefined && coded !== null) return Buffer.from(coded, 'base64');
  return typeof data === 'string' ? Buffer.from(data) : null;
}

/** Returns a result that `console.log` and templates print as its `text`. Its properties are those of a plain object. */
function printed(result) {
  const value = () => result.text;
  return Object.defineProperties(result, { toString: { value }, [inspect.custom]: { value } });
}

function sessionOf(session) {
  return { ...camelCased(session), lastOperation: session.last_operation && camelCased(session.last_operation) };
}

function camelCased(object) {
  return Object.fromEntries(Object.entries(object).map(([name, value]) => [camelCase(name), value]));
}

function camelCase(name) {
  return name.replace(/_([a-z])/g, (_, letter) => letter.toUpperCase());
}

function snakeCase(name) {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

module.exports = { camelCase, camelCased, dataJson, dataOf, directory, faultId, fields, printed, sessionOf, treeJson, whoJson };
