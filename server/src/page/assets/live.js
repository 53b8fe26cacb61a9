// What the server does, as it happens: reads the journal's stream, or asks for the clock every second where there is no journal.

import { access, open, read } from "./api.js";

/** The number of entries kept for the timeline. */
export const ENTRIES_MAX = 2_000;

/** The shortest time between two updates of a view. Unit: milliseconds. */
const UPDATE_MS = 200;

/** The time between two polls. Unit: milliseconds. */
const POLL_MS = 1_000;

/** The longest line of the stream. Unit: characters. */
const LINE_MAX = 16 << 20;

/** What is known at first. */
export const UNKNOWN = { entries: [], missed: 0, error: "", isStreaming: false, hasJournal: null };

/** Follows a universe until the returned function is called. `update` gets `{entries, missed, error, isStreaming, hasJournal}`,
 * where `hasJournal` is null until it is known. */
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
  let hasJournal = true;
  while (!signal.aborted) {
    await visible(signal);
    try {
      // A browser logs each refused request, so the journal is asked for once. A server that starts again may have one.
      if (!hasJournal) {
        await read("now", {}, signal);
        set({ error: "" });
        await pause(POLL_MS, signal);
        continue;
      }
      const fields = next === null ? { limit: ENTRIES_MAX } : { limit: ENTRIES_MAX, since: next };
      const answer = await read("journal", fields, signal);
      // The server's numbers begin anew with another server.
      if (next !== null && answer.next < next) {
        set({ entries: [], missed: 0, error: "" });
        next = null;
        continue;
      }
      if (answer.entries.length) add(answer.entries);
      next = answer.next;
      set({ error: "", hasJournal });
      next = await stream(next, signal, add, missed, set);
    } catch (error) {
      if (signal.aborted) return;
      hasJournal = error.status !== 409;
      if (!hasJournal) set({ error: "", hasJournal });
      else if (error.status === 404 && access.universe) set({ entries: [], error: error.message });
      else set({ error: error.message });
    }
    set({ isStreaming: false });
    await pause(POLL_MS, signal);
  }
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
