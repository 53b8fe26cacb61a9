'use strict';

// What a test says of the points of a sweep: which failures it expects there, and which are not to be tried. The server reads a
// rule as a line of text.

const { checkOptions } = require('./options.js');
const { failureOf } = require('./story.js');

const PLACE = ['fault', 'client', 'op', 'path', 'reason'];

/** What a message that has a mark may have besides: the server looks at the first 600 characters. */
const MARKED_CHARS_MAX = 400;
const MARK_CHARS_MAX = 150;

/** Returns the text for `leave_out`, undefined without rules. */
function leaveOutText(rules) {
  return textOf('leaveOut', rules, PLACE, () => '');
}

/** Returns the text for `allow`, undefined without rules. */
function allowText(rules) {
  return textOf('allow', rules, [...PLACE, 'raises'], (what, { raises }) => {
    if (isClass(raises) || raises instanceof RegExp) return ` raises ${markOf(raises)}`;
    if (typeof raises === 'string' && raises.trim() !== '') return ` raises ${line(`${what}.raises`, raises)}`;
    throw new TypeError(`${what}: raises must be a part of the message, a class of errors or a regular expression`);
  });
}

/** Returns the message of a failure, with a mark for each rule that only this process can match. */
function messageOf(error, rules = []) {
  const message = failureOf(error);
  const matches = ({ raises }) => (isClass(raises) ? error instanceof raises : raises instanceof RegExp && message.search(raises) !== -1);
  const marks = new Set(rules.filter(matches).map(({ raises }) => markOf(raises)));
  return marks.size === 0 ? message : [...marks, message.slice(0, MARKED_CHARS_MAX)].join(' ');
}

function textOf(option, rules, names, raisesOf) {
  if (rules === undefined) return undefined;
  if (!Array.isArray(rules)) throw new TypeError(`${option}: not an array of rules`);
  const lines = rules.map((rule, at) => {
    const what = `${option}[${at}]`;
    checkOptions(what, rule ?? null, names);
    const { fault, client, op, path, reason } = rule;
    if (typeof fault !== 'string' || fault === '') throw new TypeError(`${what}: the fault is missing`);
    if (typeof reason !== 'string' || reason.trim() === '') throw new TypeError(`${what}: the reason is missing`);
    const where = [client, op, path].some((part) => part !== undefined) ? `:${client ?? '*'}:${op ?? '*'}:*:${path ?? '*'}` : '';
    const place = line(what, fault + where, ' raises ');
    return `${place}${raisesOf(what, rule)} because ${line(`${what}.reason`, reason, ' because ')}`;
  });
  return lines.length === 0 ? undefined : lines.join('\n');
}

/** Returns a part of a rule, unless the server would not read it as one. */
function line(what, part, separator = '\n') {
  const wrong = ['\n', '\r', separator].find((text) => part.includes(text));
  if (wrong === undefined) return part;
  throw new TypeError(`${what}: ${JSON.stringify(part)} must not contain ${JSON.stringify(wrong)}`);
}

function isClass(raises) {
  return typeof raises === 'function' && (raises === Error || raises.prototype instanceof Error);
}

/** What a message has if the error is of this class, or if this pattern matches it. */
function markOf(raises) {
  const shown = isClass(raises) ? `instance of ${raises.name}` : `matches ${raises}`;
  return `(${shown.slice(0, MARK_CHARS_MAX)})`;
}

module.exports = { allowText, leaveOutText, messageOf };
