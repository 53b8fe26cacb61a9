// The tree of znodes, and the znode that is open.

import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "./preact.js";
import { access, read } from "./api.js";
import { Command, Notice, useAnswer, useSlow, useWindow } from "./parts.js";
import { Znode } from "./znode.js";

/** How many children are listed at first; the server lists at most 10,000. */
const LISTED_FIRST = 200;
const LISTED_MAX = 10_000;

/** The height of a row in app.css. Unit: pixels. */
const ROW_HEIGHT = 23;

/** How many children whose names contain that of the open znode are looked through for it. */
const NAMESAKES_MAX = 100;

/** The orders of children, by their names in the server. */
const ORDERS = [["name", "by name"], ["newest", "newest first"], ["children", "most children first"]];

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
  const [order, setOrder] = useState("name");
  return html`<div class="split">
    <div class="side">
      <${Search} version=${slow} hrefOf=${hrefOf} />
      <label class="order">Children <select aria-label="Order of children" value=${order} onChange=${(event) => setOrder(event.target.value)}>
        ${ORDERS.map(([name, text]) => html`<option key=${name} value=${name}>${text}</option>`)}</select></label>
      <${Branches} path=${path} order=${order} version=${slow} onOpen=${onOpen} />
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

/** Reads the first children of a znode, and the one on the way to `wanted`, which may not be among them. */
async function readChildren(path, order, max, wanted, signal) {
  const answer = await read("list_children", { path, sort_by: order, max }, signal);
  const prefix = join(path, "");
  const [name] = wanted.startsWith(prefix) ? wanted.slice(prefix.length).split("/") : [""];
  if (!name || !answer.is_truncated || answer.children.some((child) => child.name === name)) return answer;
  const { children } = await read("list_children", { path, containing: name, max: NAMESAKES_MAX }, signal);
  return { ...answer, wanted: children.find((child) => child.name === name) };
}

/** Reads the children of every open znode, again when `version` changes. Returns `{path: {answer, error}}`. */
function useListings({ open, whole, order, wanted }, version) {
  const [listings, setListings] = useState({});
  const reading = useRef({ isBusy: false, isStale: false, wanted: null });
  const universe = access.universe;
  reading.current.wanted = { open, whole, order, wanted };
  useEffect(() => {
    const gone = new AbortController();
    const now = reading.current;
    const load = async () => {
      if (now.isBusy) {
        now.isStale = true;
        return;
      }
      now.isBusy = true;
      const { open: paths, whole: all, order: by, wanted: selected } = now.wanted;
      const found = await Promise.all(paths.map(async (path) => {
        const children = readChildren(path, by, all.includes(path) ? LISTED_MAX : LISTED_FIRST, selected, gone.signal);
        return [path, await children.then((answer) => ({ answer }), (error) => ({ error }))];
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
  }, [open.join("\n"), whole.join("\n"), order, wanted, version, universe]);
  return listings;
}

function Branches({ path, order, version, onOpen }) {
  const [open, setOpen] = useState(() => [...new Set(["/", ...parents(path)])]);
  // Those whose children are all listed.
  const [whole, setWhole] = useState([]);
  const [focused, setFocused] = useState(path);
  const listings = useListings({ open, whole, order, wanted: path }, version);
  const list = useRef(null);
  const typed = useRef({ text: "", at: 0 });
  // The row to scroll to once it is there.
  const wanted = useRef(null);
  // A path that a link opens is shown too.
  useEffect(() => {
    wanted.current = { id: path };
    setOpen((old) => (parents(path).every((parent) => old.includes(parent)) ? old : [...new Set([...old, ...parents(path)])]));
    setFocused(path);
  }, [path]);

  const rows = useMemo(() => rowsOf(listings, open), [listings, open]);
  const at = Math.max(0, rows.findIndex((row) => row.id === focused));
  const toggle = (row, isOpen) => {
    setOpen((old) => (isOpen ? [...new Set([...old, row.id])] : old.filter((one) => one !== row.id && !one.startsWith(row.id === "/" ? "/" : `${row.id}/`))));
  };
  const more = (row) => {
    setWhole((old) => [...new Set([...old, row.parent])]);
    focus(rows.indexOf(row) - 1);
  };
  const choose = (row) => (row.kind === "more" ? more(row) : onOpen(row.id));
  const focus = (index) => {
    const { id } = rows[Math.max(0, Math.min(rows.length - 1, index))];
    wanted.current = { id, isFocused: true };
    setFocused(id);
    reveal();
  };
  const [first, end, measure] = useWindow(list, rows.length, ROW_HEIGHT);
  const reveal = () => {
    const index = wanted.current ? rows.findIndex((row) => row.id === wanted.current.id) : -1;
    const box = list.current;
    const row = box.querySelector(`[data-row="${index}"]`);
    if (index < 0) return;
    const top = index * ROW_HEIGHT;
    if (top < box.scrollTop) box.scrollTop = top;
    else if (top + ROW_HEIGHT > box.scrollTop + box.clientHeight) box.scrollTop = top + ROW_HEIGHT - box.clientHeight;
    // The row may be rendered only after this.
    if (!row) return;
    if (wanted.current.isFocused) row.focus({ preventScroll: true });
    wanted.current = null;
  };
  // A row that has the focus loses it where the list moves its element.
  const hadFocus = list.current?.contains(document.activeElement);
  useLayoutEffect(() => {
    reveal();
    if (hadFocus && !list.current.contains(document.activeElement)) list.current.querySelector('[tabindex="0"]').focus({ preventScroll: true });
  });
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
  const shown = [...rows.keys()].slice(first, end);
  // The Tab key leads to this one, so that it is always there.
  if (at < first) shown.unshift(at);
  if (at >= end) shown.push(at);
  return html`<div class="tree" role="tree" aria-label="Znodes" ref=${list} onKeyDown=${press} onScroll=${measure}>
    <div class="space" role="none" style=${{ height: `${rows.length * ROW_HEIGHT}px` }}>
      ${shown.map((index) => html`<${Row} key=${rows[index].id} row=${rows[index]} index=${index} isSelected=${rows[index].id === path} isFocused=${index === at}
        onChoose=${() => {
          setFocused(rows[index].id);
          choose(rows[index]);
        }} onToggle=${() => toggle(rows[index], !rows[index].isOpen)} />`)}
    </div>
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
    const { children, total, is_truncated: isTruncated, wanted } = listing.answer;
    children.forEach((one, at) => add(join(path, one.name), one.name, level + 1, one, { at: at + 1, of: total, parent: path }));
    if (wanted) add(join(path, wanted.name), wanted.name, level + 1, wanted, { at: children.length + 1, of: total, parent: path });
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
  return html`<div class=${`row ${row.kind}`} role="treeitem" data-row=${index} tabindex=${isFocused ? 0 : -1} style=${{ "--level": row.level, top: `${index * ROW_HEIGHT}px` }}
    aria-level=${row.level} aria-setsize=${row.place.of} aria-posinset=${row.place.at} aria-selected=${isSelected ? "true" : "false"}
    aria-expanded=${row.hasChildren ? String(row.isOpen) : undefined} title=${row.kind === "znode" ? row.id : undefined} onClick=${click}>
    <span class="twist" aria-hidden="true">${row.hasChildren ? (row.isOpen ? "▾" : "▸") : ""}</span>
    <span class="name">${row.text ?? row.name}</span>
    ${about && html`<span class="tag">${about}</span>`}
    ${child?.num_children > 0 && row.id !== "/" && html`<span class="count">${child.num_children}</span>`}
  </div>`;
}
