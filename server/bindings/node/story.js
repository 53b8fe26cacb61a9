'use strict';

// The stories of failed tests: printed to stderr, and saved in a folder.

const fs = require('node:fs');
const path = require('node:path');

const VARIABLE = 'MINIKEEPER_STORIES';
const FOLDER = 'minikeeper-stories';
// Limits of the server.
const TITLE_CHARS_MAX = 200;
const FAILURE_CHARS_MAX = 4_000;

/**
 * Prints the story of a universe, and saves it, for a failed test with this title. Never rejects: it must not hide why the
 * test failed.
 */
async function tell(universe, title, error, stories) {
  let text;
  try {
    const failure = String(error?.message === undefined ? error : `${error.name}: ${error.message}`);
    const story = await universe.story({
      title: title.slice(0, TITLE_CHARS_MAX),
      failure: failure.slice(0, FAILURE_CHARS_MAX),
    });
    text = story.text + saved(story, stories);
  } catch (reason) {
    text = `no story of ${universe.connectString}: ${reason?.message}\n`;
  }
  process.stderr.write(`\n${text}`);
}

/** Saves a story. Returns a line that says where. */
function saved(story, stories) {
  const given = stories ?? process.env[VARIABLE];
  if (given === '' || given === 'off') return '';
  const folder = path.resolve(given ?? FOLDER);
  const page = path.join(folder, `${story.fileName}.html`);
  try {
    if (!fs.existsSync(folder)) {
      fs.mkdirSync(folder, { recursive: true });
      fs.writeFileSync(path.join(folder, '.gitignore'), '*\n');
    }
    fs.writeFileSync(page, story.html);
    fs.writeFileSync(path.join(folder, `${story.fileName}.json`), story.json);
    return `\nsaved in ${page}\n`;
  } catch (error) {
    return `\nnot saved: ${error.message}\n`;
  }
}

module.exports = { tell };
