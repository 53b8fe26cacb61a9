// The journal as a timeline: time runs down, one lane a session.

import { html, useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "./preact.js";
import { argumentsOf, commandOf, duration, fitted, hue, isError, jump, link, micros, nameSessions, parseFilter, pathsOf, related, sessionOf, shortSession } from "./journal.js";

/** Times without entries that are shown as a gap. Unit: milliseconds. */
const GAP_MS = 100;

/** The most lanes that are drawn; further sessions share the last one. */
const LANES_MAX = 24;

/** More sessions than this use the lanes of sessions that have ended. */
const LANES_OF_THEIR_OWN = 12;

/** Rows that are rendered above and below what is visible. */
const ROWS_BEYOND = 12;

/** The most arrows that one request gets. */
const ARROWS_MAX = 200;

/** The widths of a character of the heads and of a session's name, and the most characters of such a name. */
const HEAD_CHAR = 6.4;
const NAME_CHARS = 24;
const NAME_CHARS_COMPACT = 9;

const SERVER = "server";
const NONE = "none";
const MORE = "more";

/** Whether a request failed. `exists` asks whether there is a znode: NONODE is its answer. */
const isRefused = (entry) => isError(entry) && !(entry.op === "exists" && entry.result === "NONODE");

const isRead = (op) => /^(get|exists|ping|sync|check|multiRead|whoAmI)/.test(op);

/** The rows of the entries: each entry that is to be shown, and what lies between them. */
function rowsOf(entries, isShown, now_ms, end) {
  const rows = [];
  const first = entries[0];
  if (first && first.number > 1) rows.push({ key: "earlier", note: `${first.number - 1} earlier ${first.number > 2 ? "entries are" : "entry is"} not here` });
  let last;
  let jumped = 0;
  for (const entry of entries) {
    const moved = jump(entry);
    jumped += moved;
    if (!isShown(entry) && !(moved && last)) continue;
    const gap = last === undefined ? 0 : entry.at_ms - last - jumped;
    if (gap >= GAP_MS) rows.push({ key: `gap${entry.number}`, gap });
    last = entry.at_ms;
    jumped = 0;
    if (entry.kind === "omitted") rows.push({ key: entry.number, entry, note: `${entry.count} entries were left out` });
    else rows.push({ key: entry.number, entry, jump: moved });
  }
  if (last !== undefined && now_ms - last >= GAP_MS) rows.push({ key: "now", gap: now_ms - last, isEnd: true });
  if (end) rows.push({ key: "end", note: end, isFailure: true });
  return rows;
}

/** The lane of an entry, as a key. */
function laneOf(entry, links) {
  if (entry.kind === "clock" || entry.kind === "verb") return SERVER;
  return sessionOf(entry, links) ?? (entry.connection ? NONE : SERVER);
}

/**
 * Gives each session a lane and its line: `lanes` has, for each key, its column and its parts `{from, to, isCut}` in rows.
 * A dashed part has no connection.
 */
function lanesOf(rows, entries, links, sessions) {
  const lanes = new Map();
  const rowAt = new Map();
  rows.forEach((row, index) => {
    if (row.entry) rowAt.set(row.entry.number, index);
  });
  const isShown = new Set();
  for (const { entry } of rows) {
    if (!entry) continue;
    isShown.add(laneOf(entry, links));
    if (entry.kind === "fault") isShown.add(SERVER);
  }
  const bottom = rows.length - 1;
  const add = (key, from) => {
    const lane = { key, from, to: bottom, parts: [], isCut: false, began: null, ended: null };
    lanes.set(key, lane);
    return lane;
  };
  const part = (lane, row) => {
    lane.parts.push({ from: lane.from, to: row, isCut: lane.isCut });
    lane.from = row;
  };
  if (isShown.has(SERVER)) add(SERVER, 0);
  if (isShown.has(NONE)) add(NONE, 0);
  // An entry that is not shown is at the next one that is.
  const places = [];
  let next = bottom;
  for (let index = entries.length - 1; index >= 0; index -= 1) {
    next = rowAt.get(entries[index].number) ?? next;
    places[index] = next;
  }
  for (const [index, entry] of entries.entries()) {
    const at = rowAt.get(entry.number);
    const here = places[index];
    const key = laneOf(entry, links);
    if (key === SERVER || key === NONE || !isShown.has(key)) continue;
    const isNew = entry.kind === "session_opened" || (entry.op === "createSession" && !lanes.has(key)) || entry.kind === "connection_opened";
    const lane = lanes.get(key) ?? add(key, isNew ? here : 0);
    lane.first ??= lane.from;
    if (entry.kind === "session_opened") lane.began = at ?? null;
    if (entry.kind === "connection_closed" && !lane.ended) {
      part(lane, here);
      lane.isCut = true;
    } else if (lane.isCut && entry.kind !== "event" && !lane.ended && entry.connection) {
      part(lane, here);
      lane.isCut = false;
    }
    if (entry.kind === "session_expired" || entry.kind === "session_closed") {
      part(lane, here);
      lane.ended = entry.kind;
      lane.to = here;
    } else if (lane.ended) {
      lane.to = Math.max(lane.to, here);
    }
  }
  for (const lane of lanes.values()) {
    lane.first ??= lane.from;
    if (!lane.ended && lane.from < bottom) part(lane, bottom);
  }
  // Sessions that have no entry but exist keep no lane: their line would say nothing.
  let columns = 0;
  let crowd = 0;
  const busyTo = [];
  const doShare = lanes.size > LANES_OF_THEIR_OWN;
  for (const lane of lanes.values()) {
    const free = doShare && lane.key !== SERVER && lane.key !== NONE ? busyTo.findIndex((to) => to < lane.first - 1) : -1;
    lane.column = free >= 0 ? free : Math.min(columns, LANES_MAX - 1);
    if (free < 0) columns += 1;
    if (free < 0 && columns > LANES_MAX) crowd += 1;
    lane.isCrowded = columns > LANES_MAX && lane.column === LANES_MAX - 1;
    busyTo[lane.column] = lane.key === SERVER || lane.key === NONE ? Infinity : Math.max(lane.to, busyTo[lane.column] ?? 0);
    lane.address = sessions.find((session) => session.id === lane.key)?.address;
  }
  return { lanes, columns: Math.min(columns, LANES_MAX), rowAt, crowd };
}

const laneClass = (key) => ([SERVER, NONE, MORE].includes(key) ? "hue-none" : hue(key));

/** The head, the lines, arrows and marks of the rows from `first` to `end`. */
function Lanes({ rows, first, end, height, step, model, links, lit, active }) {
  const { lanes, columns, rowAt } = model;
  const x = (key) => (Math.min(lanes.get(key)?.column ?? 0, columns - 1) + 0.5) * step;
  const y = (row) => (row - first + 0.5) * height;
  const clip = (row) => Math.max(first - 2, Math.min(end + 1, row));
  const lines = [];
  const activeKey = active && laneOf(active, links);
  for (const lane of lanes.values()) {
    for (const { from, to, isCut } of lane.parts) {
      if (to < first - 1 || from > end) continue;
      const name = `line ${lane.isCrowded ? "hue-none" : laneClass(lane.key)}${isCut ? " cut" : ""}${lane.key === activeKey ? " lit" : ""}`;
      lines.push(html`<line class=${name} x1=${x(lane.key)} x2=${x(lane.key)} y1=${y(clip(from))} y2=${y(clip(to))} />`);
    }
  }
  const arrows = [];
  const arrow = (from, to, fromKey, toKey, kind, isLit) => {
    const [x1, x2, y1, y2] = [x(fromKey), x(toKey), y(clip(from)), y(clip(to))];
    const side = Math.sign(x2 - x1);
    const turn = Math.min(6, height / 2, Math.abs(x2 - x1));
    const down = y2 > y1 ? 1 : -1;
    const tip = y2 - down * 5;
    let path = `M${x1} ${y1}H${x2 - side * turn}Q${x2} ${y1} ${x2} ${y1 + down * turn}V${tip}`;
    let head = `M${x2 - 3.5} ${tip - down * 5}L${x2} ${tip}L${x2 + 3.5} ${tip - down * 5}`;
    if (side === 0) {
      const bend = Math.min(step * 0.45, 9);
      path = `M${x1 + 4} ${y1}Q${x1 + bend + 3} ${(y1 + y2) / 2} ${x2 + 5} ${y2 - down}`;
      head = `M${x2 + 9} ${y2 - down * 5}L${x2 + 5} ${y2 - down}L${x2 + 10.5} ${y2}`;
    } else if (from === to) {
      path = `M${x1} ${y1}H${x2 - side * 6}`;
      head = `M${x2 - side * 10} ${y2 - 3.5}L${x2 - side * 6} ${y2}L${x2 - side * 10} ${y2 + 3.5}`;
    }
    arrows.push(html`<g class="arrow ${kind}${isLit ? " lit" : ""}"><path d=${path} /><path d=${head} /></g>`);
  };
  const drawn = new Set();
  const effects = (number) => {
    const from = rowAt.get(number);
    if (from === undefined || drawn.has(number)) return;
    drawn.add(number);
    let count = 0;
    for (const effect of links.effects.get(number) || []) {
      const to = rowAt.get(effect);
      if (to === undefined || (from < first && to < first) || (from > end && to > end) || (count += 1) > ARROWS_MAX) continue;
      const [cause, got] = [rows[from].entry, rows[to].entry];
      if (cause.kind === "fault") continue;
      arrow(from, to, laneOf(cause, links), laneOf(got, links), "event", lit.has(number) && lit.has(effect));
    }
  };
  const marks = [];
  const size = height > 24 ? 4 : 4.5;
  for (let index = first; index < end; index += 1) {
    const row = rows[index];
    const { entry } = row;
    if (row.gap || row.jump || row.note) {
      for (const lane of lanes.values()) {
        const isThere = lane.parts.some((part) => part.from < index && part.to > index) || (lane.parts.some((part) => part.from <= index && part.to >= index) && row.isEnd);
        if (isThere) marks.push(html`<${Break} x=${x(lane.key)} y=${y(index)} isJump=${Boolean(row.jump)} lane=${laneClass(lane.key)} />`);
      }
      if (row.note || row.gap) continue;
    }
    if (!entry) continue;
    const key = laneOf(entry, links);
    const [cx, cy] = [x(key), y(index)];
    const name = `mark ${laneClass(key)}${lit.has(entry.number) ? " lit" : ""}`;
    effects(entry.number);
    if (links.cause.has(entry.number)) effects(links.cause.get(entry.number));
    switch (entry.kind) {
      case "request":
        marks.push(isRefused(entry) || entry.result === "NONE"
          ? html`<path class="${name} bad" d="M${cx - 4} ${cy - 4}l8 8m0 -8l-8 8" />`
          : html`<circle class="${name} ${isRead(entry.op) ? "read" : "write"}" cx=${cx} cy=${cy} r=${isRead(entry.op) ? size - 1.5 : size} />`);
        break;
      case "event":
        marks.push(html`<circle class="${name} got" cx=${cx} cy=${cy} r=${size - 0.5} />`);
        break;
      case "fault":
        if (key !== SERVER) arrow(index, index, SERVER, key, "fault", lit.has(entry.number));
        marks.push(html`<path class="${name} fault" d="M${x(SERVER)} ${cy - 6}l6 6l-6 6l-6 -6z" />`);
        break;
      case "session_expired":
        marks.push(html`<path class="${name} ends bad" d="M${cx - 5} ${cy - 5}l10 10m0 -10l-10 10" />`);
        break;
      case "session_opened":
      case "session_closed":
        marks.push(html`<path class="${name} ends" d="M${cx - 6} ${cy}h12" />`);
        break;
      case "clock":
        if (!row.jump) marks.push(html`<path class="${name} verb" d="M${cx - 4} ${cy}h8" />`);
        break;
      case "verb":
        marks.push(html`<rect class="${name} verb" x=${cx - 3.5} y=${cy - 3.5} width="7" height="7" />`);
        break;
      default:
        marks.push(html`<circle class="${name} link" cx=${cx} cy=${cy} r="2.5" />`);
    }
  }
  return html`<svg class="lanes" width=${columns * step} height=${(end - first) * height} aria-hidden="true">${lines}${arrows}${marks}</svg>`;
}

/** A line is interrupted: time passed without entries, or the clock was moved. */
function Break({ x, y, isJump, lane }) {
  if (!isJump) return html`<path class="gap" d="M${x} ${y - 7}v14" />`;
  return html`<g class="jump ${lane}"><path class="blank" d="M${x} ${y - 5}v10" /><path d="M${x - 5} ${y - 1}l10 -5m-10 12l10 -5" /></g>`;
}

/** A path whose end stays visible when there is no room for all of it. */
function Path({ path, isSame }) {
  const cut = path.length - (/\d{10}$/.test(path) ? 10 : Math.min(12, path.length - 1 - path.lastIndexOf("/")));
  return html`<span class="path${isSame ? " same" : ""}" title=${path}><span class="head">${path.slice(0, cut)}</span><span class="tail">${path.slice(cut)}</span></span>`;
}

const Session = ({ id, names, chars }) => (id ? html`<span class="who ${hue(id)}" title="session ${id}">${names.has(id) ? fitted(names.get(id), chars) : shortSession(id)}</span>` : null);

/** What happened, in words. */
function What({ entry, path }) {
  const shown = entry.created ?? entry.path;
  const isSame = path !== undefined && pathsOf(entry).includes(path);
  const at = shown === undefined ? null : html`<${Path} path=${shown} isSame=${isSame} />`;
  switch (entry.kind) {
    case "request":
      return html`<b>${entry.op}</b>${at}${entry.operations && html`<span class="path"><span class="head">${entry.operations.map((it) => `${it.op} ${it.path}`).join(", ")}</span></span>`}<i>${argumentsOf(entry)}</i>`;
    case "event":
      return html`<b class="event">← ${entry.event}</b>${at}${entry.is_held && html`<em class="warn">held</em>`}`;
    case "deleted":
      return html`<b class="event">deleted</b>${at}<i>${entry.why.replaceAll("_", " ")}</i>`;
    case "fault":
      return html`<b class="warn">fault ${entry.fault}</b><span class="warn">${entry.action}</span><span class="of">${entry.op}</span>${at}`;
    case "session_opened":
    case "session_resumed":
      return html`<b>session ${entry.kind === "session_opened" ? "opened" : "resumed"}</b><i>timeout ${duration(entry.timeout_ms)}</i>`;
    case "session_expired":
      return html`<b class="bad">session expired</b>`;
    case "session_closed":
      return html`<b>session closed</b>`;
    case "connection_opened":
      return html`<b>connected</b><i>${entry.address}</i>`;
    case "connection_closed":
      return html`<b>disconnected</b><i>${entry.reason}</i>`;
    case "clock":
      return html`<b class="clock">clock ${entry.what}</b>`;
    case "verb":
      return html`<b>${String(entry.what).split(" ")[0]}</b><i class="rest">${String(entry.what).split(" ").slice(1).join(" ")}</i>`;
    default:
      return html`<b>${entry.text}</b>`;
  }
}

function Result({ entry }) {
  if (entry.result === undefined) return null;
  if (entry.result === "OK") return html`<span class="ok">OK</span>`;
  return html`<span class=${entry.result === "NONE" || !isRefused(entry) ? "warn" : "bad"}>${entry.result === "NONE" ? "no reply" : entry.result}</span>`;
}

const exact = (ms) => (ms < 60_000 ? `${ms / 1000} s` : `${duration(ms)} (${ms} ms)`);
const seconds = (ms) => `${Math.floor(ms / 1000)}.${String(ms % 1000).padStart(3, "0")}`;

function Row({ row, index, top, height, before, links, names, chars, isActive, isOpen, isLit, path, id, on }) {
  const { entry } = row;
  const place = { top: `${top}px`, height: `${height}px` };
  if (!entry || row.note || row.jump) {
    const text = row.note ?? (row.jump ? `clock moved ahead by ${exact(row.jump)}` : `${duration(row.gap)}${row.isEnd ? " without entries until now" : ""}`);
    const name = row.jump ? "jump" : row.isFailure ? "failed" : row.note ? "missed" : "gap";
    return html`<div role="row" aria-rowindex=${index + 1} id=${id} class="entry between ${name}${isActive ? " active" : ""}" style=${place} onClick=${entry && !row.note && on.click}
      onMouseEnter=${entry && on.enter} aria-selected=${isActive}><span role="gridcell" class="time">${row.jump ? seconds(entry.at_ms) : ""}</span><span role="gridcell" class="what" title=${row.note}>${text}</span></div>`;
  }
  const session = sessionOf(entry, links);
  const isBad = isRefused(entry) || entry.kind === "session_expired";
  const name = `entry${isActive ? " active" : ""}${isOpen ? " open" : ""}${isLit ? " lit" : ""}${isBad ? " is-bad" : ""}`;
  return html`<div role="row" aria-rowindex=${index + 1} id=${id} class=${name} style=${place} onClick=${on.click} onMouseEnter=${on.enter} aria-selected=${isActive}>
    <span role="gridcell" class="time${before === entry.at_ms ? " same" : ""}">${seconds(entry.at_ms)}</span>
    <span role="gridcell" class="what"><${Session} id=${session} names=${names} chars=${chars} /><${What} entry=${entry} path=${path} /></span>
    <span role="gridcell" class="result"><${Result} entry=${entry} />${entry.duration_us !== undefined && html`<span class="took${entry.duration_us > 10_000 ? " warn" : ""}">${micros(entry.duration_us)}</span>`}</span>
  </div>`;
}

/** All fields of an entry, what belongs to it, and the command that shows the same. */
function Details({ entry, entries, links, ctl, onSelect, onClose }) {
  const jumpTo = (number) => {
    const other = entries[links.at.get(number)];
    return other && html`<li><button type="button" onClick=${() => onSelect(number)}>${other.text.trim()}</button></li>`;
  };
  const cause = links.cause.get(entry.number);
  const effects = links.effects.get(entry.number) || [];
  const shown = Object.entries(entry).filter(([name]) => name !== "text" && name !== "operations");
  const value = (name, it) => (name === "wall_ms" && Number.isFinite(it) ? `${new Date(it).toISOString()} (${it})` : typeof it === "object" ? JSON.stringify(it) : String(it));
  const command = ctl && commandOf(entry, ctl);
  return html`<aside class="details" aria-label="Entry ${entry.number}">
    <div class="top"><h3>Entry ${entry.number}</h3><button type="button" class="close" aria-label="Close" onClick=${onClose}>×</button></div>
    <p class="line"><code>${entry.text.trim()}</code></p>
    ${cause !== undefined && html`<h4>Caused by</h4><ul>${jumpTo(cause) ?? html`<li>entry ${cause}, which is not here</li>`}</ul>`}
    ${effects.length > 0 && html`<h4>Causes</h4><ul>${effects.slice(0, 20).map(jumpTo)}${effects.length > 20 && html`<li>${effects.length - 20} more</li>`}</ul>`}
    <dl>${shown.map(([name, it]) => html`<div key=${name}><dt>${name}</dt><dd>${value(name, it)}</dd></div>`)}</dl>
    ${entry.operations && html`<h4>Operations</h4><ol>${entry.operations.map((it) => html`<li><code>${it.op} ${it.path} ${argumentsOf(it)}</code></li>`)}</ol>`}
    ${command && html`<h4>On the command line</h4><p class="command"><code>${command}</code></p>`}
  </aside>`;
}

/** The width of an element, and whether it has changed. */
function useWidth(ref) {
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const observer = new ResizeObserver(([entry]) => setWidth(entry.contentRect.width));
    observer.observe(ref.current);
    setWidth(ref.current.clientWidth);
    return () => observer.disconnect();
  }, []);
  return width;
}

/**
 * The timeline of the entries of `journal`, oldest first. `sessions` are those of the verb `sessions`, `names` the names of
 * some sessions, `now_ms` is the server's time now, `ctl` the start of a command line, or null. It begins at the entry
 * `start` if that is given, and says `end` behind the last. New entries may be appended and old ones dropped: the view stays
 * at what it shows, or at the end if it is there.
 */
export function Timeline({ entries, sessions = [], names: given, now_ms, start = null, end: outcome, ctl = "minikeeper ctl" }) {
  const [text, setText] = useState("");
  const [doShowNoise, setShowNoise] = useState(false);
  const [active, setActive] = useState(start);
  const [hover, setHover] = useState(null);
  const [open, setOpen] = useState(null);
  const [scroll, setScroll] = useState({ top: 0, height: 600 });
  const outer = useRef(null);
  const box = useRef(null);
  const anchor = useRef({ key: start, offset: -3 * 24, isAtEnd: start === null });
  const width = useWidth(outer);

  const links = useMemo(() => link(entries), [entries]);
  const filter = useMemo(() => parseFilter(text, entries), [text, entries]);
  const rows = useMemo(() => rowsOf(entries, (entry) => filter.matches(entry) && (doShowNoise || !links.noise.has(entry.number)), filter.isEmpty ? now_ms : undefined, filter.isEmpty && outcome),
    [entries, filter, doShowNoise, links, now_ms, outcome]);
  const model = useMemo(() => lanesOf(rows, entries, links, sessions), [rows, entries, links, sessions]);
  const names = useMemo(() => nameSessions(entries, links, sessions, given), [entries, links, sessions, given]);
  const shownCount = useMemo(() => rows.filter((row) => row.entry).length, [rows]);

  const isCompact = width > 0 && width < 640;
  const height = isCompact ? 40 : 24;
  const widest = isCompact ? Math.max(90, width * 0.28) : Math.max(160, width * 0.38);
  const longest = Math.max(0, ...[...model.lanes.keys()].map((key) => names.get(key)?.length ?? 0));
  const step = Math.max(9, Math.min(isCompact ? 18 : Math.max(40, longest * HEAD_CHAR + 12), widest / Math.max(1, model.columns)));
  const laneWidth = step * model.columns;
  const timeWidth = seconds(entries.at(-1)?.at_ms ?? 0).length * 6.8 + (isCompact ? 12 : 22);

  const top = Math.max(0, Math.min(scroll.top, rows.length * height - scroll.height));
  const first = Math.max(0, Math.floor(top / height) - ROWS_BEYOND);
  const end = Math.min(rows.length, Math.ceil((top + scroll.height) / height) + ROWS_BEYOND);

  const measure = useCallback(() => {
    // Events about an element may arrive when the view has closed.
    if (!box.current) return;
    const { scrollTop, clientHeight, scrollHeight } = box.current;
    const index = Math.floor(scrollTop / height);
    anchor.current = { key: rows[index]?.key, offset: scrollTop - index * height, isAtEnd: start === null && scrollTop + clientHeight >= scrollHeight - 4 };
    setScroll((old) => (old.top === scrollTop && old.height === clientHeight ? old : { top: scrollTop, height: clientHeight }));
  }, [rows, height, start]);

  // Old entries were dropped, or the filter changed: what was at the top stays there.
  useLayoutEffect(() => {
    const { key, offset, isAtEnd } = anchor.current;
    const index = rows.findIndex((row) => row.key === key);
    if (isAtEnd) box.current.scrollTop = box.current.scrollHeight;
    else if (index >= 0) box.current.scrollTop = index * height + offset;
    measure();
  }, [rows, height]);
  useEffect(() => {
    const observer = new ResizeObserver(measure);
    observer.observe(box.current);
    return () => observer.disconnect();
  }, [measure]);

  const isSelectable = (row) => row.entry && !row.note;
  const select = (number, doScroll = true) => {
    setActive(number);
    setHover(null);
    if (open !== null) setOpen(number);
    const index = model.rowAt.get(number);
    if (!doScroll || index === undefined) return;
    const { scrollTop, clientHeight } = box.current;
    const top = index * height;
    if (top < scrollTop) box.current.scrollTop = top;
    else if (top + height > scrollTop + clientHeight) box.current.scrollTop = top + height - clientHeight;
  };
  /** Selects the entry in the row, or the next one in this direction, or else in the other one. */
  const selectFrom = (from, way) => {
    const start = Math.max(0, Math.min(rows.length - 1, from));
    let index = start;
    while (rows[index] && !isSelectable(rows[index])) index += way;
    if (!rows[index]) for (index = start; rows[index] && !isSelectable(rows[index]); ) index -= way;
    if (rows[index]) select(rows[index].entry.number);
  };
  const move = (by) => {
    const way = Math.sign(by);
    const current = model.rowAt.get(active);
    if (current !== undefined) selectFrom(current + by, way);
    else selectFrom(way > 0 ? Math.floor(top / height) : Math.ceil((top + scroll.height) / height) - 1, way);
  };
  const onKeyDown = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.max(1, Math.floor(scroll.height / height) - 1);
    const moves = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page };
    const cause = links.cause.get(active);
    const [effect] = links.effects.get(active) || [];
    if (moves[event.key]) move(moves[event.key]);
    else if (event.key === "Home") selectFrom(0, 1);
    else if (event.key === "End") selectFrom(rows.length - 1, -1);
    else if (event.key === "Enter" && active !== null) setOpen(open === active ? null : active);
    else if (event.key === "Escape" && open !== null) setOpen(null);
    else if (event.key === "ArrowLeft" && model.rowAt.has(cause)) select(cause);
    else if (event.key === "ArrowRight" && model.rowAt.has(effect)) select(effect);
    else return;
    event.preventDefault();
  };

  const focus = hover ?? active;
  const lit = useMemo(() => (focus === null ? new Set() : related(focus, links)), [focus, links]);
  const focused = focus === null ? undefined : entries[links.at.get(focus)];
  const samePath = focused && (focused.created ?? focused.path);
  const opened = open === null ? undefined : entries[links.at.get(open)];
  const close = () => {
    setOpen(null);
    box.current.focus();
  };
  const toggle = (session) => {
    const word = `by ${session}`;
    const others = text.replace(/\s*\bby \S+/g, "").trim();
    setText(text.includes(word) ? others : `${others} ${word}`.trim());
  };

  const heads = [];
  const visibleFrom = Math.floor(scroll.top / height);
  for (const lane of model.lanes.values()) {
    const isHere = lane.to >= visibleFrom || model.lanes.size <= LANES_OF_THEIR_OWN;
    if (isHere && !heads[lane.column]) heads[lane.column] = lane;
  }
  if (model.crowd > 0) heads[LANES_MAX - 1] = { key: MORE, column: LANES_MAX - 1, count: model.crowd + 1 };
  const isNarrow = step < 36;
  const hidden = doShowNoise ? 0 : links.noise.size;
  const body = [];
  let before;
  for (let index = first; index < end; index += 1) {
    const row = rows[index];
    const number = row.entry?.number;
    const on = {
      click: () => {
        if (String(getSelection()) !== "") return;
        setActive(number);
        setOpen(number);
      },
      enter: () => setHover(number),
    };
    body.push(html`<${Row} key=${row.key} row=${row} index=${index} top=${index * height} height=${height} before=${before} links=${links} names=${names} chars=${isCompact ? NAME_CHARS_COMPACT : NAME_CHARS} on=${on} id="entry-${row.key}"
      isActive=${number !== undefined && number === active} isOpen=${number !== undefined && number === open} isLit=${number !== undefined && lit.has(number)} path=${samePath} />`);
    before = row.entry?.at_ms;
  }

  return html`<div role="region" class="timeline${isCompact ? " compact" : ""}${opened ? " has-details" : ""}" style=${{ "--time": `${Math.max(isCompact ? 46 : 62, timeWidth)}px` }} aria-label="Timeline" ref=${outer}>
    <div class="tools">
      <input type="search" value=${text} onInput=${(event) => setText(event.target.value)} aria-label="Filter the timeline" placeholder="filter: create /locks/** -> error by 0x1… event" spellcheck="false" autocomplete="off" />
      <button type="button" aria-pressed=${/-> error\b/.test(text)} onClick=${() => setText(/-> error\b/.test(text) ? text.replace(/\s*-> error\b/, "").trim() : `${text.replace(/\s*-> \S+/, "")} -> error`.trim())}>errors</button>
      <label><input type="checkbox" checked=${doShowNoise} onChange=${(event) => setShowNoise(event.target.checked)} /> pings and handshakes${hidden > 0 ? ` (${hidden})` : ""}</label>
      <output aria-live="polite">${shownCount === entries.length ? `${entries.length} entries` : `${shownCount} of ${entries.length} entries`}</output>
    </div>
    ${ctl && !filter.isEmpty && html`<p class="command"><code>${filter.command(ctl)}</code></p>`}
    <div class="frame">
      <div class="main">
        <div class="heads" style=${{ height: isNarrow ? "30px" : "26px" }}>${heads.map((lane) => lane && html`<${Head} key=${lane.key} lane=${lane} name=${names.get(lane.key)} step=${step} isNarrow=${isNarrow} isOn=${text.includes(`by ${lane.key}`)} onToggle=${toggle} isLit=${focused && laneOf(focused, links) === lane.key} />`)}</div>
        <div class="rows" ref=${box} tabindex="0" role="grid" aria-label="Entries of the journal, oldest first" aria-rowcount=${rows.length} aria-activedescendant=${active === null ? undefined : `entry-${active}`}
          onScroll=${measure} onKeyDown=${onKeyDown} onMouseLeave=${() => setHover(null)}>
          <div class="space" role="rowgroup" style=${{ height: `${rows.length * height}px`, "--lanes": `${laneWidth}px` }}>
            <div class="drawing" style=${{ top: `${first * height}px` }}><${Lanes} rows=${rows} first=${first} end=${end} height=${height} step=${step} model=${model} links=${links} lit=${lit} active=${focused} /></div>
            ${body}
          </div>
          ${shownCount === 0 && html`<p class="empty">${entries.length === 0 ? "Nothing has happened yet." : "No entry matches the filter."}</p>`}
        </div>
      </div>
      ${opened && html`<${Details} entry=${opened} entries=${entries} links=${links} ctl=${ctl} onSelect=${select} onClose=${close} />`}
    </div>
    <p class="keys"><kbd>↑</kbd> <kbd>↓</kbd> move, <kbd>Enter</kbd> all fields, <kbd>←</kbd> cause, <kbd>→</kbd> effect</p>
  </div>`;
}

/** The head of a lane. */
function Head({ lane, name: known, step, isNarrow, isOn, isLit, onToggle }) {
  const name = `head ${laneClass(lane.key)}${isLit ? " lit" : ""}${isNarrow ? " narrow" : ""}`;
  const style = { left: `${(lane.column + 0.5) * step}px` };
  if (lane.key === SERVER) return html`<span class=${name} style=${style} title="the server: clock, verbs, faults">srv</span>`;
  if (lane.key === NONE) return html`<span class=${name} style=${style} title="connections without a session">–</span>`;
  if (lane.key === MORE) return html`<span class=${name} style=${style} title="${lane.count} sessions share this lane">+${lane.count}</span>`;
  const count = Math.floor((step - 2) / HEAD_CHAR);
  const label = known ? fitted(known, count) : isNarrow ? lane.key.slice(-2) : shortSession(lane.key);
  return html`<button type="button" class=${name} style=${style} aria-pressed=${isOn} onClick=${() => onToggle(lane.key)} title="${[known, `session ${lane.key}`, lane.address].filter(Boolean).join(", ")}: show only its entries">${label}</button>`;
}
