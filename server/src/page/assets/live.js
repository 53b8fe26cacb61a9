// What the server does, as it happens: reads the journal's stream, or asks for the clock every second where there is no journal.

import { access, isThere, open, read } from "./api.js";

/** The number of entries kept for the timeline. */
export const ENTRIES_MAX = 2_000;

/** The shortest time between two updates of a view. Unit: milliseconds. */
const UPDATE_MS = 200;

/** The time between two polls. Unit: milliseconds. */
const POLL_MS = 1_000;

/** The longest line of the stream. Unit: characters. */
const LINE_MAX = 16 << 20;

/** What is known at first. */
export const UNKNOWN = { entries: [], missed: 0, error: "", isStreaming: false, hasJournal: null, isGone: false };

/** Follows a universe until the returned function is called. `update` gets `{entries, missed, error, isStreaming, hasJournal,
 * isGone}`, where `hasJournal` is null until it is known, and `isGone` says that there is no such universe. */
export function follow(update) {
  const gone = new AbortController();
  let state = UNKNOWN;
  let timer = 0;
  const tell = () => {
    timer ||= setTimeout(() => {
      timer = 0;
      if (!gone.signal.aborted) update(state);
    }, UPDATE_MS);
  };
  const add = (entries) => {
    state = { ...state, entries: [...state.entries, ...entries].slice(-ENTRIES_MAX) };
    tell();
  };
  run(gone.signal, {
    add,
    set: (fields) => {
      state = { ...state, ...fields };
      tell();
    },
    missed: (count) => {
      state = { ...state, missed: state.missed + count };
      tell();
    },
  });
  return () => {
    gone.abort();
    clearTimeout(timer);
  };
}

async function run(signal, { add, set, missed }) {
  let next = null;
  for (;;) {
    await visible(signal);
    if (signal.aborted) return;
    try {
      const isGone = !(await isThere());
      if (isGone) {
        next = null;
        set({ isGone, entries: [], missed: 0, error: "" });
      } else {
        // A server that starts again may have a journal, or none.
        const { has_journal: hasJournal } = await read("now", {}, signal);
        set({ isGone, hasJournal, error: "" });
        if (hasJournal) next = await readJournal(next, signal, { add, set, missed });
      }
    } catch (error) {
      if (signal.aborted) return;
      if (access.gone === null) set({ error: error.message });
    }
    if (signal.aborted) return;
    access.isFollowed = false;
    set({ isStreaming: false });
    await pause(POLL_MS, signal);
  }
}

/** Reads the journal from entry `next` on, and then its stream until that ends. Returns the number of the next entry. */
async function readJournal(next, signal, { add, set, missed }) {
  access.isFollowed = true;
  const fields = next === null ? { limit: ENTRIES_MAX } : { limit: ENTRIES_MAX, since: next };
  const answer = await read("journal", fields, signal);
  // The server's numbers begin anew with another server.
  if (next !== null && answer.next < next) {
    set({ entries: [], missed: 0 });
    return null;
  }
  if (answer.entries.length) add(answer.entries);
  return stream(answer.next, signal, add, missed, set);
}

/** Reads the stream until it ends, the page is hidden or the server has none. Returns the number of the next entry. */
async function stream(next, signal, add, missed, set) {
  const hidden = new AbortController();
  const stop = () => (signal.aborted || document.hidden) && hidden.abort();
  signal.addEventListener("abort", stop);
  // A browser opens few connections to a server, over all its tabs.
  document.addEventListener("visibilitychange", stop);
  try {
    const response = await open("tail", { since: next }, hidden.signal);
    set({ isStreaming: true });
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return next;
      rest += value;
      const lines = rest.split("\n");
      rest = lines.pop();
      if (rest.length > LINE_MAX) return next;
      const entries = [];
      for (const line of lines) {
        if (!line.trim()) continue;
        const entry = JSON.parse(line);
        if (entry.kind === "omitted") missed(entry.count);
        entries.push(entry);
        if (Number.isInteger(entry.number)) next = entry.number + 1;
      }
      if (entries.length) add(entries);
    }
  } catch (error) {
    // Without a stream, or when it breaks off, the journal is polled.
    if (error.status !== 401) return next;
    throw error;
  } finally {
    signal.removeEventListener("abort", stop);
    document.removeEventListener("visibilitychange", stop);
    hidden.abort();
  }
}

function visible(signal) {
  if (!document.hidden) return Promise.resolve();
  return new Promise((resolve) => {
    const check = () => {
      if (document.hidden && !signal.aborted) return;
      document.removeEventListener("visibilitychange", check);
      resolve();
    };
    document.addEventListener("visibilitychange", check);
    signal.addEventListener("abort", check);
  });
}

function pause(ms, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
