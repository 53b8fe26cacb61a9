// The page: navigation by the hash, what all views share, and the view that is open.

import { html, render, useCallback, useEffect, useRef, useState } from "./preact.js";
import { access, command, setReadOnly, setToken } from "./api.js";
import { Command, Notice, ago, page, useAnswer, useRows, useSlow } from "./parts.js";
import { UNKNOWN, follow } from "./live.js";
import { Tree } from "./tree.js";
import { Sessions } from "./sessions.js";
import { Locks, namesOf } from "./locks.js";
import { Timeline } from "./timeline.js";
import { Findings } from "./advice.js";
import { Faults } from "./faults.js";
import { Clock } from "./clock.js";
import { Universes } from "./universes.js";
import { Snapshots } from "./snapshots.js";
import { Servers } from "./servers.js";

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
  ["servers", "Servers", ServersView],
];

/** Views that do not depend on the universe. */
const OF_THE_SERVER = ["servers", "universes"];

/** How many locks are shown at first, and with each "show more". */
const LOCKS = 50;

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
  const [live, setLive] = useState(UNKNOWN);
  const [version, setVersion] = useState(0);
  const [error, setError] = useState(null);
  const [login, setLogin] = useState(null);
  const [, setChanged] = useState(0);
  const universe = at.parameters.universe || "";
  if (access.universe !== universe) access.isFollowed = false;
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
    setLive(UNKNOWN);
    return follow((state) => {
      setLive(state);
      page.refresh();
    });
  }, [universe, login === null]);
  useEffect(() => {
    document.title = `${VIEWS.find(([name]) => name === at.view)[1]} · minikeeper`;
    // In a narrow window the views are one row that scrolls.
    const link = document.querySelector("nav [aria-current]");
    const row = link?.closest("nav");
    if (row) row.scrollLeft = link.offsetLeft - (row.clientWidth - link.offsetWidth) / 2;
  }, [at.view, login === null]);

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
      ${live.isGone && !OF_THE_SERVER.includes(at.view) ? html`<${Gone} universe=${universe} />` : html`<${View} parameters=${at.parameters} version=${version} live=${live} />`}
    </main>`;
}

/** What stands in the place of a view of a universe that does not exist. */
function Gone({ universe }) {
  return html`<div class="view"><p class="notice warn">There is no universe <code>${universe}</code>. It may have been dropped while this page was open.</p>
    <p><a href=${href("tree", { universe: "" })}>Open the server's own universe</a>, or choose one in <a href=${href("universes", { universe: "" })}>Universes</a>.
    This page shows <code>${universe}</code> again if it is created again.</p></div>`;
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
  const state = live.isGone ? ["warn", "no universe", "The universe does not exist"]
    : isLost ? ["bad", "no answer", "The server does not answer"]
    : live.isStreaming ? ["ok", "live", "The page follows the journal of the server"]
    : ["warn", "polling", "The page asks the server every second"];
  return html`<header>
    <a class="brand" href=${href("tree")}>minikeeper</a>
    <code class="host">${location.host}</code>
    <span class=${`state ${state[0]}`} role="status" title=${state[2]}>${state[1]}</span>
    <span class="fill"></span>
    ${(universes.length > 0 || universe) && html`<label>Universe
      <select value=${universe} onChange=${open}>
        <option value="">server's own</option>
        ${[...new Set([...universes, ...(universe ? [universe] : [])])].map((name) => html`<option key=${name} value=${name}>${name}</option>`)}
      </select></label>`}
    ${now && html`<a class="now" href=${href("clock")} title="The server's clock, since its start">clock ${ago(now.elapsed_ms)}${now.is_frozen ? " · frozen" : ""}</a>`}
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
  const [text, setText] = useState("");
  const all = answer?.locks ?? [];
  const names = useNames(answer?.locks);
  const fits = (lock) => [lock.path, ...[...lock.holders, ...lock.waiters].flatMap((it) => [it.session, it.data, it.address])].some((it) => it?.includes(text));
  const [locks, more] = useRows(text ? all.filter(fits) : all, LOCKS);
  return html`<div class="view">
    <div class="title"><h1>Locks</h1>${answer && html`<span class="muted">${all.length}</span>`}<${Command} verb="locks" /></div>
    ${all.length > 0 && html`<input type="search" aria-label="Filter locks" placeholder="Filter by path, client or session" value=${text} onInput=${(event) => setText(event.target.value)} />`}
    ${answer ? html`${all.length > 0 && !locks.length ? html`<p class="notice">No lock matches the filter.</p>`
      : html`<${Locks} locks=${locks} deadlocks=${answer.deadlocks} names=${names} onSession=${(session) => go("sessions", { session })} hrefOf=${(path) => href("tree", { path })} />`}
      ${more}
      ${answer.is_truncated && html`<p class="notice">There are more locks or contenders than listed.</p>`}` : html`<${Notice} error=${error}>Reading…</${Notice}>`}
  </div>`;
}

function TimelineView({ version, live }) {
  const [isPaused, setPaused] = useState(false);
  const [answer] = useAnswer("sessions", {}, version, 0);
  const [now] = useAnswer("now", {}, version, 0);
  const [locks] = useAnswer("locks", {}, useSlow(version, AGES_MS));
  const names = useNames(locks?.locks);
  const held = useRef({ entries: [] });
  if (!isPaused) held.current = { entries: live.entries, sessions: answer?.sessions ?? [], now_ms: now?.elapsed_ms ?? 0 };
  const shown = held.current;
  return html`<div class="view wide">
    <div class="title"><h1>Timeline</h1>
      ${live.hasJournal && html`<button type="button" aria-pressed=${isPaused} onClick=${() => setPaused(!isPaused)}>${isPaused ? "Continue" : "Pause"}</button>`}
      <${Command} verb="tail" /></div>
    ${live.missed > 0 && html`<p class="notice warn">${live.missed} entries are missing: the page was too slow, or a request caused too many.</p>`}
    ${live.hasJournal === false ? html`<${NoJournal} />`
      : live.error && !shown.entries.length ? html`<${Notice} error=${{ message: live.error }} />`
      : html`<${Timeline} entries=${shown.entries} sessions=${shown.sessions} names=${names} now_ms=${shown.now_ms}
        ctl=${command("journal").replace(/ journal$/, "")} />`}
  </div>`;
}

/** Names sessions as contenders of locks. A client that no longer waits for a lock keeps the name that it had there. */
function useNames(locks = []) {
  const names = useRef(new Map());
  const others = namesOf(locks);
  // The same map as long as no name is new.
  if ([...others].some(([session, name]) => names.current.get(session) !== name)) names.current = new Map([...names.current, ...others]);
  return names.current;
}

/** What stands in the place of the journal. */
function NoJournal() {
  return html`<p class="notice">This server keeps no journal, which has what clients did and what happened to them: it was started
    with <code>--journal-bytes 0</code>; <code>--journal-bytes 4194304</code> is the default. The other views need none.</p>`;
}

function AdviceView({ version, live }) {
  const [answer, error] = useAnswer("advise", live.hasJournal ? {} : null, useSlow(version, AGES_MS));
  return html`<div class="view">
    <div class="title"><h1>Advice</h1><${Command} verb="advise" /></div>
    ${live.hasJournal === false ? html`<${NoJournal} />` : !answer && html`<${Notice} error=${error}>Reading…</${Notice}>`}
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

function ServersView({ version }) {
  return html`<${Servers} version=${version} hrefOfSession=${(id) => href("sessions", { session: id, universe: "" })} />`;
}

function SnapshotsView({ version }) {
  return html`<${Snapshots} version=${version} hrefOf=${(path) => href("tree", { path })} />`;
}

render(html`<${App} />`, document.getElementById("app"));
