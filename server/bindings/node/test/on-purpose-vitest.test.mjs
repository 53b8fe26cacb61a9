// Tests that fail on purpose, which story.test.js runs with Vitest.

import assert from 'node:assert/strict';
import { startServer, sweep, tellIfFailed, withServer } from 'minikeeper';
import { afterEach, describe, test } from 'vitest';

const LIMIT_MS = 3_000;

describe('printer', () => {
  test('has paper', withServer(async (server) => {
    await server.seed({ '/printer/paper': 'A4' });
    assert.equal(undefined, 'A4');
  }));
});

test('never ends', withServer(async () => new Promise(() => {})), LIMIT_MS);

test('sweeps', withServer(async (server) => {
  await sweep(server, () => assert.equal(1, 2));
}));

test('injects in vain', withServer(async (server) => {
  await server.inject({ action: 'lose-reply', op: 'create', path: '/jbo' });
  const other = await server.createUniverse('other');
  await other.inject({ action: 'cut', path: '/orders' });
}));

test('passes', withServer(async (server) => server.advance({ byMs: 1_000 })));

describe('hook', () => {
  let server;
  afterEach(async (t) => {
    await tellIfFailed(t, server);
    await server.stop();
  });

  test('fails', async () => {
    server = await startServer();
    throw new Error('on purpose');
  });

  test('has nothing to do', async () => {
    server = await startServer();
  });
});
