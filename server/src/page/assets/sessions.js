// Sessions: who is connected, what each owns and watches.

import { html, useRef, useState } from "./preact.js";
import { Action, Command, Copy, Notice, ago, useAnswer, useRows, useWindow } from "./parts.js";

/** How many paths of a session are shown at first, and with each "show more". */
const ROWS = 200;

/** The height of a row in app.css. Unit: pixels. */
const ROW_HEIGHT = 27;

/** The columns, with what each is sorted by. */
const COLUMNS = [
  ["Session", "", (session) => session.id],
  ["State", "", (session) => Number(session.is_connected) * 2 + Number(!session.is_silenced)],
  ["Address", "wide-only", (session) => session.address ?? ""],
  ["Expires in", "number", (session) => session.timeout_left_ms],
  ["Owns", "number", (session) => session.ephemerals.length],
  ["Watches", "number", (session) => session.watches.length],
];

/** Sorts by a column; equal ones stay in the order of the server. */
function sorted(sessions, { title, isDown }) {
  const value = COLUMNS.find(([name]) => name === title)?.[2];
  if (!value) return sessions;
  const way = isDown ? -1 : 1;
  const keyed = sessions.map((session) => [value(session), session]);
  keyed.sort(([one], [other]) => (one < other ? -way : one > other ? way : 0));
  return keyed.map(([, session]) => session);
}

export function Sessions({ selected, version, onSelect, hrefOf }) {
  const [answer, error] = useAnswer("sessions", {}, version, 1_000);
  const [text, setText] = useState("");
  const all = answer?.sessions ?? [];
  const fits = (session) => [session.id, session.address, ...session.identities, ...session.ephemerals].some((one) => one?.includes(text));
  const [order, setOrder] = useState({});
  const rows = sorted(text ? all.filter(fits) : all, order);
  const box = useRef(null);
  const [first, end, measure] = useWindow(box, rows.length, ROW_HEIGHT);
  const sort = (title) => setOrder(order.title !== title ? { title } : order.isDown ? {} : { title, isDown: true });
  // Rows that are out of sight.
  const rest = (count) => count > 0 && html`<tr class="rest" aria-hidden="true"><td colspan=${COLUMNS.length} style=${{ height: `${count * ROW_HEIGHT}px` }}></td></tr>`;
  const session = all.find(({ id }) => id === selected);
  return html`<div class="view wide">
    <div class="title"><h1>Sessions</h1>${answer && html`<span class="muted">${all.length}</span>`}<${Command} verb="sessions" /></div>
    ${error && html`<${Notice} error=${error} />`}
    ${answer && !all.length && html`<p class="notice">No client has a session.</p>`}
    ${all.length > 0 && html`<div class="split even">
      <div>
        <input type="search" aria-label="Filter sessions" placeholder="Filter by id, address or ephemeral" value=${text} onInput=${(event) => setText(event.target.value)} />
        <div class="scroll" ref=${box} onScroll=${measure} tabindex="0" role="group" aria-label="List of sessions"><table aria-rowcount=${rows.length + 1}>
          <thead><tr>${COLUMNS.map(([title, name]) => html`<th key=${title} class=${name} aria-sort=${order.title !== title ? undefined : order.isDown ? "descending" : "ascending"}>
            <button type="button" onClick=${() => sort(title)}>${title}${order.title === title && (order.isDown ? " ▾" : " ▴")}</button></th>`)}</tr></thead>
          <tbody>${rest(first)}${rows.slice(first, end).map((one) => html`<tr key=${one.id} class=${one.id === selected ? "selected" : ""} onClick=${() => onSelect(one.id)}>
            <td><button type="button" class="link mono" aria-pressed=${one.id === selected}>${one.id}</button></td>
            <td><${State} session=${one} /></td>
            <td class="wide-only"><code>${one.address}</code></td>
            <td class="number">${ago(one.timeout_left_ms)}</td>
            <td class="number">${one.ephemerals.length}</td>
            <td class="number">${one.watches.length}</td>
          </tr>`)}${rest(rows.length - end)}</tbody>
        </table></div>
        ${!rows.length && html`<p class="notice">No session matches the filter.</p>`}
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
      <${Action} label="Expire" verb="expire" fields=${who} isDanger question="Its ephemerals go, and it cannot come back. Expire it?" />
      <${Action} label="Drop connection" verb="disconnect" fields=${who} isDisabled=${!session.is_connected} />
      ${session.is_silenced ? html`<${Action} label="Listen again" verb="unsilence" fields=${who} />` : html`<${Action} label="Silence" verb="silence" fields=${who} />`}
    </div>
  </article>`;
}
