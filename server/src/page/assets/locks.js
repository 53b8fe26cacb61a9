// Locks as queues: who holds, who waits and for whom, what is wrong.

import { html } from "./preact.js";
import { duration, hue, shortSession } from "./journal.js";

const KINDS = { mutex: "mutex", read_write: "read/write lock", semaphore: "semaphore", leader_latch: "leader latch", leader_election: "leader election" };

/** A session: a button if it leads somewhere. */
export function SessionName({ id, onSession }) {
  if (!id) return html`<span class="who hue-none">no session</span>`;
  const title = `session ${id}`;
  if (!onSession) return html`<span class="who ${hue(id)}" title=${title}>${shortSession(id)}</span>`;
  return html`<button type="button" class="who ${hue(id)}" title=${title} onClick=${() => onSession(id)}>${shortSession(id)}</button>`;
}

/** What a client stored in its znode, if it is text. */
const dataOf = (contender) => (typeof contender.data === "string" && contender.data !== "" ? contender.data : undefined);

function Contender({ contender, role, lock, all, stuck, onSession }) {
  const { path, session } = contender;
  const name = path.startsWith(`${lock.path}/`) ? path.slice(lock.path.length + 1) : path;
  const waitsFor = (contender.waits_for || []).map((other) => all.get(other)?.session ?? other);
  const data = dataOf(contender);
  const states = [];
  if (session && !contender.is_connected) states.push("no connection");
  if (contender.is_silenced) states.push("silenced");
  if (role !== "holds" && !contender.is_watching) states.push("no watch");
  const isStuck = session && stuck.has(session);
  return html`<li class="contender ${role === "holds" ? "holds" : "waits"}${isStuck ? " stuck" : ""}">
    <span class="role">${role}</span>
    <span class="whose"><${SessionName} id=${session} onSession=${onSession} />${data !== undefined && html`<q>${data}</q>`}<span class="address">${contender.address}</span></span>
    <span class="since" title="since ${new Date(contender.since_ms).toISOString()}">${duration(contender.age_ms)}</span>
    <span class="more">
      ${contender.is_reader && html`<span class="chip">reads</span>`}
      ${waitsFor.length > 0 && html`<span class="for">for ${waitsFor.slice(0, 5).map((it) => (it.startsWith("/") ? html`<code>${it}</code> ` : html`<${SessionName} id=${it} onSession=${onSession} /> `))}${waitsFor.length > 5 && `and ${waitsFor.length - 5} more`}</span>`}
      ${states.map((state) => html`<span class="chip warn">${state}</span>`)}
      <code class="node" title=${path}><span class="head">${name.slice(0, -10)}</span><span class="tail">${name.slice(-10)}</span></code>
    </span>
  </li>`;
}

/** The median of times, and the longest. */
const Spread = ({ times }) => html`<span title="at least ${duration(times.min)}">median ${duration(times.median)}, at most ${duration(times.max)}</span>`;

/** How the lock changed hands so far. */
function History({ history }) {
  if (!history || history.hand_overs + history.gave_up === 0) return null;
  const others = history.sessions_total - history.sessions.slice(0, 8).length;
  return html`<dl class="history">
    <div><dt>acquired</dt><dd>${history.sessions.slice(0, 8).map((it) => html`<${SessionName} key=${it.session} id=${it.session} /> ${it.acquisitions}× `)}${others > 0 && `and ${others} more`}</dd></div>
    ${typeof history.fairness === "number" && html`<div><dt>fairness</dt><dd title="Jain's index: 1 if all sessions acquired equally often">${history.fairness.toFixed(2)}</dd></div>`}
    <div><dt>handed over</dt><dd>${history.hand_overs}×${history.hand_over_ms && html`, <${Spread} times=${history.hand_over_ms} />`}</dd></div>
    ${history.wait_ms && html`<div><dt>waited</dt><dd><${Spread} times=${history.wait_ms} /></dd></div>`}
    ${history.gave_up > 0 && html`<div><dt>gave up</dt><dd>${history.gave_up}</dd></div>`}
  </dl>`;
}

function Lock({ lock, deadlocks, onSession }) {
  const all = new Map([...lock.holders, ...lock.waiters].map((contender) => [contender.path, contender]));
  const stuck = new Set(deadlocks.filter((it) => it.cycle.some((step) => step.lock === lock.path)).flatMap((it) => it.sessions));
  const listed = lock.holders.length + lock.waiters.length;
  // One list: a waiter that becomes a holder keeps its element, and the focus in it.
  const contender = (it, role) => html`<${Contender} key=${it.path} contender=${it} role=${role} lock=${lock} all=${all} stuck=${stuck} onSession=${onSession} />`;
  const facts = [KINDS[lock.kind] ?? lock.kind, lock.family, lock.max_leases && `${lock.max_leases} leases`].filter(Boolean).join(" · ");
  return html`<div role="group" class="lock${stuck.size > 0 ? " stuck" : ""}" aria-label="Lock ${lock.path}">
    <div class="top"><h3><code>${lock.path}</code></h3><span class="about">${facts}</span><span class="count">${lock.waiters.length} waiting</span></div>
    <ol class="queue">${[...lock.holders.map((it) => contender(it, "holds")), ...lock.waiters.map((it, index) => contender(it, `waits ${index + 1}`))]}</ol>
    ${lock.holders.length === 0 && html`<p class="muted">No session holds it.</p>`}
    ${lock.contenders_total > listed && html`<p class="muted">${lock.contenders_total - listed} more contenders are not listed.</p>`}
    ${lock.warnings.length > 0 && html`<ul class="warnings">${lock.warnings.map((it) => html`<li><span class="chip warn">${it.code}</span> ${it.text}</li>`)}</ul>`}
    <${History} history=${lock.history} />
  </div>`;
}

/** A cycle of sessions, each of which waits for the next. */
export function Deadlock({ deadlock, onSession }) {
  const { cycle } = deadlock;
  return html`<div class="deadlock" role="group" aria-label="Deadlock">
    <h3>Deadlock</h3>
    <ol class="cycle">${cycle.map((step) => html`<li key=${step.session}>
      <${SessionName} id=${step.session} onSession=${onSession} />${step.address && html` <span class="address">${step.address}</span>`}
      <span> waits for </span><code>${step.lock}</code><span>${step.is_held ? ", held by " : ", where ahead of it is "}</span><${SessionName} id=${step.waits_for} onSession=${onSession} />
    </li>`)}</ol>
    <p class="muted">None of these sessions can go on until one gives up.</p>
  </div>`;
}

/** The answer of the verb `locks`. `onSession` is called with the id of a session that is clicked. */
export function Locks({ locks, deadlocks = [], onSession }) {
  if (locks.length === 0) return html`<p class="empty">No client holds a lock or waits for one.</p>`;
  return html`<div class="locks">
    ${deadlocks.map((it) => html`<${Deadlock} key=${it.text} deadlock=${it} onSession=${onSession} />`)}
    <div class="cards">${locks.map((lock) => html`<${Lock} key=${lock.path} lock=${lock} deadlocks=${deadlocks} onSession=${onSession} />`)}</div>
  </div>`;
}
