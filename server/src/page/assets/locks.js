// Locks as queues: who holds, who waits and for whom, what is wrong.

import { html, useState } from "./preact.js";
import { duration, hue, shortSession } from "./journal.js";

const KINDS = { mutex: "mutex", read_write: "read/write lock", semaphore: "semaphore", leader_latch: "leader latch", leader_election: "leader election" };

/** How many contenders of a lock are shown at first. */
const SHOWN = 8;

/** What clients stored in their znodes, by session: where it is one text that no other session stored. */
export function namesOf(locks) {
  const names = new Map();
  const sessions = new Map();
  const add = (all, key, one) => all.set(key, (all.get(key) ?? new Set()).add(one));
  for (const contender of locks.flatMap((lock) => [...lock.holders, ...lock.waiters])) {
    const name = dataOf(contender);
    if (!name || !contender.session) continue;
    add(names, contender.session, name);
    add(sessions, name, contender.session);
  }
  return new Map([...names].flatMap(([session, [name, other]]) => (other === undefined && sessions.get(name).size === 1 ? [[session, name]] : [])));
}

/** A session, by its name if one is known: a button if it leads somewhere. */
export function SessionName({ id, name, onSession }) {
  if (!id) return html`<span class="who hue-none">no session</span>`;
  const title = `session ${id}`;
  if (!onSession) return html`<span class="who ${hue(id)}" title=${title}>${name ?? shortSession(id)}</span>`;
  return html`<button type="button" class="who ${hue(id)}" title=${title} onClick=${() => onSession(id)}>${name ?? shortSession(id)}</button>`;
}

/** What a client stored in its znode, if it is text. */
const dataOf = (contender) => (typeof contender.data === "string" && contender.data !== "" ? contender.data : undefined);

/** A path: a link if it leads somewhere. */
const Path = ({ path, hrefOf, children = path }) => (hrefOf ? html`<a href=${hrefOf(path)}>${children}</a>` : children);

function Contender({ contender, role, lock, all, stuck, names, onSession, hrefOf }) {
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
      ${waitsFor.length > 0 && html`<span class="for">for ${waitsFor.slice(0, 5).map((it) => (it.startsWith("/") ? html`<code>${it}</code> ` : html`<${SessionName} id=${it} name=${names.get(it)} onSession=${onSession} /> `))}${waitsFor.length > 5 && `and ${waitsFor.length - 5} more`}</span>`}
      ${states.map((state) => html`<span class="chip warn">${state}</span>`)}
      <code class="node" title=${path}><${Path} path=${path} hrefOf=${hrefOf}><span class="head">${name.slice(0, -10)}</span><span class="tail">${name.slice(-10)}</span></${Path}></code>
    </span>
  </li>`;
}

/** The median of times, and the longest. */
const Spread = ({ times }) => html`<span title="at least ${duration(times.min)}">median ${duration(times.median)}, at most ${duration(times.max)}</span>`;

/** How the lock changed hands so far. */
function History({ history, names }) {
  if (!history || history.hand_overs + history.gave_up === 0) return null;
  const others = history.sessions_total - history.sessions.slice(0, 8).length;
  return html`<dl class="history">
    <div><dt>acquired</dt><dd>${history.sessions.slice(0, 8).map((it) => html`<${SessionName} key=${it.session} id=${it.session} name=${names.get(it.session)} /> ${it.acquisitions}× `)}${others > 0 && `and ${others} more`}</dd></div>
    ${typeof history.fairness === "number" && html`<div><dt>fairness</dt><dd title="Jain's index: 1 if all sessions acquired equally often">${history.fairness.toFixed(2)}</dd></div>`}
    <div><dt>handed over</dt><dd>${history.hand_overs}×${history.hand_over_ms && html`, <${Spread} times=${history.hand_over_ms} />`}</dd></div>
    ${history.wait_ms && html`<div><dt>waited</dt><dd><${Spread} times=${history.wait_ms} /></dd></div>`}
    ${history.gave_up > 0 && html`<div><dt>gave up</dt><dd>${history.gave_up}</dd></div>`}
  </dl>`;
}

/** Warnings of one kind: the first, and the others when asked for. */
function Warnings({ warnings }) {
  const text = (it) => html`<li key=${it.text}>${it.text}</li>`;
  return html`<li><span class="chip warn">${warnings[0].code}</span> ${warnings[0].text}
    ${warnings.length > 1 && html`<details class="equal"><summary>and ${warnings.length - 1} more</summary><ul>${warnings.slice(1).map(text)}</ul></details>`}</li>`;
}

function Lock({ lock, deadlocks, names, onSession, hrefOf }) {
  const [doShowAll, setShowAll] = useState(false);
  const all = new Map([...lock.holders, ...lock.waiters].map((contender) => [contender.path, contender]));
  const stuck = new Set(deadlocks.filter((it) => it.cycle.some((step) => step.lock === lock.path)).flatMap((it) => it.sessions));
  const listed = lock.holders.length + lock.waiters.length;
  // One list: a waiter that becomes a holder keeps its element, and the focus in it.
  const contender = (it, role) => html`<${Contender} key=${it.path} contender=${it} role=${role} lock=${lock} all=${all} stuck=${stuck} names=${names} onSession=${onSession} hrefOf=${hrefOf} />`;
  const queue = [...lock.holders.map((it) => [it, "holds"]), ...lock.waiters.map((it, index) => [it, `waits ${index + 1}`])];
  const codes = [...new Set(lock.warnings.map((it) => it.code))];
  const facts = [KINDS[lock.kind] ?? lock.kind, lock.family, lock.max_leases && `${lock.max_leases} leases`].filter(Boolean).join(" · ");
  return html`<div role="group" class="lock${stuck.size > 0 ? " stuck" : ""}" aria-label="Lock ${lock.path}">
    <div class="top"><h3><code><${Path} path=${lock.path} hrefOf=${hrefOf} /></code></h3><span class="about">${facts}</span><span class="count">${lock.waiters.length} waiting</span></div>
    <ol class="queue${doShowAll ? " all" : ""}">${(doShowAll ? queue : queue.slice(0, SHOWN)).map(([it, role]) => contender(it, role))}</ol>
    ${queue.length > SHOWN && html`<p><button type="button" aria-expanded=${String(doShowAll)} onClick=${() => setShowAll(!doShowAll)}>${doShowAll ? `Show the first ${SHOWN}` : `Show all ${queue.length}`}</button></p>`}
    ${lock.holders.length === 0 && html`<p class="muted">No session holds it.</p>`}
    ${lock.contenders_total > listed && html`<p class="muted">${lock.contenders_total - listed} more contenders are not listed.</p>`}
    ${lock.warnings.length > 0 && html`<ul class="warnings">${codes.map((code) => html`<${Warnings} key=${code} warnings=${lock.warnings.filter((it) => it.code === code)} />`)}</ul>`}
    <${History} history=${lock.history} names=${names} />
  </div>`;
}

/** A cycle of sessions, each of which waits for the next. */
export function Deadlock({ deadlock, names, onSession, hrefOf }) {
  const { cycle } = deadlock;
  return html`<div class="deadlock" role="group" aria-label="Deadlock">
    <h3>Deadlock</h3>
    <ol class="cycle">${cycle.map((step) => html`<li key=${step.session}>
      <${SessionName} id=${step.session} name=${names.get(step.session)} onSession=${onSession} />${step.address && html` <span class="address">${step.address}</span>`}
      <span> waits for </span><code><${Path} path=${step.lock} hrefOf=${hrefOf} /></code><span>${step.is_held ? ", held by " : ", where ahead of it is "}</span><${SessionName} id=${step.waits_for} name=${names.get(step.waits_for)} onSession=${onSession} />
    </li>`)}</ol>
    <p class="muted">None of these sessions can go on until one gives up.</p>
  </div>`;
}

/**
 * The answer of the verb `locks`. `onSession` is called with the id of a session that is clicked; `hrefOf` returns the address
 * of a znode.
 */
export function Locks({ locks, deadlocks = [], names = namesOf(locks), onSession, hrefOf }) {
  if (locks.length === 0) return html`<p class="empty">No client holds a lock or waits for one.</p>`;
  return html`<div class="locks">
    ${deadlocks.map((it) => html`<${Deadlock} key=${it.text} deadlock=${it} names=${names} onSession=${onSession} hrefOf=${hrefOf} />`)}
    <div class="cards">${locks.map((lock) => html`<${Lock} key=${lock.path} lock=${lock} deadlocks=${deadlocks} names=${names} onSession=${onSession} hrefOf=${hrefOf} />`)}</div>
  </div>`;
}
