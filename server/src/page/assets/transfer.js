// Export, import and comparison of subtrees.

import { html, useState } from "./preact.js";
import { access, read } from "./api.js";
import { Action, Command, Notice } from "./parts.js";

/** The longest file that is read. Unit: bytes. */
const FILE_MAX = 16 << 20;

/** The number of differences that are listed. */
const DIFFERENCES_MAX = 500;

export function Transfer({ path, hrefOf }) {
  return html`<details><summary>Export, import, compare</summary>
    <${Export} path=${path} />
    ${!access.readOnly && html`<${Import} path=${path} />`}
    <${Compare} path=${path} hrefOf=${hrefOf} />
  </details>`;
}

function Export({ path }) {
  const [error, setError] = useState(null);
  const save = async (format) => {
    try {
      const { tree } = await read("export_tree", { path, format });
      const text = format === "json" ? `${JSON.stringify(tree, null, 2)}\n` : tree;
      const url = URL.createObjectURL(new Blob([text], { type: "application/octet-stream" }));
      const link = document.createElement("a");
      link.href = url;
      link.download = `${path.split("/").at(-1).replace(/[^\w.-]/g, "_") || "tree"}.${format}`;
      link.click();
      setTimeout(() => URL.revokeObjectURL(url), 10_000);
      setError(null);
    } catch (failure) {
      setError(failure);
    }
  };
  return html`<section><h2>Export</h2>
    <p class="muted">This znode and everything below it, without ephemerals.</p>
    <div class="action"><button type="button" onClick=${() => save("json")}>Save as JSON</button>
      <button type="button" onClick=${() => save("yaml")}>Save as YAML</button>
      <${Command} verb="export_tree" fields=${{ path }} /></div>
    ${error && html`<${Notice} error=${error} />`}
  </section>`;
}

/** A field for a file; `onRead` gets its name and text. */
function File({ label, onRead, accept }) {
  const [error, setError] = useState(null);
  const take = async (event) => {
    const [file] = event.target.files;
    if (!file) return;
    if (file.size > FILE_MAX) {
      setError({ message: `the file has ${file.size} bytes; the limit is ${FILE_MAX}` });
      return;
    }
    try {
      onRead(file.name, await file.text());
      setError(null);
    } catch (failure) {
      setError(failure);
    }
  };
  return html`<label>${label} <input type="file" accept=${accept} onChange=${take} /></label>${error && html`<${Notice} error=${error} />`}`;
}

/** Reads an exported tree. */
function parsed(text) {
  const tree = JSON.parse(text);
  if (tree === null || typeof tree !== "object" || Array.isArray(tree)) throw new Error("the file has no tree: an object with a field for each path");
  return tree;
}

/** Returns what the paths of a tree have in common, as whole names. */
function top(paths) {
  if (!paths.length) return "/";
  const [first, ...others] = paths.map((path) => path.split("/"));
  let length = first.length;
  for (const other of others) {
    let at = 0;
    while (at < length && other[at] === first[at]) at += 1;
    length = at;
  }
  return first.slice(0, length).join("/") || "/";
}

/** Moves a tree: paths below `from` to below `to`. */
function moved(tree, from, to) {
  const strip = (path) => (from === "/" ? path : path.slice(from.length));
  const at = (path) => `${to === "/" ? "" : to}${strip(path) === "/" ? "" : strip(path)}` || "/";
  return Object.fromEntries(Object.entries(tree).map(([path, znode]) => [at(path), znode]));
}

function Import({ path }) {
  const [file, setFile] = useState(null);
  const [isHere, setHere] = useState(true);
  const [done, setDone] = useState(null);
  const taken = (name, text) => {
    setDone(null);
    if (/\.ya?ml$/.test(name)) setFile({ name, yaml: text });
    else setFile({ name, tree: parsed(text) });
  };
  let fields = null;
  if (file?.yaml !== undefined) fields = { yaml: file.yaml };
  else if (file) fields = { tree: isHere ? moved(file.tree, top(Object.keys(file.tree)), path) : file.tree };
  const isMoved = file?.tree && isHere && top(Object.keys(file.tree)) !== path;
  return html`<section><h2>Import</h2>
    <p class="muted">Creates the znodes of a file that are missing and sets those that differ. Others stay.</p>
    <div class="form"><${File} label="File with a tree" accept=".json,.yaml,.yml" onRead=${taken} />
      ${file?.tree && html`<label><input type="checkbox" checked=${isHere} onChange=${(event) => setHere(event.target.checked)} />in place of this znode, not of <code>${top(Object.keys(file.tree))}</code></label>`}</div>
    ${fields && html`<${Action} label="Import" verb="seed" fields=${{ ...fields, file: undefined }} shownFields=${{ file: isMoved ? "MOVED.json" : file.name }} onDone=${setDone} />`}
    ${done && html`<p class="notice ok" role="status">${done.created} created, ${done.changed} changed</p>`}
  </section>`;
}

function Compare({ path, hrefOf }) {
  const [other, setOther] = useState("");
  const [result, setResult] = useState(null);
  const [error, setError] = useState(null);
  const compare = async (theirs, name) => {
    try {
      const { tree } = await read("export_tree", { path });
      const found = await theirs();
      const from = found.top ?? top(Object.keys(found.tree));
      setResult({ name, differences: differences(moved(found.tree, from, "/"), moved(tree, path, "/")) });
      setError(null);
    } catch (failure) {
      setResult(null);
      setError(failure);
    }
  };
  const withPath = () => compare(async () => ({ tree: (await read("export_tree", { path: other })).tree, top: other }), other);
  return html`<section><h2>Compare</h2>
    <div class="form">
      <label>With another znode <input class="mono" placeholder="/path" value=${other} onInput=${(event) => setOther(event.target.value)} /></label>
      <button type="button" disabled=${!other.startsWith("/")} onClick=${withPath}>Compare</button>
      <${File} label="With an exported file" accept=".json" onRead=${(name, text) => {
        const tree = parsed(text);
        return compare(async () => ({ tree }), name);
      }} />
    </div>
    ${other.startsWith("/") && html`<${Command} verb="export_tree" fields=${{ path: other }} />`}
    ${error && html`<${Notice} error=${error} />`}
    ${result && html`<${Differences} differences=${result.differences} before=${result.name} after=${path} hrefOf=${(below) => hrefOf(below === "/" ? path : `${path === "/" ? "" : path}${below}`)} />`}
  </section>`;
}

/** Compares two trees. */
function differences(one, two) {
  const paths = [...new Set([...Object.keys(one), ...Object.keys(two)])].sort();
  return paths.flatMap((path) => {
    const [before, after] = [one, two].map((tree) => (path in tree ? JSON.stringify(tree[path]) : undefined));
    if (before === after) return [];
    const change = before === undefined ? "created" : after === undefined ? "deleted" : "changed";
    return [{ path, change, before: one[path], after: two[path] }];
  });
}

const LONG = 400;

function text(znode) {
  const found = typeof znode === "string" ? znode : JSON.stringify(znode);
  return found.length > LONG ? `${found.slice(0, LONG)}…` : found;
}

/** Lists differences, with the value before and after. */
export function Differences({ differences: all, before, after, hrefOf }) {
  if (!all.length) return html`<p class="notice ok" role="status">No differences.</p>`;
  return html`<div class="diff" role="status"><p class="muted"><span class="bad">−</span> <code>${before}</code> <span class="ok">+</span> <code>${after}</code>: ${all.length} ${all.length === 1 ? "difference" : "differences"}</p>
    <ul>${all.slice(0, DIFFERENCES_MAX).map((one) => html`<li key=${one.path}>
      <a href=${hrefOf(one.path)}><code>${one.path}</code></a> <span class="tag">${one.change}</span>
      ${one.change !== "created" && html`<pre class="minus">${text(one.before ?? null)}</pre>`}
      ${one.change !== "deleted" && html`<pre class="plus">${text(one.after ?? null)}</pre>`}
    </li>`)}</ul>
    ${all.length > DIFFERENCES_MAX && html`<p class="muted">The first ${DIFFERENCES_MAX} are listed.</p>`}
  </div>`;
}
