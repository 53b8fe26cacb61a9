// The report of a sweep: what failed, and a map of what was tried.

import { html, useMemo, useState } from "./preact.js";
import { duration } from "./journal.js";
import { Timeline } from "./timeline.js";

/** What the map shows for each state, and what that means. */
const STATES = {
  "failed": ["✗", "the test failed"],
  "hung": ["∞", "the test did not end in time"],
  "flaky": ["≈", "the test failed, and passed when it was repeated"],
  "passed": ["✓", "the test passed"],
  "allowed": ["!", "the test failed as it says that it may"],
  "passed-earlier": ["✓", "the test passed in the sweep that this one resumes"],
  "not-reached": ["?", "several runs did not come to it"],
  "untried": ["–", "not tried: the budget had ended, or the sweep was interrupted"],
  "equivalent": ["=", "left out: an equivalent point was tried"],
  "left-out": ["/", "left out by a rule of the test"],
};

/** The states of points about which something is to be known still. */
const OPEN = ["failed", "hung", "flaky", "not-reached", "untried"];

/** The numbers of points in the head, and those that it has even if they are 0. */
const COUNTS = ["passed", "allowed_to_fail", "failed", "hung", "did_not_fail_again", "not_reached", "untried", "passed_earlier", "left_out_as_equivalent", "left_out_by_rules"];
const ALWAYS = ["passed", "failed"];

/** How many rows of the map are shown at first, and with each "show more". */
const ROWS = 200;

/** The address of a story, which lies beside the report. */
const beside = (name) => `./${encodeURIComponent(name)}`;

const idOf = (point, test) => `point-${test ?? ""}-${point}`;

/** A message in a line: its first, and its last if there are more. */
export function lineOf(message) {
  const lines = message.split("\n").filter((line) => line.trim());
  return lines.length > 1 ? `${lines[0]} … ${lines.at(-1)}` : lines[0] ?? "";
}

const nth = (number) => `${number}${["th", "st", "nd", "rd"][number % 100 > 10 && number % 100 < 14 ? 0 : number % 10] ?? "th"}`;

function Failure({ failure }) {
  const { point, sentence, command, message, story, timeline, order } = failure;
  const names = timeline && new Map(Object.entries(timeline.clients).map(([session, number]) => [session, `client ${number}`]));
  return html`<article id=${idOf(point, failure.test)} tabindex="-1" aria-label=${point}>
    <h3>${failure.test && html`<code>${failure.test}</code>: `}when ${sentence}${failure.is_flaky && html` <span class="chip warn">passed when it was repeated</span>`}</h3>
    <dl class="facts"><div><dt>${order ? "order" : "point"}</dt><dd><code>${point}</code></dd></div><div><dt>run again</dt><dd><code class="command">${command}</code></dd></div>
      ${story && html`<div><dt>more</dt><dd><a href=${beside(story)}>the story of this run</a>: sessions, locks, all entries</dd></div>`}</dl>
    ${order && html`<pre class="failure" style=${{ whiteSpace: "pre" }} tabindex="0" aria-label="The order">${order}</pre>`}
    ${timeline && html`<${Timeline} entries=${timeline.entries} names=${names} start=${timeline.fault ?? undefined} end=${`the test ${failure.is_hang ? "hung" : "failed"}: ${lineOf(message)}`} ctl=${null} />`}
  </article>`;
}

/** A failure whose cause another one has shown. */
function Further({ failure: { test, point, sentence, story, is_flaky: isFlaky } }) {
  return html`<li id=${idOf(point, test)} tabindex="-1" aria-label=${point}>${test && html`<code>${test}</code>: `}when ${sentence}: <code>${point}</code>${story && html` <a href=${beside(story)}>story</a>`}${isFlaky && html` <span class="chip warn">passed when it was repeated</span>`}</li>`;
}

/** Failures with one cause. */
function Group({ group, number }) {
  return html`<section aria-label="Failure ${number}">
    <h2>${number}. The test ${group.is_hang ? "hangs" : "fails"}${group.failures.length > 1 && ` at ${group.failures.length} points`}</h2>
    <pre class="failure" tabindex="0">${group.message}</pre>
    ${group.place && html`<p class="muted">at <code>${group.place}</code></p>`}
    <${Failure} failure=${group.failures[0]} />
    ${group.failures.length > 1 && html`<h3>and likewise</h3>
      <ul class="paths">${group.failures.slice(1).map((failure) => html`<${Further} key=${failure.point} failure=${failure} />`)}</ul>`}
  </section>`;
}

function Legend({ map, counts }) {
  return html`<dl class="legend">${map.states.filter((state) => counts.get(state)).map((state) => html`<div key=${state}>
    <dt><span class="cell ${state}">${STATES[state][0]}</span> ${counts.get(state)}</dt><dd>${STATES[state][1]}</dd></div>`)}</dl>`;
}

/** What was tried at each request and event, in the order of the run without faults. */
function PointMap({ map, failures }) {
  const [doShowOpen, setShowOpen] = useState(false);
  const [count, setCount] = useState(ROWS);
  const counts = useMemo(() => {
    const found = new Map();
    for (const state of map.rows.flatMap((row) => Object.values(row.states))) found.set(state, (found.get(state) ?? 0) + 1);
    return found;
  }, [map]);
  const faults = map.faults.filter((fault) => map.rows.some((row) => row.states[fault]));
  const rows = doShowOpen ? map.rows.filter((row) => Object.values(row.states).some((state) => OPEN.includes(state))) : map.rows;
  const cell = (row, fault) => {
    const state = row.states[fault];
    if (!state) return html`<td key=${fault}></td>`;
    const [sign, meaning] = STATES[state];
    const point = `${fault}:${row.client}:${row.op}:${row.nth}:${row.path}`;
    const text = `${fault}: ${meaning}`;
    const go = (event) => {
      event.preventDefault();
      const there = document.getElementById(idOf(point, row.test));
      there.scrollIntoView();
      there.focus({ preventScroll: true });
    };
    return html`<td key=${fault}>${failures.has(idOf(point, row.test))
      ? html`<a href="#" class="cell ${state}" title=${text} aria-label=${text} onClick=${go}>${sign}</a>`
      : html`<span class="cell ${state}" role="img" title=${text} aria-label=${text}>${sign}</span>`}</td>`;
  };
  const pairs = map.pair_states.map(({ state, count: many }) => `${many} ${state.replaceAll("-", " ")}`);
  const others = map.pairs - map.pair_states.reduce((sum, it) => sum + it.count, 0);
  if (others > 0) pairs.push(`${others} not tried, because the budget had ended or one of the two fails alone`);
  return html`<section aria-label="Map"><h2>What was tried</h2>
    <p class="muted">Each row is a request or an event of the run without faults, in its order; each column is a fault.</p>
    <${Legend} map=${map} counts=${counts} />
    <p><label><input type="checkbox" checked=${doShowOpen} onChange=${(event) => setShowOpen(event.target.checked)} />only what failed or is not known</label></p>
    <div class="scroll map"><table>
      <thead><tr><th scope="col">Request or event</th>${faults.map((fault) => html`<th key=${fault} scope="col" class="fault"><span>${fault}</span></th>`)}</tr></thead>
      <tbody>${rows.slice(0, count).map((row, index) => html`${row.test && row.test !== rows[index - 1]?.test && html`<tr key=${row.test}><th scope="rowgroup" colspan=${faults.length + 1}><code>${row.test}</code></th></tr>`}<tr key=${`${row.test} ${row.client} ${row.op} ${row.nth} ${row.path}`}>
        <th scope="row">${row.client > 0 && html`<span class="muted">client ${row.client} </span>`}${row.nth > 1 && `${nth(row.nth)} `}<b>${row.op}</b> <code>${row.path}</code></th>${faults.map((fault) => cell(row, fault))}</tr>`)}</tbody>
    </table></div>
    ${rows.length === 0 && html`<p class="muted">There is none.</p>`}
    ${rows.length > count && html`<p><button type="button" onClick=${() => setCount(count + ROWS)}>Show more: ${count} of ${rows.length}</button></p>`}
    ${map.points_left > 0 && html`<p class="warn">${map.points_left} points of further requests and events are not in this page.</p>`}
    ${map.pairs > 0 && html`<p>Pairs of faults, which are not in the map: ${map.pairs}${pairs.length > 0 && `, of which ${pairs.join(", ")}`}.</p>`}
  </section>`;
}

/** How much was tried, by what points have in common. */
function Coverage({ coverage }) {
  const kinds = [...new Set(coverage.map((it) => it.by))];
  return html`<section aria-label="Coverage"><h2>How much was tried</h2>
    ${kinds.map((kind) => html`<details key=${kind} open=${kind !== "path"}><summary>by ${kind === "lock" ? "state of a lock" : kind}</summary>
      <table><thead><tr><th scope="col">${kind}</th><th scope="col">tried</th><th scope="col">known</th></tr></thead>
        <tbody>${coverage.filter((it) => it.by === kind).map((it) => html`<tr key=${it.name}><th scope="row"><code>${it.name}</code></th><td>${it.tried}</td><td class=${it.tried < it.known ? "warn" : ""}>${it.known}</td></tr>`)}</tbody></table></details>`)}
  </section>`;
}

/** What the test says of points, and the goals that it names. */
function Rules({ rules, goals }) {
  return html`<section aria-label="Rules"><h2>What the test says</h2>
    <ul>${rules.map((it) => html`<li key=${it.text}>${it.kind}: <code>${it.text}</code>: ${it.points > 0 ? `${it.points} points` : html`<span class="warn">not needed, remove it</span>`}</li>`)}
      ${goals.map((it) => html`<li key=${it.goal}>Goal: ${it.goal}: ${it.is_reached ? "reached" : html`<span class="warn">no run has reached it</span>`}</li>`)}</ul>
  </section>`;
}

const KINDS = { clean: ["ok", "clean"], failed: ["bad", "failed"], incomplete: ["warn", "incomplete"] };

/** The report of a sweep. */
export function Sweep({ sweep }) {
  const { title, state, reasons, difference, without_faults: withoutFaults, story, numbers, groups, map, unreached, orders } = sweep;
  const [kind, verdict] = KINDS[state];
  const counts = COUNTS.map((name) => [name, numbers[name]]).filter(([name, count]) => count > 0 || ALWAYS.includes(name));
  const tried = orders ? [["orders tried", `${numbers.tried} of ${orders.clients} clients: ${orders.phrase}`]] : [["points tried", `${numbers.tried} of ${numbers.points}`]];
  const facts = [...tried, ...counts, ["runs", `${numbers.runs} in ${duration(numbers.took_ms)}`], ["seed", numbers.seed]];
  const failures = new Set(groups.flatMap((group) => group.failures.map((failure) => idOf(failure.point, failure.test))));
  return html`<main class="story sweep">
    <div class="head">
      <p class="kind"><span class="chip ${kind}">${verdict}</span> a sweep: the test ${orders ? "with its requests in many orders" : "with every fault at every place"}</p>
      <h1>${title}</h1>
      <dl class="facts">${facts.map(([name, it]) => html`<div key=${name}><dt>${name.replaceAll("_", " ")}</dt><dd>${String(it)}</dd></div>`)}</dl>
    </div>
    ${reasons.length > 0 && html`<section aria-label="Incomplete"><p class="warn">${state === "failed" ? "It is incomplete, too" : "It is incomplete"}: ${reasons.join("; ")}</p></section>`}
    ${difference && html`<section aria-label="Not the same each time"><p>${difference}</p></section>`}
    ${withoutFaults && html`<section aria-label="Without faults"><h2>The test fails without any fault</h2><pre class="failure" tabindex="0">${withoutFaults}</pre>
      ${story && html`<p><a href=${beside(story)}>The story of this run</a></p>`}</section>`}
    ${groups.map((group, index) => html`<${Group} key=${index} group=${group} number=${index + 1} />`)}
    ${sweep.failures_left > 0 && html`<p class="warn">${sweep.failures_left} more failures are not in this page.</p>`}
    ${unreached.length > 0 && html`<section aria-label="Not reached"><h2>Not reached in several runs</h2>
      <ul>${unreached.map((it) => html`<li key=${it.point}>${it.sentence} <code class="muted">${it.point}</code></li>`)}</ul>
      ${sweep.unreached_left > 0 && html`<p class="muted">and ${sweep.unreached_left} more</p>`}</section>`}
    ${sweep.rules.length + sweep.goals.length > 0 && html`<${Rules} rules=${sweep.rules} goals=${sweep.goals} />`}
    ${(map.rows.length > 0 || map.pairs > 0) && html`<${PointMap} map=${map} failures=${failures} />`}
    ${sweep.coverage.length > 0 && html`<${Coverage} coverage=${sweep.coverage} />`}
  </main>`;
}
