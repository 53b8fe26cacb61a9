// Snapshots: take, restore, drop, and what has changed since.

import { html, useState } from "./preact.js";
import { Action, Command, Notice, useAnswer } from "./parts.js";
import { when } from "./clock.js";
import { Differences } from "./transfer.js";

export function Snapshots({ version, hrefOf }) {
  const [answer, error] = useAnswer("snapshots", {}, version);
  const [compared, setCompared] = useState(null);
  const snapshots = answer?.snapshots ?? [];
  return html`<div class="view">
    <div class="title"><h1>Snapshots</h1><${Command} verb="snapshots" /></div>
    <p class="muted">A snapshot has znodes, sessions and watches. Restoring it undoes everything since; time and zxid do not go back.</p>
    ${error && html`<${Notice} error=${error} />`}
    <${Action} label="Take a snapshot" verb="snapshot" isPrimary />
    <ul class="cards">${snapshots.map(({ snapshot, taken_ms: taken, is_there: isThere }) => html`<li key=${snapshot} class="panel" aria-label=${`Snapshot ${snapshot}`}>
      <div class="bar"><b>Snapshot ${snapshot}</b><span class="muted">${when(taken)}</span>
        ${!isThere && html`<span class="tag bad">can no longer be restored</span>`}
        <span class="fill"></span>
        ${isThere && html`<button type="button" aria-expanded=${compared === snapshot ? "true" : "false"} onClick=${() => setCompared(compared === snapshot ? null : snapshot)}>Compare with now</button>`}</div>
      ${isThere && html`<${Action} label="Restore" verb="restore" fields=${{ snapshot }} />`}
      <${Action} label="Drop" verb="drop_snapshot" fields=${{ snapshot }} isDanger />
      ${compared === snapshot && isThere && html`<${Changes} snapshot=${snapshot} version=${version} hrefOf=${hrefOf} />`}
    </li>`)}</ul>
    ${answer && !snapshots.length && html`<p class="notice">There is no snapshot.</p>`}
  </div>`;
}

function Changes({ snapshot, version, hrefOf }) {
  const [answer, error] = useAnswer("changes_since", { snapshot, max: 500 }, version);
  return html`<${Command} verb="changes_since" fields=${{ snapshot }} />
    ${error && html`<${Notice} error=${error} />`}
    ${answer && html`<${Differences} differences=${answer.changes} before=${`snapshot ${snapshot}`} after="now" hrefOf=${hrefOf} />
      ${answer.is_truncated && html`<p class="muted">There are more.</p>`}`}`;
}
