// Sessions: who is connected, what each owns and watches.

import { html, useState } from "./preact.js";
import { Action, Command, Copy, Notice, ago, useAnswer, useRows } from "./parts.js";

/** How many rows are shown at first, and with each "show more". */
const ROWS = 200;

export function Sessions({ selected, version, onSelect, hrefOf }) {
  const [answer, error] = useAnswer("sessions", {}, version, 1_000);
  const [text, setText] = useState("");
  const all = answer?.sessions ?? [];
  const fits = (session) => [session.id, session.address, ...session.identities, ...session.ephemerals].some((one) => one?.includes(text));
  const [rows, more] = useRows(text ? all.filter(fits) : all, ROWS);
  const session = all.find(({ id }) => id === selected);
  return html`<div class="view wide">
    <div class="title"><h1>Sessions</h1>${answer && html`<span class="muted">${all.length}</span>`}<${Command} verb="sessions" /></div>
    ${error && html`<${Notice} error=${error} />`}
    ${answer && !all.length && html`<p class="notice">No client has a session.</p>`}
    ${all.length > 0 && html`<div class="split even">
      <div>
        <input type="search" aria-label="Filter sessions" placeholder="Filter by id, address or ephemeral" value=${text} onInput=${(event) => setText(event.target.value)} />
        <div class="scroll"><table>
          <thead><tr><th>Session</th><th>State</th><th class="wide-only">Address</th><th class="number">Expires in</th><th class="number">Owns</th><th class="number">Watches</th></tr></thead>
          <tbody>${rows.map((one) => html`<tr key=${one.id} class=${one.id === selected ? "selected" : ""} onClick=${() => onSelect(one.id)}>
            <td><button type="button" class="link mono" aria-pressed=${one.id === selected}>${one.id}</button></td>
            <td><${State} session=${one} /></td>
            <td class="wide-only"><code>${one.address}</code></td>
            <td class="number">${ago(one.timeout_left_ms)}</td>
            <td class="number">${one.ephemerals.length}</td>
            <td class="number">${one.watches.length}</td>
          </tr>`)}</tbody>
        </table></div>
        ${more}
      </div>
      ${selected && (session ? html`<${Details} key=${selected} session=${session} hrefOf=${hrefOf} />` : html`<div class="panel"><p class="notice">Session <code>${selected}</code> has ended.</p></div>`)}
    </div>`}
    ${selected && answer && !all.length && html`<p class="notice">Session <code>${selected}</code> has ended.</p>`}
  </div>`;
}

function State({ session }) {
  const [kind, text] = session.is_silenced ? ["warn", "silenced"] : session.is_connected ? ["ok", "connected"] : ["bad", "disconnected"];
  return html`<span class=${`state ${kind}`}>${text}</span>`;
}

function Details({ session, hrefOf }) {
  const who = { session: session.id };
  const [ephemerals, moreEphemerals] = useRows(session.ephemerals, ROWS);
  const [watches, moreWatches] = useRows(session.watches, ROWS);
  const last = session.last_operation;
  return html`<article class="panel" aria-label=${`Session ${session.id}`}>
    <h2><code>${session.id}</code> <${Copy} text=${session.id} label="Copy session id" /></h2>
    <dl class="facts">
      <dt>State</dt><dd><${State} session=${session} /></dd>
      <dt>Address</dt><dd><code>${session.address ?? "none"}</code></dd>
      <dt>Timeout</dt><dd>${ago(session.timeout_ms)}, expires in ${ago(session.timeout_left_ms)} <progress max=${session.timeout_ms} value=${session.timeout_left_ms} aria-label="Time left"></progress></dd>
      <dt>Identities</dt><dd>${session.identities.map((identity, at) => html`<code key=${at}>${identity}</code> `)}</dd>
      <dt>Last operation</dt><dd>${last ? html`<code>${last.name}</code> at ${ago(last.at_ms)}` : "none"}</dd>
    </dl>
    <h3>Ephemerals <span class="muted">${session.ephemerals.length}</span></h3>
    <ul class="paths">${ephemerals.map((path) => html`<li key=${path}><a href=${hrefOf(path)}><code>${path}</code></a></li>`)}</ul>${moreEphemerals}
    <h3>Watches <span class="muted">${session.watches.length}</span></h3>
    <ul class="paths">${watches.map(({ path, kind }) => html`<li key=${`${kind} ${path}`}><a href=${hrefOf(path)}><code>${path}</code></a> <span class="tag">${kind}</span></li>`)}</ul>${moreWatches}
    <div class="actions">
      <${Action} label="Expire" verb="expire" fields=${who} isDanger />
      <${Action} label="Drop connection" verb="disconnect" fields=${who} isDisabled=${!session.is_connected} />
      ${session.is_silenced ? html`<${Action} label="Listen again" verb="unsilence" fields=${who} />` : html`<${Action} label="Silence" verb="silence" fields=${who} />`}
    </div>
  </article>`;
}
