// Calls the verbs of the control API, and knows the command of `minikeeper ctl` that does the same as each call.

/** The arguments of each verb, in the order of `minikeeper ctl`; those with dashes are options. As JSON: a test compares
 * them with the table of verbs. */
const ARGUMENTS = {
  "acl": ["path"],
  "advance": ["by_ms", "--strict"],
  "advise": ["--ignore"],
  "auto_advance": ["idle_ms"],
  "changes_since": ["snapshot", "--max"],
  "create": ["path", "data", "--sequential", "--container", "--ttl_ms"],
  "create_universe": ["name"],
  "delete": ["path", "--version", "--recursive"],
  "disconnect": ["who", "--allow_none"],
  "drop_snapshot": ["snapshot"],
  "drop_universe": ["name"],
  "expire": ["who", "--allow_none"],
  "export_tree": ["--format", "path"],
  "faults": [],
  "find_znodes": ["containing", "path", "--in_data", "--max"],
  "fork": ["name"],
  "freeze": [],
  "get": ["path"],
  "inject": ["action", "--op", "--path", "--session", "--client", "--address", "--skip", "--count", "--probability", "--seed", "--delay_ms", "--error", "--optional"],
  "journal": ["--path", "--op", "--result", "--session", "--kind", "--since", "--limit"],
  "list_children": ["path", "--after", "--containing", "--max", "--sort_by"],
  "locks": [],
  "now": [],
  "remove_fault": ["fault"],
  "reset_faults": [],
  "restore": ["snapshot"],
  "seed": ["file"],
  "servers": [],
  "sessions": [],
  "set": ["path", "data", "--version"],
  "set_leader": ["server"],
  "set_server": ["server", "mode"],
  "silence": ["who", "--allow_none"],
  "snapshot": [],
  "snapshots": [],
  "tail": ["--path", "--op", "--result", "--session", "--kind", "--since"],
  "unfreeze": [],
  "universes": [],
  "unsilence": ["who", "--allow_none"]
};

/** Verbs of the whole server, which no other universe has. */
const OF_THE_SERVER = ["create_universe", "drop_universe", "openapi.json", "servers", "set_leader", "set_server", "universes"];

/** The longest data that a command shows. */
const DATA_SHOWN_MAX = 200;

/** An error of the server, with its sentence, or a failure to reach it. */
export class CallError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** What all calls share. */
export const access = {
  universe: "",
  readOnly: stored(() => localStorage.getItem("minikeeper.read-only")) === "yes",
  token: stored(() => sessionStorage.getItem("minikeeper.token")) || "",
  /** Whether a stream of the universe is open, whose end tells that the universe may be gone. */
  isFollowed: false,
  /** The universe that was open when it turned out to be gone. */
  gone: null,
  /** Called with the sentence of each answer 401. */
  onUnauthorized: () => {},
};

/** Reads or writes what the browser keeps, which it may refuse. */
export function stored(action) {
  try {
    return action();
  } catch {
    return null;
  }
}

export function setToken(token) {
  access.token = token;
  stored(() => sessionStorage.setItem("minikeeper.token", token));
}

export function setReadOnly(isOn) {
  access.readOnly = isOn;
  stored(() => localStorage.setItem("minikeeper.read-only", isOn ? "yes" : "no"));
}

/** The question for the universes that is on its way. */
let asking = null;

/** Asks whether the universe that is open is there. A request to one that is not would be refused, and the browser logs that. */
export async function isThere() {
  const { universe } = access;
  if (!universe) return true;
  asking ??= json("/v1/universes", {}).finally(() => (asking = null));
  const { universes } = await asking;
  const isKnown = universes.includes(universe);
  if (access.universe === universe) access.gone = isKnown ? null : universe;
  return isKnown;
}

/** Calls a verb that reads. */
export async function read(verb, fields = {}, signal = undefined) {
  const { universe } = access;
  if (universe && !OF_THE_SERVER.includes(verb)) {
    if (access.gone === universe || (!access.isFollowed && !(await isThere()))) throw new CallError(404, `no universe "${universe}"`);
  }
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(fields)) {
    if (value !== undefined && value !== "") query.set(name, value);
  }
  const text = query.toString();
  return json(place(verb) + (text && `?${text}`), { signal });
}

/** Calls a verb that changes something. */
export async function change(verb, fields = {}) {
  if (access.readOnly) throw new CallError(0, "the page is read-only; switch that off at the top to change the server");
  const answer = await json(place(verb), { method: "POST", body: JSON.stringify(fields) });
  if (verb === "drop_universe" && fields.name === access.universe) access.gone = fields.name;
  return answer;
}

/** Opens a stream of the journal's entries. */
export function open(verb, fields, signal) {
  return request(`${place(verb)}?${new URLSearchParams(fields)}`, { signal });
}

function place(verb) {
  const isElsewhere = access.universe && !OF_THE_SERVER.includes(verb);
  return isElsewhere ? `/v1/universes/${encodeURIComponent(access.universe)}/${verb}` : `/v1/${verb}`;
}

async function json(url, options) {
  const response = await request(url, options);
  return response.json();
}

async function request(url, options) {
  const headers = access.token ? { Authorization: `Bearer ${access.token}` } : {};
  let response;
  try {
    response = await fetch(url, { ...options, headers, credentials: "omit", redirect: "error" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new CallError(0, "the server does not answer");
  }
  if (response.ok) return response;
  const said = await response.json().catch(() => ({}));
  const sentence = typeof said.error === "string" ? said.error : `the server answers with status ${response.status}`;
  if (response.status === 401) access.onUnauthorized(access.token ? sentence : "");
  throw new CallError(response.status, sentence);
}

/** Returns the command that does the same as a call. */
export function command(verb, fields = {}) {
  const words = ["minikeeper", "ctl"];
  if (location.host !== "127.0.0.1:2181") words.push("--server", location.host);
  if (access.universe && !OF_THE_SERVER.includes(verb)) words.push("--universe", access.universe);
  words.push(verb.replaceAll("_", "-"));
  const places = [];
  const options = [];
  let input = "";
  for (const argument of ARGUMENTS[verb]) {
    const name = argument.replace("--", "");
    if (name === "data") {
      const [word, from] = dataArgument(fields);
      if (word !== undefined) places.push(word);
      input = from;
    } else if (name === "who") {
      places.push(fields.session ?? fields.address ?? fields.identity ?? fields.owner ?? "");
    } else if (name === "file") {
      places.push(fields.file ?? "FILE.json");
    } else if (fields[name] !== undefined && fields[name] !== "") {
      const value = name.endsWith("_ms") ? duration(fields[name]) : String(fields[name]);
      if (!argument.startsWith("--")) places.push(value);
      else if (fields[name] === true) options.push(option(argument));
      else if (fields[name] !== false) options.push(option(argument), value);
    }
  }
  const looksLikeOption = places.some((word) => word !== "-" && word.startsWith("-"));
  const all = looksLikeOption ? [...words, ...options, "--", ...places] : [...words, ...places, ...options];
  return all.map(quoted).join(" ") + input;
}

function option(argument) {
  return argument.replace(/_ms$/, "").replaceAll("_", "-");
}

/** Data that is no short text comes from a file. */
function dataArgument({ data, data_base64: encoded }) {
  if (data === undefined && encoded === undefined) return [undefined, ""];
  const isShort = data !== undefined && data.length <= DATA_SHOWN_MAX && data !== "-" && !data.includes("\0");
  return isShort ? [data, ""] : ["-", " < FILE"];
}

/** Writes milliseconds as the command line takes them. */
export function duration(ms) {
  if (ms === null) return "never";
  for (const [unit, size] of [["h", 3_600_000], ["m", 60_000], ["s", 1_000]]) {
    if (ms > 0 && ms % size === 0) return `${ms / size}${unit}`;
  }
  return `${ms}ms`;
}

/** Quotes a word for a shell. */
export function quoted(word) {
  return /^[\w/.,:@%+=-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
