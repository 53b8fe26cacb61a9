// Faults: those that are set with their hits, and a form for another.

import { html, useEffect, useState } from "./preact.js";
import { access, read } from "./api.js";
import { Action, Command, Notice, ago, useAnswer } from "./parts.js";
import { Duration } from "./clock.js";

/** What each action does, where its name does not say it. */
const HELP = {
  error: "answers with an error and does nothing",
  delay: "serves the request later",
  lose_reply: "does the operation, and closes the connection instead of answering",
};

export function Faults({ version, hrefOfSession }) {
  const [answer, error] = useAnswer("faults", {}, version, 1_000);
  const faults = answer?.faults ?? [];
  return html`<div class="view">
    <div class="title"><h1>Faults</h1><${Command} verb="faults" /></div>
    ${error && html`<${Notice} error=${error} />`}
    ${answer && !faults.length && html`<p class="notice">No fault is set.</p>`}
    <ul class="cards">${faults.map((fault) => html`<${Fault} key=${fault.fault} fault=${fault} hrefOfSession=${hrefOfSession} />`)}</ul>
    ${faults.length > 1 && html`<${Action} label="Remove all" verb="reset_faults" isDanger />`}
    ${!access.readOnly && html`<${Inject} />`}
  </div>`;
}

function Fault({ fault, hrefOfSession }) {
  const facts = [
    ["Skips", fault.skip || null],
    ["Probability", fault.probability === 1 ? null : fault.probability],
    ["Matches", fault.matches],
    ["Held", fault.held || null],
    ["Last", fault.last_hit && `${fault.last_hit.op} ${fault.last_hit.path ?? ""} ${fault.last_hit.session ?? ""}`],
  ].filter(([, value]) => value !== null && value !== undefined);
  return html`<li class="panel fault" aria-label=${`Fault ${fault.fault}`}>
    <div class="bar"><b>${fault.action}</b>${fault.error && html`<code>${fault.error}</code>`}${fault.delay_ms !== undefined && html`<span>${ago(fault.delay_ms)}</span>`}
      <span>on <code>${fault.op || "all operations"}</code></span>
      ${fault.path && html`<span>at <code>${fault.path}</code></span>`}
      ${fault.session && html`<span>of <a href=${hrefOfSession(fault.session)}><code>${fault.session}</code></a></span>`}
      ${fault.client && html`<span>of client ${fault.client}</span>`}
      ${fault.address && html`<span>of <code>${fault.address}</code></span>`}
      ${fault.optional && html`<span class="tag">optional</span>`}
      <span class="fill"></span>
      <b class=${fault.hits ? "ok" : "muted"}>${fault.hits}${fault.count === null || fault.count === undefined ? "" : ` of ${fault.count}`} ${fault.hits === 1 ? "hit" : "hits"}</b></div>
    <p class="muted">${facts.map(([name, value]) => `${name}: ${value}`).join(" · ")}</p>
    <${Action} label="Remove" verb="remove_fault" fields=${{ fault: fault.fault }} />
  </li>`;
}

/** The names of the actions, from the server's description. */
function useActions() {
  const [names, setNames] = useState([]);
  useEffect(() => {
    const found = (description) => description.paths["/v1/inject"].post.requestBody.content["application/json"].schema.properties.action.enum;
    read("openapi.json").then((description) => setNames(found(description)), () => {});
  }, []);
  return names;
}

function Inject() {
  const actions = useActions();
  const [form, setForm] = useState({ action: "error", op: "", path: "", session: "", error: "CONNECTIONLOSS", delay_ms: 1_000, count: "", skip: "", probability: "", isOptional: false });
  const set = (name) => (event) => setForm({ ...form, [name]: event.target.value });
  const text = (name, label, rest = {}) => html`<label>${label} <input class="mono" value=${form[name]} onInput=${set(name)} ...${rest} /></label>`;
  const fields = { action: form.action };
  for (const name of ["op", "path", "session"]) if (form[name]) fields[name] = form[name];
  for (const name of ["count", "skip", "probability"]) if (form[name] !== "") fields[name] = Number(form[name]);
  if (form.action === "error") fields.error = form.error;
  if (form.action.startsWith("delay")) fields.delay_ms = form.delay_ms;
  if (form.isOptional) fields.optional = true;
  return html`<section><h2>Set a fault</h2>
    <div class="form">
      <label>Action <select value=${form.action} onChange=${set("action")}>${actions.map((name) => html`<option key=${name} value=${name}>${name}</option>`)}</select></label>
      ${form.action === "error" && text("error", "Error")}
      ${form.action.startsWith("delay") && html`<${Duration} label="Delay" value=${form.delay_ms} onChange=${(delay_ms) => setForm({ ...form, delay_ms })} />`}
      ${text("op", "Operations", { placeholder: "create, setData" })}
      ${text("path", "Path", { placeholder: "/locks/**" })}
      ${text("session", "Session", { placeholder: "0x…" })}
      ${text("count", "Times", { type: "number", min: 0, placeholder: "always", class: "short" })}
      ${text("skip", "Skip first", { type: "number", min: 0, placeholder: "0", class: "short" })}
      ${text("probability", "Probability", { type: "number", min: 0, max: 1, step: "any", placeholder: "1", class: "short" })}
      <label><input type="checkbox" checked=${form.isOptional} onChange=${(event) => setForm({ ...form, isOptional: event.target.checked })} />may stay without a hit</label>
    </div>
    ${HELP[form.action] && html`<p class="muted">${form.action}: ${HELP[form.action]}.</p>`}
    <${Action} label="Set" verb="inject" fields=${fields} isPrimary />
  </section>`;
}
