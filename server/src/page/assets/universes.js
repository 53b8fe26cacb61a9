// Universes: separate trees with their own sessions and clock, behind the same port.

import { html, useState } from "./preact.js";
import { access } from "./api.js";
import { Action, cleared, Command, Copy, Notice, useAnswer } from "./parts.js";

export function Universes({ version, hrefOf, onGone }) {
  const [answer, error] = useAnswer("universes", {}, version);
  const [name, setName] = useState("");
  const open = access.universe;
  const done = () => setName(cleared(name));
  const row = (universe, title) => html`<li key=${universe} class="panel">
    <div class="bar"><a href=${hrefOf(universe)}><b>${title}</b></a>
      ${universe === open && html`<span class="tag">open</span>`}
      <code class="muted">${location.host}${universe && `/${universe}`}</code><${Copy} text=${`${location.host}${universe && `/${universe}`}`} label="Copy connect string" /></div>
    ${universe && html`<${Action} label="Drop" verb="drop_universe" fields=${{ name: universe }} isDanger onDone=${() => universe === open && onGone()} />`}
  </li>`;
  return html`<div class="view">
    <div class="title"><h1>Universes</h1><${Command} verb="universes" /></div>
    <p class="muted">A universe is a tree with its own sessions, clock and faults. A client chooses one by its chroot.</p>
    ${error && html`<${Notice} error=${error} />`}
    <ul class="cards">${row("", "The server's own")}${(answer?.universes ?? []).map((universe) => row(universe, universe))}</ul>
    ${!access.readOnly && html`<section><h2>Create another</h2>
      <div class="form"><label>Name <input class="mono" value=${name} onInput=${(event) => setName(event.target.value)} /></label></div>
      <${Action} label="Create empty" verb="create_universe" fields=${{ name }} shownFields=${{ name: name || "NAME" }} isDisabled=${!name} isPrimary onDone=${done} />
      <${Action} label=${open ? `Copy ${open}` : "Copy the server's own"} verb="fork" fields=${{ name }} shownFields=${{ name: name || "NAME" }} isDisabled=${!name} onDone=${done} />
    </section>`}
  </div>`;
}
