// What entries of the journal have to do with each other, and which of them a filter selects. No view.

/** The end of a session id, which tells the sessions of one server apart. */
export const shortSession = (id) => (id.length > 6 ? `…${id.slice(-4)}` : id);

/** Names sessions: as `given` does, else by the address of the client if no other session has it, or by its port where all
 * clients are on one host. */
export function nameSessions(entries, links, sessions, given = new Map()) {
  const addresses = new Map();
  for (const entry of entries) {
    const id = sessionOf(entry, links);
    if (id && entry.address) addresses.set(id, entry.address);
  }
  for (const { id, address } of sessions) if (address) addresses.set(id, address);
  const counts = new Map();
  for (const address of addresses.values()) counts.set(address, (counts.get(address) ?? 0) + 1);
  const host = (address) => address.slice(0, address.lastIndexOf(":"));
  const hosts = new Set([...counts.keys()].map(host));
  const shown = (address) => (hosts.size === 1 ? address.slice(host(address).length) : address);
  const names = new Map([...addresses].flatMap(([id, address]) => (counts.get(address) === 1 ? [[id, shown(address)]] : [])));
  for (const [id, name] of given) names.set(id, name);
  return names;
}

/** As much of a name's end as fits in `count` characters. */
export function fitted(name, count) {
  if (name.length <= count) return name;
  return count > 2 ? `…${name.slice(1 - count)}` : name.slice(-Math.max(1, count));
}

/** The class of a session's colour, the same in every view. */
export const hue = (id) => `hue-${Number.parseInt(id.slice(-1), 16) % 8 || 0}`;

/** A length of time as text. */
export function duration(ms) {
  if (ms < 1000) return `${ms} ms`;
  const text = ms < 10_000 ? (ms / 1000).toFixed(2) : (ms / 1000).toFixed(1);
  const seconds = `${Number(text)} s`;
  if (ms < 120_000) return seconds;
  const minutes = Math.floor(ms / 60_000);
  return minutes < 120 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

export const micros = (us) => (us < 1000 ? `${us} µs` : duration(Math.round(us / 10) / 100));

/** Whether the server refused a request. */
export const isError = (entry) => entry.result !== undefined && entry.result !== "OK" && entry.result !== "NONE";

/** How far a move of the clock went, in milliseconds; 0 if it did not. */
export function jump(entry) {
  const found = entry.kind === "clock" && /advanced by (\d+) ms/.exec(entry.what);
  return found ? Number(found[1]) : 0;
}

/** Every path in an entry. */
export function pathsOf(entry) {
  const paths = [entry.path, entry.created, ...(entry.operations || []).map((operation) => operation.path)];
  return paths.filter((path) => path !== undefined && path !== null);
}

/** The arguments of a request behind its path, as in a line of the journal. */
export function argumentsOf(entry) {
  const words = [];
  if (entry.mode) words.push(entry.mode.toLowerCase().replaceAll("_", " "));
  if (entry.version !== undefined && entry.version !== null && entry.version !== -1) words.push(`version ${entry.version}`);
  if (entry.data_bytes) words.push(`${entry.data_bytes} B`);
  if (entry.watch) words.push("watch");
  if (entry.timeout_ms) words.push(`timeout ${duration(entry.timeout_ms)}`);
  return words.join(", ");
}

/**
 * Links entries: `cause` and `effects` by number of entry, `session` of each connection, the numbers of entries that say
 * what others say too (`noise`).
 *
 * A request causes its events; so does a deletion by the server. The end of a session causes the deletions and the events
 * that directly precede it. A fault belongs to the
 * request that follows it on the same connection.
 */
export function link(entries) {
  const links = { cause: new Map(), effects: new Map(), session: new Map(), noise: new Set(), at: new Map() };
  const join = (cause, effect) => {
    links.cause.set(effect, cause);
    if (!links.effects.has(cause)) links.effects.set(cause, []);
    links.effects.get(cause).push(effect);
  };
  const faults = new Map();
  // What belongs to the end of a session, which comes after it.
  let before = [];
  let deletion;
  entries.forEach((entry, index) => {
    links.at.set(entry.number, index);
    if (entry.connection && entry.session) links.session.set(entry.connection, entry.session);
    if (entry.kind === "event") {
      if (entry.cause) join(entry.cause, entry.number);
      else if (deletion !== undefined) join(deletion, entry.number);
      else before.push(entry.number);
      return;
    }
    if (entry.kind === "deleted") {
      deletion = entry.number;
      if (entry.cause) join(entry.cause, entry.number);
      else before.push(entry.number);
      return;
    }
    if (entry.kind === "session_expired" || entry.kind === "session_closed") {
      for (const number of before) join(entry.number, number);
    }
    before = [];
    deletion = undefined;
    if (entry.kind === "fault") faults.set(entry.connection, entry);
    if (entry.kind === "request") {
      const fault = faults.get(entry.connection);
      faults.delete(entry.connection);
      // A request that a fault refuses is not decoded.
      if (fault && (entry.op === "unknown" || (fault.op === entry.op && fault.path === entry.path))) join(fault.number, entry.number);
    }
  });
  for (const entry of entries) {
    const isHandshake = entry.kind === "connection_opened" || (entry.op === "createSession" && entry.result === "OK");
    if (entry.op === "ping" ? !isError(entry) : isHandshake && entry.kind !== "fault" && links.session.has(entry.connection)) {
      if (!links.cause.has(entry.number)) links.noise.add(entry.number);
    }
  }
  return links;
}

/** The session that an entry is about, or the one that its connection got later. */
export const sessionOf = (entry, links) => entry.session ?? links.session.get(entry.connection);

/** What belongs to an entry: what caused it, what else that caused, what it causes. */
export function related(number, links) {
  const found = new Set();
  const down = (from) => {
    if (found.has(from)) return;
    found.add(from);
    for (const effect of links.effects.get(from) || []) down(effect);
  };
  let top = number;
  for (let up = links.cause.get(top); up !== undefined && up !== number; up = links.cause.get(top)) top = up;
  down(top);
  return found;
}

const ALIASES = { create: ["create2", "createContainer", "createTTL"], getChildren: ["getChildren2"] };
const KINDS = new Set(["request", "event", "deleted", "fault", "session", "session_opened", "session_resumed", "session_expired", "session_closed",
  "connection", "connection_opened", "connection_closed", "clock", "verb", "omitted"]);

/** Returns a function that matches paths: `*` is any part of a name, `**` any part of a path. */
function glob(pattern) {
  const tokens = pattern.match(/\*\*|[^]/g) || [];
  const pass = (at) => {
    tokens.forEach((token, index) => {
      if (at[index] && token[0] === "*") at[index + 1] = true;
    });
    return at;
  };
  return (path) => {
    let at = pass([true]);
    for (const char of path) {
      const next = [];
      tokens.forEach((token, index) => {
        if (!at[index]) return;
        if (token === "**" || (token === "*" && char !== "/")) next[index] = true;
        else if (token === char) next[index + 1] = true;
      });
      at = pass(next);
    }
    return Boolean(at[tokens.length]);
  };
}

const quote = (word) => (/^[\w./:@%+=-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);

/**
 * Parses a filter as `ctl verify` takes it: an operation or kind, a pattern for paths, `-> RESULT`, `by SESSION`,
 * `on CONNECTION`, `since NUMBER`. Any other word selects lines that contain it. Returns a test of entries, and the
 * options of `ctl journal` that select the same.
 */
export function parseFilter(text, entries) {
  const words = text.split(/\s+/).filter(Boolean);
  const tests = [];
  const options = [];
  const pipes = [];
  const contains = (word) => {
    const part = word.toLowerCase();
    tests.push((entry) => entry.text.toLowerCase().includes(part));
    pipes.push(` | grep -iF -- ${quote(word)}`);
  };
  for (let at = 0; at < words.length; at += 1) {
    const word = words[at];
    const value = words[at + 1];
    const takesValue = ["->", "by", "on", "since"].includes(word);
    if (takesValue && value === undefined) break;
    if (takesValue) at += 1;
    if (word === "->") {
      tests.push((entry) => entry.result === value || (value === "error" && isError(entry)));
      options.push(`--result ${quote(value)}`);
    } else if (word === "by") {
      const full = entries.find((entry) => entry.session?.endsWith(value.replace(/^…/, "")))?.session ?? value;
      tests.push((entry) => entry.session === full);
      options.push(`--session ${quote(full)}`);
    } else if (word === "on") {
      const connection = Number(value.replace("#", ""));
      tests.push((entry) => entry.connection === connection);
      pipes.push(` | grep -wF -- ${quote(`#${connection}`)}`);
    } else if (word === "since") {
      tests.push((entry) => entry.number >= Number(value));
      options.push(`--since ${quote(value)}`);
    } else if (word[0] === "/" || word[0] === "*") {
      const matches = glob(word);
      tests.push((entry) => pathsOf(entry).some(matches));
      options.push(`--path ${quote(word)}`);
    } else if (KINDS.has(word)) {
      tests.push((entry) => entry.kind === word || entry.kind.split("_")[0] === word);
      options.push(`--kind ${word}`);
    } else if (ALIASES[word] || entries.some((entry) => entry.op === word)) {
      tests.push((entry) => entry.kind === "request" && (entry.op === word || Boolean(ALIASES[word]?.includes(entry.op))));
      options.push(`--op ${word}`);
    } else {
      contains(word);
    }
  }
  return {
    matches: (entry) => tests.every((test) => test(entry)),
    command: (ctl) => [ctl, "journal", ...options, ...(pipes.length > 0 ? ["--text"] : [])].join(" ") + pipes.join(""),
    isEmpty: tests.length === 0,
  };
}

/** The command that lists an entry and what followed it in the same place. */
export function commandOf(entry, ctl) {
  const words = [ctl, "journal", "--since", entry.number];
  if (entry.path) words.push("--path", quote(entry.path));
  if (entry.session) words.push("--session", entry.session);
  else if (!entry.path) words.push("--kind", entry.kind);
  return words.join(" ");
}
