// The tree of znodes, and the znode that is open.

import { html, useEffect, useMemo, useRef, useState } from "./preact.js";
import { access, read } from "./api.js";
import { Command, Notice, useAnswer, useSlow } from "./parts.js";
import { Znode } from "./znode.js";

/** How many children are listed at first, and with each "show more"; the server lists at most 10,000. */
const PAGE = 200;
const LISTED_MAX = 10_000;

/** The number of paths that a search lists. */
const FOUND_MAX = 200;

/** The shortest time between two reads of the listings. Unit: milliseconds. */
const READ_MS = 500;

export function join(parent, name) {
  return parent === "/" ? `/${name}` : `${parent}/${name}`;
}

/** The deepest level that a link opens. */
const DEPTH_MAX = 50;

/** Returns a znode's parents, from the root. */
export function parents(path) {
  const names = path.split("/").slice(1, -1).slice(0, DEPTH_MAX);
  return path === "/" ? [] : ["/", ...names.map((_, at) => `/${names.slice(0, at + 1).join("/")}`)];
}

export function Tree({ path, version, onOpen, hrefOf, hrefOfSession }) {
  const slow = useSlow(version, READ_MS);
  return html`<div class="split">
    <div class="side">
      <${Search} version=${slow} hrefOf=${hrefOf} />
      <${Branches} path=${path} version=${slow} onOpen=${onOpen} />
    </div>
    <${Znode} key=${path} path=${path} version=${slow} onOpen=${onOpen} hrefOf=${hrefOf} hrefOfSession=${hrefOfSession} />
  </div>`;
}

function Search({ version, hrefOf }) {
  const [text, setText] = useState("");
  const [inData, setInData] = useState(false);
  const fields = text ? { containing: text, in_data: inData || undefined, max: FOUND_MAX } : null;
  const [answer, error] = useAnswer("find_znodes", fields, version);
  return html`<search>
    <div class="form tight">
      <input type="search" aria-label="Search paths" placeholder="Search paths" value=${text} onInput=${(event) => setText(event.target.value)} />
      <label><input type="checkbox" checked=${inData} onChange=${(event) => setInData(event.target.checked)} />data too</label>
    </div>
    ${text && html`<div class="found" aria-live="polite">
      <${Command} verb="find_znodes" fields=${fields} />
      ${error && html`<${Notice} error=${error} />`}
      ${answer && html`<p class="muted">${answer.paths.length || "no"}${answer.is_truncated ? " and more" : ""} found</p>
        <ul>${answer.paths.map((path) => html`<li key=${path}><a href=${hrefOf(path)}><code>${path}</code></a></li>`)}</ul>`}
    </div>`}
  </search>`;
}

/** Reads the children of every open znode, again when `version` changes. Returns `{path: {answer, error}}`. */
function useListings(open, sizes, version) {
  const [listings, setListings] = useState({});
  const reading = useRef({ isBusy: false, isStale: false, wanted: null });
  const universe = access.universe;
  reading.current.wanted = { open, sizes };
  useEffect(() => {
    const gone = new AbortController();
    const now = reading.current;
    const load = async () => {
      if (now.isBusy) {
        now.isStale = true;
        return;
      }
      now.isBusy = true;
      const { open: paths, sizes: counts } = now.wanted;
      const found = await Promise.all(paths.map(async (path) => {
        const fields = { path, max: counts[path] ?? PAGE };
        return [path, await read("list_children", fields, gone.signal).then((answer) => ({ answer }), (error) => ({ error }))];
      }));
      now.isBusy = false;
      if (gone.signal.aborted) return;
      setListings(Object.fromEntries(found));
      if (now.isStale) {
        now.isStale = false;
        load();
      }
    };
    load();
    return () => {
      gone.abort();
      now.isBusy = false;
      now.isStale = false;
    };
  }, [open.join("\n"), JSON.stringify(sizes), version, universe]);
  return listings;
}

function Branches({ path, version, onOpen }) {
  const [open, setOpen] = useState(() => [...new Set(["/", ...parents(path)])]);
  const [sizes, setSizes] = useState({});
  const [focused, setFocused] = useState(path);
  const listings = useListings(open, sizes, version);
  const list = useRef(null);
  const typed = useRef({ text: "", at: 0 });
  // A path that a link opens is shown too.
  useEffect(() => {
    setOpen((old) => (parents(path).every((parent) => old.includes(parent)) ? old : [...new Set([...old, ...parents(path)])]));
    setFocused(path);
  }, [path]);

  const rows = useMemo(() => rowsOf(listings, open), [listings, open]);
  const at = Math.max(0, rows.findIndex((row) => row.id === focused));
  const toggle = (row, isOpen) => {
    setOpen((old) => (isOpen ? [...new Set([...old, row.id])] : old.filter((one) => one !== row.id && !one.startsWith(row.id === "/" ? "/" : `${row.id}/`))));
  };
  const more = (row) => setSizes((old) => ({ ...old, [row.parent]: Math.min(LISTED_MAX, (old[row.parent] ?? PAGE) * (old[row.parent] ? 2 : 1) + PAGE) }));
  const choose = (row) => (row.kind === "more" ? more(row) : onOpen(row.id));
  const focus = (index) => {
    const row = rows[Math.max(0, Math.min(rows.length - 1, index))];
    setFocused(row.id);
    list.current.querySelector(`[data-row="${rows.indexOf(row)}"]`)?.focus();
  };
  const press = (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const row = rows[at];
    const keys = {
      ArrowDown: () => focus(at + 1),
      ArrowUp: () => focus(at - 1),
      Home: () => focus(0),
      End: () => focus(rows.length - 1),
      Enter: () => choose(row),
      " ": () => choose(row),
      ArrowRight: () => (row.hasChildren && !row.isOpen ? toggle(row, true) : row.isOpen && focus(at + 1)),
      ArrowLeft: () => {
        if (row.isOpen && row.id !== "/") toggle(row, false);
        else if (row.parent) focus(rows.findIndex((other) => other.id === row.parent));
      },
    };
    if (keys[event.key]) {
      event.preventDefault();
      keys[event.key]();
    } else if (event.key.length === 1) {
      const past = event.timeStamp - typed.current.at < 700 ? typed.current.text : "";
      typed.current = { text: past + event.key, at: event.timeStamp };
      const from = past ? at : at + 1;
      const order = [...rows.keys()].map((index) => (index + from) % rows.length);
      const found = order.find((index) => rows[index].name?.startsWith(typed.current.text));
      if (found !== undefined) focus(found);
    }
  };
  return html`<div class="tree" role="tree" aria-label="Znodes" ref=${list} onKeyDown=${press}>
    ${rows.map((row, index) => html`<${Row} key=${row.id} row=${row} index=${index} isSelected=${row.id === path} isFocused=${index === at}
      onChoose=${() => {
        setFocused(row.id);
        choose(row);
      }} onToggle=${() => toggle(row, !row.isOpen)} />`)}
  </div>`;
}

/** Returns the rows that are visible, parents before their children. */
function rowsOf(listings, open) {
  const rows = [];
  const add = (path, name, level, child, place) => {
    const isOpen = open.includes(path);
    const listing = listings[path];
    rows.push({ kind: "znode", id: path, name, level, child, isOpen, hasChildren: path === "/" || child.num_children > 0, parent: place.parent, place });
    if (!isOpen || !listing) return;
    if (listing.error) {
      rows.push({ kind: "error", id: `${path}\nerror`, level: level + 1, text: listing.error.message, parent: path, place: { at: 1, of: 1 } });
      return;
    }
    const { children, total, is_truncated: isTruncated } = listing.answer;
    children.forEach((one, at) => add(join(path, one.name), one.name, level + 1, one, { at: at + 1, of: total, parent: path }));
    if (isTruncated) {
      const text = children.length < LISTED_MAX ? `show more: ${children.length} of ${total}` : `the first ${children.length} of ${total}; search for the others`;
      rows.push({ kind: "more", id: `${path}\nmore`, level: level + 1, text, parent: path, place: { at: children.length + 1, of: total } });
    }
  };
  add("/", "/", 1, { num_children: 1 }, { at: 1, of: 1 });
  return rows;
}

function Row({ row, index, isSelected, isFocused, onChoose, onToggle }) {
  const { child } = row;
  const click = (event) => {
    if (event.target.closest(".twist")) onToggle();
    else onChoose();
  };
  const about = child?.ephemeral_owner ? "ephemeral" : child?.container ? "container" : child?.ttl_ms ? "ttl" : "";
  return html`<div class=${`row ${row.kind}`} role="treeitem" data-row=${index} tabindex=${isFocused ? 0 : -1} style=${{ "--level": row.level }}
    aria-level=${row.level} aria-setsize=${row.place.of} aria-posinset=${row.place.at} aria-selected=${isSelected ? "true" : "false"}
    aria-expanded=${row.hasChildren ? String(row.isOpen) : undefined} title=${row.kind === "znode" ? row.id : undefined} onClick=${click}>
    <span class="twist" aria-hidden="true">${row.hasChildren ? (row.isOpen ? "▾" : "▸") : ""}</span>
    <span class="name">${row.text ?? row.name}</span>
    ${about && html`<span class="tag">${about}</span>`}
    ${child?.num_children > 0 && row.id !== "/" && html`<span class="count">${child.num_children}</span>`}
  </div>`;
}
