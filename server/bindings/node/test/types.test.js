'use strict';

// The types of the package: strict, the same names as at run time, and true for what a server returns.

const assert = require('node:assert/strict');
const { once } = require('node:events');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const test = require('node:test');
const { promisify } = require('node:util');
const zookeeper = require('node-zookeeper-client');
const ts = require('typescript');
const minikeeper = require('minikeeper');

const { Fault, Server, startServer, Universe } = minikeeper;
const Verbs = Object.getPrototypeOf(Universe);

const OPTIONS = {
  module: ts.ModuleKind.Node16,
  target: ts.ScriptTarget.ES2022,
  lib: ['lib.es2022.d.ts'],
  types: ['node'],
  typeRoots: [path.join(__dirname, 'node_modules', '@types')],
  strict: true,
  exactOptionalPropertyTypes: true,
  noUncheckedIndexedAccess: true,
  noImplicitOverride: true,
  noPropertyAccessFromIndexSignature: true,
  skipLibCheck: false,
};

/** What no server of this test returns: its journal is long enough. */
const NEVER_SEEN = ['JournalEntry.count'];

// As a module of both kinds, which TypeScript tells by the extension.
const USES = path.join(__dirname, 'uses.ts');
const USES_ESM = path.join(__dirname, 'uses-esm.mts');
fs.copyFileSync(USES, USES_ESM);
const program = ts.createProgram([USES, USES_ESM], OPTIONS);
const checker = program.getTypeChecker();

/** The declared exports of the package, by name. */
function declared() {
  const file = program.getSourceFiles().find(({ fileName }) => fileName.endsWith('/minikeeper/index.d.ts'));
  const symbols = checker.getExportsOfModule(checker.getSymbolAtLocation(file));
  return new Map(symbols.map((symbol) => [symbol.name, resolved(symbol)]));
}

function resolved(symbol) {
  return symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol;
}

/** The declared members of a class, by name; a symbol's name is `@asyncDispose`. */
function members(type) {
  const named = checker.getPropertiesOfType(type).map((one) => [one.name.replace(/^__(@\w+)@\d+$/, '$1'), one]);
  return new Map(named);
}

function plainName(key) {
  return typeof key === 'symbol' ? `@${key.description.split('.').at(-1)}` : key;
}

/** The public members of an object and its classes, but not those of every object. */
function namesOf(object, ...own) {
  const names = new Set(own);
  for (let from = object; from !== Object.prototype && from !== Error.prototype; from = Object.getPrototypeOf(from)) {
    for (const key of Reflect.ownKeys(from)) names.add(plainName(key));
  }
  return [...names].filter((name) => name !== 'constructor' && !name.startsWith('_')).sort();
}

const seen = new Set();

/** Says why a value is not of a type, or returns undefined. */
function mismatch(value, type, where) {
  const fault = `${where} is ${inspect(value)}, not ${checker.typeToString(type)}`;
  if (type.flags & ts.TypeFlags.Conditional) return mismatch(value, checker.getBaseConstraintOfType(type), where);
  if (type.isUnion()) {
    const faults = type.types.map((one) => mismatch(value, one, where));
    return faults.includes(undefined) ? undefined : [fault, ...faults].at(-1);
  }
  if (type.flags & (ts.TypeFlags.Undefined | ts.TypeFlags.Void)) return value === undefined ? undefined : fault;
  if (type.flags & ts.TypeFlags.Null) return value === null ? undefined : fault;
  if (type.isLiteral()) return value === type.value ? undefined : fault;
  if (type.flags & ts.TypeFlags.BooleanLiteral) return String(value) === checker.typeToString(type) ? undefined : fault;
  if (type.flags & ts.TypeFlags.String) return typeof value === 'string' ? undefined : fault;
  if (type.flags & ts.TypeFlags.Number) return Number.isFinite(value) ? undefined : fault;
  if (!(type.flags & ts.TypeFlags.Object)) return `${where}: the type ${checker.typeToString(type)} says nothing`;
  if (checker.isArrayType(type)) {
    if (!Array.isArray(value)) return fault;
    const [element] = checker.getTypeArguments(type);
    return value.map((one, index) => mismatch(one, element, `${where}[${index}]`)).find(Boolean);
  }
  const name = (type.aliasSymbol ?? type.symbol)?.name;
  const classes = { Buffer, Fault, Server, Universe };
  if (name in classes) return value instanceof classes[name] ? undefined : fault;
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return fault;
  const [index] = checker.getIndexInfosOfType(type);
  const properties = members(type);
  for (const [key, one] of Object.entries(value)) {
    const property = properties.get(key);
    if (property === undefined && index === undefined) return `${where}.${key} is not in ${checker.typeToString(type)}`;
    seen.add(`${name}.${key}`);
    const of = property === undefined ? index.type : checker.getTypeOfSymbol(property);
    const why = one === undefined ? `${where}.${key} is undefined` : mismatch(one, of, `${where}.${key}`);
    if (why !== undefined) return why;
  }
  const missing = [...properties.values()].find((one) => !(one.flags & ts.SymbolFlags.Optional) && !(one.name in value));
  return missing && `${where}.${missing.name} is missing`;
}

function inspect(value) {
  return JSON.stringify(value) ?? String(value);
}

/** Makes each method of a class check what it returns. */
function checkResults(t, prototype, type, called) {
  for (const [name, member] of members(type)) {
    const method = Object.getOwnPropertyDescriptor(prototype, name)?.value;
    if (typeof method !== 'function') continue;
    const [signature] = checker.getSignaturesOfType(checker.getTypeOfSymbol(member), ts.SignatureKind.Call);
    const [result] = checker.getTypeArguments(signature.getReturnType());
    prototype[name] = async function checked(...given) {
      const value = await method.apply(this, given);
      called.add(name);
      // A method may return what its caller passes, which has no type here.
      if (!(result.flags & (ts.TypeFlags.TypeParameter | ts.TypeFlags.ThisType))) {
        assert.equal(mismatch(value, result, name), undefined);
      }
      return value;
    };
    t.after(() => {
      prototype[name] = method;
    });
  }
}

async function connect(t, server) {
  const client = zookeeper.createClient(server.connectString, { retries: 0 });
  t.after(() => client.close());
  const connected = once(client, 'connected');
  client.connect();
  await connected;
  const call = (name) => promisify(client[name].bind(client));
  const { PERSISTENT, EPHEMERAL_SEQUENTIAL } = zookeeper.CreateMode;
  return {
    getSessionId: () => client.getSessionId(),
    create: (where, isQueued) =>
      isQueued ? call('create')(where, Buffer.of(0xff), EPHEMERAL_SEQUENTIAL) : call('create')(where, null, PERSISTENT),
    change: async (where) => {
      await call('setData')(where, Buffer.from('x'), 0);
      const multi = client.transaction().setData(where, Buffer.from('x'), -1).remove(where, -1);
      await promisify(multi.commit.bind(multi))();
    },
    watch: (where) => call('exists')(where, () => {}),
  };
}

test('types are strict, and refuse misuse', () => {
  const diagnostics = ts.getPreEmitDiagnostics(program);
  const host = { getCanonicalFileName: String, getCurrentDirectory: () => __dirname, getNewLine: () => '\n' };
  assert.equal(ts.formatDiagnostics(diagnostics, host), '');
});

test('types have the names of run time, for require and for import', async () => {
  const values = [...declared()].filter(([, symbol]) => symbol.flags & ts.SymbolFlags.Value).map(([name]) => name);
  assert.deepEqual(Object.keys(minikeeper).sort(), values.sort());
  const { default: whole, 'module.exports': _, ...named } = await import('minikeeper');
  assert.equal(whole, minikeeper);
  assert.deepEqual({ ...named }, { ...minikeeper });
});

test('classes have the members of run time', async () => {
  const server = await startServer();
  const universe = await server.createUniverse('mine');
  const fault = await server.inject({ action: 'cut', optional: true });
  for (const [name, object] of Object.entries({ Server: server, Universe: universe, Fault: fault })) {
    const type = checker.getDeclaredTypeOfSymbol(declared().get(name));
    assert.deepEqual(namesOf(object), [...members(type).keys()].sort(), name);
  }
  await server.stop();
});

test('faults have the options of the server', async () => {
  const server = await startServer();
  const { paths } = await (await fetch(`http://${server.address}/v1/openapi.json`)).json();
  const { properties } = paths['/v1/inject'].post.requestBody.content['application/json'].schema;
  const { types } = checker.getDeclaredTypeOfSymbol(declared().get('FaultOptions'));
  const options = new Set(types.flatMap((type) => [...members(type).keys()]));
  const inServer = Object.keys(properties).map((name) => name.replace('_ms', 'Ms'));
  assert.deepEqual([...options].sort(), inServer.sort());
  // The server names what it accepts as it refuses another.
  for (const [option, type] of [['op', 'FaultOp'], ['error', 'ErrorName'], ['action', 'FaultAction']]) {
    const words = checker.getDeclaredTypeOfSymbol(declared().get(type)).types.map(({ value }) => value);
    const refused = { action: 'error', error: 'NONODE', [option]: '?' };
    await assert.rejects(server.inject(refused), ({ message }) => {
      const listed = properties[option].enum ?? message.split('one of ')[1].split(', ');
      assert.deepEqual(words.sort(), [...new Set(listed)].sort());
      return true;
    });
  }
  await server.stop();
});

test('every verb returns what its type says', async (t) => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'minikeeper-'));
  t.after(() => fs.rmSync(folder, { recursive: true }));
  const called = new Set();
  const types = declared();
  for (const of of [Verbs, Universe, Server, Fault]) {
    const type = checker.getDeclaredTypeOfSymbol(types.get(of.name));
    checkResults(t, of.prototype, type, called);
  }
  const compilerOptions = { ...OPTIONS, module: ts.ModuleKind.CommonJS };
  const { outputText } = ts.transpileModule(fs.readFileSync(USES, 'utf8'), { compilerOptions });
  const script = path.join(__dirname, 'uses.js');
  fs.writeFileSync(script, outputText);
  const { useAlone, useEveryName } = require(script);
  const server = await startServer({ dataDir: path.join(folder, 'data') });
  await useEveryName(server, await connect(t, server), await connect(t, server), path.join(folder, 'exported'));
  await useAlone();

  const names = [Verbs, Universe, Server, Fault].flatMap((of) => namesOf(of.prototype));
  const getters = ['address', 'connectString', 'log', 'port', '@asyncDispose'];
  assert.deepEqual([...new Set(names)].filter((name) => !called.has(name) && !getters.includes(name)), []);
  const isAnswer = ({ declarations: [one] }) => one.getSourceFile().fileName.endsWith('/answers.d.ts');
  const answers = [...types].filter(([, symbol]) => isAnswer(symbol));
  const unseen = answers.flatMap(([name, symbol]) => {
    const properties = members(checker.getDeclaredTypeOfSymbol(symbol));
    return [...properties.keys()].map((key) => `${name}.${key}`).filter((one) => !seen.has(one));
  });
  assert.deepEqual(unseen, NEVER_SEEN);
});
