// Servers: those of the ensemble, what each does for its clients, and who is connected to it.

import { html } from "./preact.js";
import { Action, Command, Copy, Notice, useAnswer } from "./parts.js";

/** Each mode with its button and its colour. */
const MODES = [["up", "Up", "ok"], ["down", "Down", "bad"], ["cut-off", "Cut off", "bad"], ["read-only", "Read-only", "warn"]];

/** How many sessions of a server are listed. */
const SESSIONS = 20;

export function Servers({ version, hrefOfSession }) {
  const [answer, error] = useAnswer("servers", {}, version, 1_000);
  const servers = answer?.servers ?? [];
  return html`<div class="view">
    <div class="title"><h1>Servers</h1><${Command} verb="servers" /></div>
    ${!answer && html`<${Notice} error=${error}>Reading…</${Notice}>`}
    ${answer && html`<p class="muted">All servers serve one state. A client that loses its server fails over to another.</p>`}
    ${servers.length === 1 && html`<p class="notice">There is one. Start with <code>--servers 3</code> to take servers down and cut them off.</p>`}
    <ul class="cards">${servers.map((one) => html`<${Server} key=${one.id} server=${one} isAlone=${servers.length === 1} hrefOfSession=${hrefOfSession} />`)}</ul>
  </div>`;
}

function Server({ server, isAlone, hrefOfSession }) {
  const { id, address, mode, sessions } = server;
  const isOfThisPage = address === location.host;
  return html`<li class="panel" aria-label=${`Server ${id}`}>
    <div class="bar"><b>${id}</b><code>${address}</code><${Copy} text=${address} label="Copy address" />
      <span class=${`state ${MODES.find(([name]) => name === mode)[2]}`}>${mode}</span>
      ${server.is_leader && html`<span class="tag">leader</span>`}${isOfThisPage && html`<span class="tag">this page</span>`}
      <span class="muted">${sessions.length === 1 ? "1 session" : `${sessions.length} sessions`}</span></div>
    ${sessions.length > 0 && html`<p>${sessions.slice(0, SESSIONS).map((session) => html`<a key=${session} href=${hrefOfSession(session)}><code>${session}</code></a> `)}
      ${sessions.length > SESSIONS && `and ${sessions.length - SESSIONS} more`}</p>`}
    ${!isAlone && html`${MODES.filter(([name]) => name !== mode && !(isOfThisPage && name === "down")).map(([name, label]) => html`<${Action} key=${name} label=${label} verb="set_server" fields=${{ server: id, mode: name }} />`)}
      ${!server.is_leader && mode === "up" && html`<${Action} label="Make it the leader" verb="set_leader" fields=${{ server: id }} />`}`}
  </li>`;
}
