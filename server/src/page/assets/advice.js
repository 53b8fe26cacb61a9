// Advice: known mistakes of clients, with the evidence, why they matter and what to do.

import { html } from "./preact.js";

/** The findings of the verb `advise`. */
export function Findings({ findings }) {
  const rules = [...new Set(findings.map((it) => it.rule))].map((rule) => findings.filter((it) => it.rule === rule));
  return html`<div class="advice">${rules.map((all) => html`<article key=${all[0].rule} aria-label=${all[0].rule}>
    <h3><span class="chip warn">${all[0].rule}</span> ${all[0].title}</h3>
    <ul>${all.slice(0, 5).map((it) => html`<li key=${it.path}>${it.text}${it.count > 1 && `; ${it.count} times`}
      <span class="muted"> ${it.entries.length > 1 ? "entries" : "entry"} ${it.entries.map((number) => `#${number}`).join(", ")}</span></li>`)}</ul>
    ${all.length > 5 && html`<p class="muted">and on ${all.length - 5} other paths</p>`}
    <p><b>Why</b> ${all[0].why}.</p>
    <p><b>Do</b> ${all[0].do}.</p>
  </article>`)}</div>`;
}
