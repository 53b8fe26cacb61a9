'use strict';

// Prints a line for each test, like the other suites of the repository, and where it stands.
module.exports = async function* report(events) {
  let passed = 0;
  let failed = 0;
  for await (const { type, data } of events) {
    if (type !== 'test:pass' && type !== 'test:fail') continue;
    // A file is not a test.
    if (data.details?.type === 'suite' || data.name.endsWith('.js')) continue;
    if (data.skip !== undefined) {
      yield `skip node ${data.name}: ${data.skip}\n`;
      continue;
    }
    yield `ran ${data.file} ${data.name}\n`;
    if (type === 'test:pass') {
      passed += 1;
      yield `ok node ${data.name}\n`;
    } else {
      failed += 1;
      const error = data.details.error?.cause ?? data.details.error;
      yield `FAIL node ${data.name}: ${String(error?.message ?? error).replaceAll('\n', ' ')}\n`;
    }
  }
  yield `node: ${passed} passed, ${failed} failed\n`;
};
