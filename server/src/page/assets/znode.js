// One znode: its value, stat, access list, and what can be done with it.

import { html, useEffect, useState } from "./preact.js";
import { access, stored } from "./api.js";
import { Action, Command, Copy, Notice, ago, bytes as size, cleared, page, useAnswer } from "./parts.js";
import { CODINGS, FORMATS, bytesOf, decoded, digits, fieldsOf, fromDigits, shown, utf8 } from "./values.js";
import { Duration, when } from "./clock.js";
import { Transfer } from "./transfer.js";

const LABELS = { auto: "Auto", text: "Text", json: "JSON", xml: "XML", hex: "Hex", stored: "As stored", gzip: "gzip", snappy: "Snappy" };

/** A choice that the browser remembers. */
function useRemembered(name, choices) {
  const key = `minikeeper.${name}`;
  const [value, setValue] = useState(() => stored(() => localStorage.getItem(key)));
  const set = (next) => {
    setValue(next);
    stored(() => localStorage.setItem(key, next));
  };
  return [choices.includes(value) ? value : choices[0], set];
}

export function Znode({ path, version, onOpen, hrefOf, hrefOfSession }) {
  const [answer, error] = useAnswer("get", { path }, version);
  const [list] = useAnswer("acl", answer ? { path } : null, version);
  const [edited, setEdited] = useState(null);
  const names = path.split("/").slice(1);
  const crumbs = path === "/" ? [] : names.map((name, at) => [name, `/${names.slice(0, at + 1).join("/")}`]);
  return html`<article aria-label=${`Znode ${path}`} class="znode">
    <div class="title">
      <h1 class="crumbs"><code><a href=${hrefOf("/")} aria-label="Root">/</a>${crumbs.map(([name, to], at) => html`<span key=${to}>${at > 0 && html`<i>/</i>`}<a href=${hrefOf(to)} aria-current=${at === crumbs.length - 1 ? "page" : undefined}>${name}</a></span>`)}</code></h1>
      <${Copy} text=${path} label="Copy path" />
      <${Command} verb="get" fields=${{ path }} />
    </div>
    ${error && html`<${Notice} error=${error} />`}
    ${error?.status === 404 && edited && html`<${Edit} path=${path} edited=${edited} onEnd=${() => setEdited(null)} onChange=${setEdited} />`}
    ${answer && html`
      <${Value} path=${path} answer=${answer} edited=${edited} setEdited=${setEdited} />
      <div class="columns">
        <section><h2>Stat</h2><${Stat} stat=${answer.stat} hrefOfSession=${hrefOfSession} /></section>
        <section><h2>Access list</h2>
          ${list && html`<ul class="acl">${list.acl.map((entry, at) => html`<li key=${at}><code>${entry}</code></li>`)}</ul>`}
          <${Command} verb="acl" fields=${{ path }} /></section>
      </div>
      ${!access.readOnly && html`<${Create} path=${path} onOpen=${onOpen} /><${Delete} path=${path} stat=${answer.stat} onOpen=${onOpen} />`}
      <${Transfer} path=${path} hrefOf=${hrefOf} />`}
  </article>`;
}

function Value({ path, answer, edited, setEdited }) {
  const [format, setFormat] = useRemembered("format", FORMATS);
  const [coding, setCoding] = useRemembered("coding", CODINGS);
  const [plain, setPlain] = useState(null);
  const data = bytesOf(answer);
  const key = `${coding} ${answer.stat.mzxid} ${answer.stat.version}`;
  useEffect(() => {
    let isGone = false;
    if (data !== null) decoded(data, coding).then((found) => isGone || setPlain({ key, ...found }));
    return () => (isGone = true);
  }, [key, data === null]);
  const value = data !== null && plain && (plain.key === key ? shown(plain.bytes, format) : null);
  const choice = (label, choices, chosen, set) => html`<span class="choices" role="group" aria-label=${label}>
    ${choices.map((one) => html`<button key=${one} type="button" aria-pressed=${chosen === one} onClick=${() => set(one)}>${LABELS[one]}</button>`)}</span>`;
  return html`<section class="value"><div class="bar"><h2>Value</h2>
      <span class="muted">${data === null ? "null" : `${size(data.length)}, version ${answer.stat.version}`}${plain?.note && data !== null ? `; ${plain.note}` : ""}</span>
      <span class="fill"></span>
      ${choice("Format", FORMATS, format, setFormat)}
      <label class="coding">Decode <select value=${coding} onChange=${(event) => setCoding(event.target.value)}>
        ${CODINGS.map((one) => html`<option key=${one} value=${one}>${LABELS[one]}</option>`)}</select></label>
    </div>
    ${edited
      ? html`<${Edit} path=${path} edited=${edited} now=${answer} onEnd=${() => setEdited(null)} onChange=${setEdited} />`
      : html`
        ${value ? html`<pre class="data" tabindex="0" aria-label="Value" data-format=${value.format}>${value.text}</pre>` : data === null && html`<p class="notice">The znode has null data.</p>`}
        ${value?.isCut && html`<p class="notice">Only its beginning is shown.</p>`}
        ${!access.readOnly && html`<button type="button" onClick=${() => setEdited(editing(data ?? new Uint8Array(), answer.stat.version, format))}>Edit</button>`}`}
  </section>`;
}

/** What an edit begins with: text if the stored bytes are, else hexadecimal digits. */
function editing(data, version, format) {
  const text = format === "hex" ? null : utf8(data);
  return { isHex: text === null, text: text ?? digits(data), version };
}

/** The edit of a value; without `now` the znode is gone. */
function Edit({ path, edited, now, onEnd, onChange }) {
  const bytes = edited.isHex ? fromDigits(edited.text) : new TextEncoder().encode(edited.text);
  const data = bytes && { path, ...fieldsOf(bytes) };
  const isStale = now && now.stat.version !== edited.version;
  const done = () => onChange(cleared(edited, null));
  return html`<div class="stack">
    <label class="wide">${edited.isHex ? "Data as hexadecimal digits" : "Data as text"}
      <textarea rows="10" spellcheck="false" autofocus value=${edited.text} onInput=${(event) => onChange({ ...edited, text: event.target.value })}></textarea></label>
    ${isStale && html`<p class="notice warn" role="status">The znode has changed meanwhile: version ${now.stat.version} instead of ${edited.version}.
      <button type="button" onClick=${() => onChange(editing(bytesOf(now) ?? new Uint8Array(), now.stat.version, edited.isHex ? "hex" : "text"))}>Take its value</button>
      <button type="button" onClick=${() => onChange({ ...edited, version: now.stat.version })}>Keep mine for version ${now.stat.version}</button></p>`}
    ${data
      ? !now
        ? html`<${Action} label="Create it again" verb="create" fields=${data} isPrimary onDone=${done} />`
        : !isStale && html`<${Action} label=${`Save over version ${edited.version}`} verb="set" fields=${{ ...data, version: edited.version }} isPrimary onDone=${done} />`
      : html`<p class="notice bad">Not hexadecimal: pairs of digits 0-9 and a-f.</p>`}
    <button type="button" onClick=${onEnd}>Cancel</button>
  </div>`;
}

function Stat({ stat, hrefOfSession }) {
  // The first znodes have no time.
  const time = (ms) => ms === 0 ? "with the server" : html`${when(ms)} <span class="muted">${Date.now() - ms < 1_000 ? "now" : `${ago(Date.now() - ms)} ago`}</span>`;
  return html`<dl class="facts">
    <dt>Created</dt><dd>${time(stat.ctime_ms)}</dd>
    <dt>Modified</dt><dd>${time(stat.mtime_ms)}</dd>
    <dt>czxid</dt><dd><code>${stat.czxid}</code></dd>
    <dt>mzxid</dt><dd><code>${stat.mzxid}</code></dd>
    <dt>pzxid</dt><dd><code>${stat.pzxid}</code></dd>
    <dt>Versions</dt><dd>data ${stat.version}, children ${stat.cversion}, access list ${stat.aversion}</dd>
    <dt>Data</dt><dd>${stat.data_length} bytes</dd>
    <dt>Children</dt><dd>${stat.num_children}</dd>
    <dt>Owner</dt><dd>${stat.ephemeral_owner === "0x0" ? "none" : html`<a href=${hrefOfSession(stat.ephemeral_owner)}><code>${stat.ephemeral_owner}</code></a>`}</dd>
  </dl>`;
}

const KINDS = ["persistent", "container", "ttl"];

function Create({ path, onOpen }) {
  const [name, setName] = useState("");
  const [data, setData] = useState("");
  const [kind, setKind] = useState(KINDS[0]);
  const [ttl, setTtl] = useState(60_000);
  const [isSequential, setSequential] = useState(false);
  const fields = { path: `${path === "/" ? "" : path}/${name || "NAME"}`, data };
  if (isSequential) fields.sequential = true;
  if (kind === "container") fields.container = true;
  if (kind === "ttl") fields.ttl_ms = ttl;
  const done = (answer) => {
    setName(cleared(name));
    setData(cleared(data));
    onOpen(answer.path);
  };
  return html`<details><summary>Create a child</summary>
    <div class="form">
      <label>Name <input class="mono" value=${name} onInput=${(event) => setName(event.target.value)} /></label>
      <label>Kind <select value=${kind} onChange=${(event) => setKind(event.target.value)}>${KINDS.map((one) => html`<option key=${one} value=${one}>${one}</option>`)}</select></label>
      ${kind === "ttl" && html`<${Duration} label="Time to live" value=${ttl} onChange=${setTtl} />`}
      <label><input type="checkbox" checked=${isSequential} onChange=${(event) => setSequential(event.target.checked)} />append a number</label>
    </div>
    <label class="wide">Data <textarea rows="3" spellcheck="false" value=${data} onInput=${(event) => setData(event.target.value)}></textarea></label>
    <${Action} label="Create" verb="create" fields=${fields} isDisabled=${!name && !isSequential} onDone=${done} />
  </details>`;
}

function Delete({ path, stat, onOpen }) {
  const [isRecursive, setRecursive] = useState(false);
  if (path === "/") return null;
  const fields = { path, version: stat.version };
  if (isRecursive) fields.recursive = true;
  const parent = path.slice(0, path.lastIndexOf("/")) || "/";
  const done = ({ deleted }) => {
    page.report(null);
    if (deleted) onOpen(parent);
  };
  return html`<details><summary>Delete</summary>
    <p class="muted">Deletes version ${stat.version}. Watches fire as after a client's delete.</p>
    ${stat.num_children > 0 && html`<label><input type="checkbox" checked=${isRecursive} onChange=${(event) => setRecursive(event.target.checked)} />and everything below it</label>`}
    <${Action} label="Delete" verb="delete" fields=${fields} isDanger onDone=${done} />
  </details>`;
}
