// The page of a bundle, which needs no server: the story of a failed test, or the report of a sweep.

import { html, render } from "./preact.js";
import { Findings } from "./advice.js";
import { duration } from "./journal.js";
import { Locks, SessionName, namesOf } from "./locks.js";
import { Sweep, lineOf } from "./sweep.js";
import { Timeline } from "./timeline.js";

const list = (it) => (Array.isArray(it) ? it : []);

/** A row of numbers and texts as a definition list. */
function Facts({ facts }) {
  const shown = Object.entries(facts).filter(([, it]) => it !== null && typeof it !== "object" && it !== "");
  return shown.length > 0 && html`<dl class="facts">${shown.map(([name, it]) => html`<div><dt>${name.replaceAll("_", " ")}</dt><dd>${String(it)}</dd></div>`)}</dl>`;
}

/** Some of the paths, and how many more. */
function Paths({ paths }) {
  return html`<ul class="paths">${paths.slice(0, 5).map((path) => html`<li><code>${path}</code></li>`)}${paths.length > 5 && html`<li class="muted">${paths.length - 5} more</li>`}</ul>`;
}

function Sessions({ sessions, names, now_ms }) {
  if (sessions.length === 0) return html`<p class="empty">There are no sessions.</p>`;
  return html`<div class="scroll"><table>
    <thead><tr><th>Session</th><th>Address</th><th>State</th><th class="number">Timeout</th><th>Last request</th><th>Ephemerals</th><th>Watches</th></tr></thead>
    <tbody>${sessions.map((it) => {
      const state = [it.is_connected ? "connected" : "no connection", it.is_silenced && "silenced"].filter(Boolean).join(", ");
      const isWell = it.is_connected && !it.is_silenced;
      return html`<tr key=${it.id}>
        <td><${SessionName} id=${it.id} name=${names.get(it.id)} /> <code class="muted">${it.id}</code></td><td>${it.address}</td><td class=${isWell ? "" : "warn"}>${state}</td>
        <td class="number" title="expires in">${duration(it.timeout_left_ms)} of ${duration(it.timeout_ms)}</td>
        <td>${it.last_operation && html`${it.last_operation.name}, ${duration(Math.max(0, now_ms - it.last_operation.at_ms))} ago`}</td>
        <td><${Paths} paths=${list(it.ephemerals)} /></td><td><${Paths} paths=${list(it.watches).map((watch) => `${watch.kind} ${watch.path}`)} /></td>
      </tr>`;
    })}</tbody>
  </table></div>`;
}

function Faults({ faults }) {
  return html`<div class="scroll"><table>
    <thead><tr><th class="number">Fault</th><th>Action</th><th>Applies to</th><th class="number">Matches</th><th class="number">Hits</th><th class="number">Held</th></tr></thead>
    <tbody>${faults.map((it) => html`<tr key=${it.fault}>
      <td class="number">${it.fault}</td><td>${it.action}</td><td><code>${[it.op || "any operation", it.path, it.session, it.address].filter(Boolean).join(" ")}</code></td>
      <td class="number">${it.matches}</td><td class="number ${it.hits === 0 && !it.optional ? "bad" : ""}">${it.hits}</td><td class="number">${it.held}</td>
    </tr>`)}</tbody>
  </table></div>`;
}

/** A story, as the verb `story` returns it. */
export function Story({ story }) {
  const { title, failure, server } = story;
  const now_ms = story.now_ms ?? 0;
  const { locks, deadlocks } = { locks: list(story.locks?.locks), deadlocks: list(story.locks?.deadlocks) };
  const [sessions, faults, entries, findings] = [list(story.sessions), list(story.faults), list(story.entries), list(story.findings)];
  const names = namesOf(locks);
  return html`<main class="story">
    <div class="head">
      <p class="kind">${failure ? html`<span class="chip bad">failed</span> ` : null}what the server saw</p>
      <h1>${title || "minikeeper"}</h1>
      ${server && html`<${Facts} facts=${server} />`}
    </div>
    ${failure && html`<section aria-label="Failure"><pre class="failure" tabindex="0">${failure}</pre></section>`}
    ${locks.length > 0 && html`<section><h2>Locks</h2><${Locks} locks=${locks} deadlocks=${deadlocks} /></section>`}
    <section><h2>Timeline</h2><${Timeline} entries=${entries} sessions=${sessions} names=${names} now_ms=${now_ms} end=${failure ? `the test failed: ${lineOf(failure)}` : undefined} /></section>
    <section><h2>Sessions</h2><${Sessions} sessions=${sessions} names=${names} now_ms=${now_ms} /></section>
    ${faults.length > 0 && html`<section><h2>Faults</h2><${Faults} faults=${faults} /></section>`}
    ${findings.length > 0 && html`<section><h2>Known mistakes</h2><${Findings} findings=${findings} /></section>`}
  </main>`;
}

/** Renders what a bundle has as JSON. */
export function show(document) {
  const content = JSON.parse(document.getElementById("content").textContent);
  const { sweep } = content;
  const title = sweep ? `Sweep of ${sweep.title}` : content.title;
  if (title) document.title = `${title} - minikeeper`;
  render(sweep ? html`<${Sweep} sweep=${sweep} />` : html`<${Story} story=${content} />`, document.getElementById("page"));
}
