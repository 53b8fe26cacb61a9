'use strict';

// Refuses options that nothing reads: a misspelt one would be ignored in silence.

/** Throws a TypeError that names the nearest option, unless `given` has only options with these names. */
function checkOptions(what, given, names) {
  if (given === undefined) return;
  if (given === null || typeof given !== 'object' || Array.isArray(given)) {
    throw new TypeError(`${what}: the options must be an object, not ${Array.isArray(given) ? 'an array' : String(given)}`);
  }
  const unknown = Object.keys(given).find((name) => !names.includes(name));
  if (unknown === undefined) return;
  throw new TypeError(
    `${what}: unknown option "${unknown}"; did you mean "${nearest(unknown, names)}"? The options are ${names.join(', ')}`,
  );
}

function nearest(name, names) {
  const distances = names.map((other) => distance(name.toLowerCase(), other.toLowerCase()));
  return names[distances.indexOf(Math.min(...distances))];
}

/** How many characters must be inserted, removed or replaced. */
function distance(one, other) {
  let row = Array.from({ length: other.length + 1 }, (_, index) => index);
  for (const [line, letter] of [...one].entries()) {
    const next = [line + 1];
    for (let at = 0; at < other.length; at += 1) {
      next.push(Math.min(next[at] + 1, row[at + 1] + 1, row[at] + (letter === other[at] ? 0 : 1)));
    }
    row = next;
  }
  return row[other.length];
}

module.exports = { checkOptions };
