// The page: navigation by the hash, what all views share, and the view that is open.

import { html, render, useCallback, useEffect, useRef, useState } from "./preact.js";
import { access, command, setReadOnly, setToken } from "./api.js";
import { Command, Notice, ago, page, useAnswer, useSlow } from "./parts.js";
import { follow } from "./live.js";
import { Tree } from "./tree.js";
import { Sessions } from "./sessions.js";
import { Locks } from "./locks.js";
import { Timeline } from "./timeline.js";
import { Findings } from "./advice.js";
import { Faults } from "./faults.js";
import { Clock } from "./clock.js";
import { Universes } from "./universes.js";
import { Snapshots } from "./snapshots.js";

const VIEWS = [
  ["tree", "Tree", TreeView],
  ["sessions", "Sessions", SessionsView],
  ["locks", "Locks", LocksView],
  ["timeline", "Timeline", TimelineView],
  ["advice", "Advice", AdviceView],
  ["faults", "Faults", FaultsView],
  ["clock", "Clock", ClockView],
  ["snapshots", "Snapshots", SnapshotsView],
  ["universes", "Universes", UniversesView],
];

/** How often a view that shows ages reads them again. Unit: milliseconds. */
const AGES_MS = 1_000;

/** Reads `#/VIEW?NAME=VALUE`. */
function place() {
  const [view, query] = location.hash.replace(/^#\/?/, "").split("?", 2);
  const known = VIEWS.some(([name]) => name === view) ? view : "tree";
  return { view: known, parameters: Object.fromEntries(new URLSearchParams(query)) };
}

/** Returns the address of a view in the universe that is open. */
function href(view, parameters = {}) {
  const all = { ...parameters };
  if (access.universe && !("universe" in all)) all.universe = access.universe;
  const query = new URLSearchParams(Object.entries(all).filter(([, value]) => value)).toString();
  return `#/${view}${query && `?${query}`}`;
}

function go(view, parameters) {
  location.hash = href(view, parameters);
}

function App() {
  const [at, setAt] = useState(place);
  const [live, setLive] = useState({ entries: [], missed: 0, error: "", isStreaming: false });
  const [version, setVersion] = useState(0);
  const [error, setError] = useState(null);
  const [login, setLogin] = useState(null);
  const [, setChanged] = useState(0);
  const universe = at.parameters.universe || "";
  access.universe = universe;

  page.report = setError;
  page.refresh = useCallback(() => setVersion((old) => old + 1), []);
  access.onUnauthorized = (sentence) => setLogin((old) => old ?? { sentence });

  useEffect(() => {
    const moved = () => {
      setAt(place());
      setError(null);
    };
    window.addEventListener("hashchange", moved);
    return () => window.removeEventListener("hashchange", moved);
  }, []);
  useEffect(() => {
    if (login) return undefined;
    setLive({ entries: [], missed: 0, error: "", isStreaming: false });
    return follow((state) => {
      setLive(state);
      page.refresh();
    });
  }, [universe, login === null]);
  useEffect(() => {
    document.title = `${VIEWS.find(([name]) => name === at.view)[1]} · minikeeper`;
  }, [at.view]);

  if (login) {
    const enter = (token) => {
      setToken(token);
      setLogin(null);
    };
    return html`<${Login} sentence=${login.sentence} onEnter=${enter} />`;
  }
  const toggle = () => {
    setReadOnly(!access.readOnly);
    setError(null);
    setChanged((old) => old + 1);
  };
  const View = VIEWS.find(([name]) => name === at.view)[2];
  return html`
    <a class="skip" href="#main" onClick=${skip}>Skip to the content</a>
    <${Head} ...${{ version, universe, live, view: at.view }} onToggle=${toggle} />
    <nav aria-label="Views"><ul>
      ${VIEWS.map(([name, title]) => html`<li key=${name}>
        <a href=${href(name)} aria-current=${at.view === name ? "page" : undefined}>${title}</a>
      </li>`)}
    </ul></nav>
    <main id="main" tabindex="-1" key=${`${at.view} ${universe}`}>
      ${error && html`<div class="error" role="alert"><span>${error}</span>
        <button type="button" class="quiet" aria-label="Dismiss" onClick=${() => setError(null)}>✕</button></div>`}
      <${View} parameters=${at.parameters} version=${version} live=${live} />
    </main>`;
}

function skip(event) {
  event.preventDefault();
  document.getElementById("main").focus();
}

/** Where the page is: the server, its universe, its clock, and whether it may change anything. */
function Head({ version, universe, live, view, onToggle }) {
  const [known] = useAnswer("universes", {}, version, 0);
  const [now] = useAnswer("now", {}, version, AGES_MS);
  const universes = known?.universes ?? [];
  const open = (event) => go(view, { universe: event.target.value });
  const isLost = live.error === "the server does not answer";
  const state = isLost ? ["bad", "no answer"] : live.isStreaming ? ["ok", "live"] : ["warn", "polling"];
  return html`<header>
    <a class="brand" href=${href("tree")}>minikeeper</a>
    <code class="host">${location.host}</code>
    <span class=${`state ${state[0]}`} role="status">${state[1]}</span>
    <span class="fill"></span>
    ${(universes.length > 0 || universe) && html`<label>Universe
      <select value=${universe} onChange=${open}>
        <option value="">server's own</option>
        ${[...new Set([...universes, ...(universe ? [universe] : [])])].map((name) => html`<option key=${name} value=${name}>${name}</option>`)}
      </select></label>`}
    ${now && html`<a class="now" href=${href("clock")} title="The server's clock">${ago(now.elapsed_ms)}${now.is_frozen ? " · frozen" : ""}</a>`}
    <label class="switch"><input type="checkbox" role="switch" checked=${access.readOnly} onChange=${onToggle} /> Read-only</label>
  </header>`;
}

/** Asks for the token. */
function Login({ sentence, onEnter }) {
  const [token, setText] = useState("");
  const field = useRef(null);
  useEffect(() => field.current.focus(), []);
  const send = (event) => {
    event.preventDefault();
    if (token.trim()) onEnter(token.trim());
  };
  return html`<main class="login"><form onSubmit=${send}>
    <h1>minikeeper</h1>
    <label for="token">Token of the server (<code>--control-token</code>)</label>
    <input id="token" ref=${field} type="password" autocomplete="off" value=${token} onInput=${(event) => setText(event.target.value)} />
    ${sentence && html`<p class="notice bad" role="alert">${sentence}</p>`}
    <button class="primary">Continue</button>
    <p class="muted">The browser keeps it until this tab is closed.</p>
  </form></main>`;
}

function TreeView({ parameters, version }) {
  return html`<${Tree} path=${parameters.path || "/"} version=${version}
    onOpen=${(path) => go("tree", { path })} hrefOf=${(path) => href("tree", { path })} hrefOfSession=${(id) => href("sessions", { session: id })} />`;
}

function SessionsView({ parameters, version }) {
  return html`<${Sessions} selected=${parameters.session} version=${version}
    onSelect=${(session) => go("sessions", { session })} hrefOf=${(path) => href("tree", { path })} />`;
}

function LocksView({ version }) {
  const [answer, error] = useAnswer("locks", {}, version, AGES_MS);
  return html`<div class="view">
    <div class="title"><h1>Locks</h1><${Command} verb="locks" /></div>
    ${answer ? html`<${Locks} locks=${answer.locks} deadlocks=${answer.deadlocks} onSession=${(session) => go("sessions", { session })} />
      ${answer.is_truncated && html`<p class="notice">There are more locks or contenders than listed.</p>`}` : html`<${Notice} error=${error}>Reading…</${Notice}>`}
  </div>`;
}

function TimelineView({ version, live }) {
  const [isPaused, setPaused] = useState(false);
  const [answer] = useAnswer("sessions", {}, version, 0);
  const [now] = useAnswer("now", {}, version, 0);
  const held = useRef({ entries: [] });
  if (!isPaused) held.current = { entries: live.entries, sessions: answer?.sessions ?? [], now_ms: now?.elapsed_ms ?? 0 };
  const shown = held.current;
  return html`<div class="view wide">
    <div class="title"><h1>Timeline</h1>
      ${!live.error && html`<button type="button" aria-pressed=${isPaused} onClick=${() => setPaused(!isPaused)}>${isPaused ? "Continue" : "Pause"}</button>`}
      <${Command} verb="tail" /></div>
    ${live.missed > 0 && html`<p class="notice warn">${live.missed} entries are missing: the page was too slow, or a request caused too many.</p>`}
    ${live.error && !shown.entries.length
      ? html`<${Notice} error=${{ message: live.error }} />
        <p class="notice">The server was started with <code>--journal-bytes 0</code>; <code>--journal-bytes 4194304</code> is the default.</p>`
      : html`<${Timeline} entries=${shown.entries} sessions=${shown.sessions} now_ms=${shown.now_ms}
        ctl=${command("journal").replace(/ journal$/, "")} />`}
  </div>`;
}

function AdviceView({ version }) {
  const [answer, error] = useAnswer("advise", {}, useSlow(version, AGES_MS));
  return html`<div class="view">
    <div class="title"><h1>Advice</h1><${Command} verb="advise" /></div>
    ${!answer && html`<${Notice} error=${error}>Reading…</${Notice}>`}
    ${answer && html`<p class="muted">Known mistakes of clients in the ${answer.entry_count} entries of the journal.</p>`}
    ${answer && (answer.findings.length ? html`<${Findings} findings=${answer.findings} />` : html`<p class="notice">There are none.</p>`)}
  </div>`;
}

function FaultsView({ version }) {
  return html`<${Faults} version=${version} hrefOfSession=${(id) => href("sessions", { session: id })} />`;
}

function ClockView({ version }) {
  return html`<${Clock} version=${version} />`;
}

function UniversesView({ version }) {
  return html`<${Universes} version=${version} hrefOf=${(universe) => href("tree", { universe })} onGone=${() => go("universes", { universe: "" })} />`;
}

function SnapshotsView({ version }) {
  return html`<${Snapshots} version=${version} hrefOf=${(path) => href("tree", { path })} />`;
}

render(html`<${App} />`, document.getElementById("app"));
