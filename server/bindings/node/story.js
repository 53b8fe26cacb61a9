'use strict';

// The stories of failed tests: printed to stderr, and saved in a folder.

const fs = require('node:fs');
const path = require('node:path');

const VARIABLE = 'MINIKEEPER_STORIES';
const FOLDER = 'minikeeper-stories';
// Limits of the server.
const TITLE_CHARS_MAX = 200;
const FAILURE_CHARS_MAX = 4_000;
const NAME_BYTES_MAX = 100;

/**
 * Prints the story of a universe, and saves it, for a failed test with this title. Never rejects: it must not hide why the
 * test failed.
 */
async function tell(universe, title, error, stories) {
  // Its report names the stories of its runs.
  if (error?.name === 'SweepError') return;
  let text;
  try {
    const story = await storyOf(universe, title, error);
    text = story.text + saved(title, story, stories);
  } catch (reason) {
    text = `no story of ${universe.connectString}: ${reason?.message}\n`;
  }
  process.stderr.write(`\n${text}`);
}

function storyOf(universe, title, error) {
  return universe.story({ title: title.slice(0, TITLE_CHARS_MAX), failure: failureOf(error) });
}

/** What a test threw, as text. */
function failureOf(error) {
  const failure = String(error?.message === undefined ? error : `${error.name}: ${error.message}`);
  return failure.slice(0, FAILURE_CHARS_MAX);
}

/** Where in the program an error was thrown, such as order.test.js:17; undefined if its stack does not say. */
function placeOf(error) {
  const frame = /(?:\(|at (?:async )?)(?:file:\/\/)?([^()]+):(\d+):\d+\)?$/;
  const isOwn = ([, file]) => !/^node:|[\\/]node_modules[\\/]/.test(file) && path.dirname(file) !== __dirname;
  const lines = String(error?.stack ?? '').split('\n').filter((line) => /^ +at /.test(line));
  const own = lines.map((line) => frame.exec(line)).find((found) => found !== null && isOwn(found));
  return own && `${path.basename(own[1])}:${own[2]}`;
}

/**
 * Returns a title as the name of a file, without an extension: what the server calls `file_name`. A name from a server could
 * lead out of the folder.
 */
function fileNameOf(title) {
  const given = title.replaceAll('::', '.');
  const name = given
    .replace(/[^A-Za-z0-9._-]/gu, '-')
    .replace(/^[.-]+/, '')
    .replace(/-{2,}/g, '-')
    .replace(/[.-]+$/, '');
  if (name === '') return 'story';
  if (!/[^A-Za-z0-9._/-]/.test(given) && name.length <= NAME_BYTES_MAX) return name;
  // Similar titles have names of their own.
  let hash = 0x811c9dc5;
  for (const byte of Buffer.from(title)) hash = Math.imul(hash ^ byte, 0x01000193) >>> 0;
  const ending = `-${hash.toString(16).padStart(8, '0')}`;
  return name.slice(0, NAME_BYTES_MAX - ending.length) + ending;
}

/** Saves a story. Returns a line that says where. */
function saved(title, { html, json }, stories) {
  try {
    const paths = save(filesOf(title, { html, json }), stories);
    return paths === undefined ? '' : `\nsaved in ${paths[0]}\n`;
  } catch (error) {
    return `\nnot saved: ${error.message}\n`;
  }
}

/** The files of a story, by name. */
function filesOf(title, { html, json }) {
  const name = fileNameOf(title);
  return { [`${name}.html`]: html, [`${name}.json`]: json };
}

/** Writes files, given by name, to the folder for stories. Returns their paths, undefined if there is no folder. */
function save(files, stories) {
  const given = stories ?? process.env[VARIABLE];
  if (given === '' || given === 'off') return undefined;
  const folder = path.resolve(given ?? FOLDER);
  if (!fs.existsSync(folder)) {
    fs.mkdirSync(folder, { recursive: true });
    fs.writeFileSync(path.join(folder, '.gitignore'), '*\n');
  }
  return Object.entries(files).map(([name, text]) => {
    const file = path.join(folder, name);
    fs.writeFileSync(file, text);
    return file;
  });
}

module.exports = { failureOf, fileNameOf, filesOf, placeOf, save, storyOf, tell };
