// Parts that several views use.

import { html, useCallback, useEffect, useLayoutEffect, useRef, useState } from "./preact.js";
import { access, change, command, read } from "./api.js";

/** How the views learn of changes and report errors; `app.js` sets it. */
export const page = {
  report: () => {},
  refresh: () => {},
};

/** Rows that are rendered above and below what is visible. */
const ROWS_BEYOND = 10;

/** Reads a verb when its arguments or `version` change, and every `everyMs`. Returns `[answer, error, reload]`. */
export function useAnswer(verb, fields, version, everyMs = 0) {
  const key = `${access.universe}\n${verb}\n${JSON.stringify(fields)}`;
  const [state, setState] = useState({ key });
  const running = useRef({ key: "", isStale: false });
  const load = useCallback(async () => {
    if (fields === null || document.hidden) return;
    const now = running.current;
    if (now.key === key) {
      now.isStale = true;
      return;
    }
    now.key = key;
    now.isStale = false;
    const outcome = await read(verb, fields).then((answer) => ({ answer }), (error) => ({ error }));
    if (now.key !== key) return;
    now.key = "";
    setState((old) => ({ key, answer: old.key === key && !outcome.answer && !outcome.error.status ? old.answer : undefined, ...outcome }));
    if (now.isStale) load();
  }, [key]);
  useEffect(() => {
    load();
  }, [load, version]);
  useEffect(() => {
    if (!everyMs) return undefined;
    const timer = setInterval(load, everyMs);
    return () => clearInterval(timer);
  }, [load, everyMs]);
  useEffect(() => () => (running.current.key = ""), []);
  const isCurrent = state.key === key;
  return [isCurrent ? state.answer : undefined, isCurrent ? state.error : undefined, load];
}

/** Returns a version that changes at most every `ms`. */
export function useSlow(version, ms) {
  const [slow, setSlow] = useState(version);
  const latest = useRef(version);
  const timer = useRef(0);
  latest.current = version;
  useEffect(() => {
    if (version === slow || timer.current) return;
    timer.current = setTimeout(() => {
      timer.current = 0;
      setSlow(latest.current);
    }, ms);
  }, [version, slow]);
  useEffect(() => () => clearTimeout(timer.current), []);
  return slow;
}

/** Changes something; reports an error and returns undefined if it fails. */
export async function act(verb, fields) {
  try {
    const answer = await change(verb, fields);
    page.report(null);
    page.refresh();
    return answer;
  } catch (error) {
    page.report(error.message);
    return undefined;
  }
}

/** The command that does the same, with a button that copies it. */
export function Command({ verb, fields }) {
  const text = command(verb, fields);
  return html`<span class="command"><code>${text}</code><${Copy} text=${text} label="Copy command" /></span>`;
}

export function Copy({ text, label }) {
  const [isDone, setDone] = useState(false);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setDone(true);
      setTimeout(() => setDone(false), 1500);
    } catch {
      page.report("the browser does not allow copying; select the text instead");
    }
  };
  return html`<button type="button" class="copy" aria-label=${label} title=${label} onClick=${copy}>
    <svg viewBox="0 0 16 16" width="12" height="12" aria-hidden="true">${isDone
      ? html`<path d="M2.5 8.5l3.5 3.5 7.5-8" />`
      : html`<rect x="5.5" y="5.5" width="8" height="8" rx="1.5" /><path d="M10.5 3.5v-.5a1 1 0 0 0-1-1H3.5a1 1 0 0 0-1 1v6a1 1 0 0 0 1 1h.5" />`}</svg></button>`;
}

/** A button that changes something, with the command that does the same. Hidden while the page is read-only. `shownFields`
 * are the command's where it has others, such as the name of a file. With `question` it asks first. */
export function Action({ label, verb, fields = {}, shownFields = fields, isDanger = false, isPrimary = false, isDisabled = false, question = "", onDone = () => {} }) {
  const [isBusy, setBusy] = useState(false);
  const [isAsking, setAsking] = useState(false);
  if (access.readOnly) return null;
  const run = async () => {
    setAsking(false);
    setBusy(true);
    const answer = await act(verb, fields);
    setBusy(false);
    if (answer !== undefined) onDone(answer);
  };
  if (isAsking) {
    return html`<div class="action" role="group" aria-label=${question}><span>${question}</span>
      <button type="button" class="danger" onClick=${run}>${`Yes, ${label.toLowerCase()}`}</button>
      <button type="button" onClick=${() => setAsking(false)}>No</button></div>`;
  }
  return html`<div class="action">
    <button type="button" class=${isDanger ? "danger" : isPrimary ? "primary" : ""} disabled=${isBusy || isDisabled} onClick=${question ? () => setAsking(true) : run}>${label}</button>
    <${Command} verb=${verb} fields=${shownFields} />
  </div>`;
}

/** What a field holds once `sent` was answered: nothing, or what was typed meanwhile. */
export const cleared = (sent, empty = "") => (now) => (now === sent ? empty : now);

/** The reason why a view shows nothing. */
export function Notice({ error, children }) {
  return html`<p class=${error ? "notice bad" : "notice"}>${error ? error.message : children}</p>`;
}

/** A duration for people. */
export function ago(ms) {
  if (!Number.isFinite(ms)) return "";
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(ms < 10_000 ? 1 : 0)} s`;
  if (ms < 3_600_000) return `${Math.floor(ms / 60_000)} min ${Math.floor((ms % 60_000) / 1_000)} s`;
  if (ms < 86_400_000) return `${Math.floor(ms / 3_600_000)} h ${Math.floor((ms % 3_600_000) / 60_000)} min`;
  return `${Math.floor(ms / 86_400_000)} d ${Math.floor((ms % 86_400_000) / 3_600_000)} h`;
}

/** A number of bytes for people. */
export function bytes(count) {
  if (count < 1_024) return `${count} B`;
  if (count < 1_048_576) return `${(count / 1_024).toFixed(1)} KiB`;
  return `${(count / 1_048_576).toFixed(1)} MiB`;
}

/** Which rows of a long list are in sight in `box`, which scrolls, and some around them: `[first, end, onScroll]`. */
export function useWindow(box, count, rowHeight) {
  const [seen, setSeen] = useState({ row: 0, rows: 30 });
  const measure = () => {
    if (!box.current) return;
    const row = Math.floor(box.current.scrollTop / rowHeight);
    const rows = Math.ceil(box.current.clientHeight / rowHeight) + 1;
    setSeen((old) => (old.row === row && old.rows === rows ? old : { row, rows }));
  };
  useLayoutEffect(measure);
  useEffect(() => {
    window.addEventListener("resize", measure);
    return () => window.removeEventListener("resize", measure);
  }, []);
  const first = Math.max(0, Math.min(seen.row, count - seen.rows) - ROWS_BEYOND);
  return [first, Math.min(count, first + seen.rows + 2 * ROWS_BEYOND), measure];
}

/** Rows of a table, no more than fit: the others with "show more". */
export function useRows(rows, step) {
  const [count, setCount] = useState(step);
  const more = rows.length > count && html`<p><button type="button" onClick=${() => setCount(count + step)}>Show more: ${count} of ${rows.length}</button></p>`;
  return [rows.slice(0, count), more];
}
