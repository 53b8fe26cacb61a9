// The server's clock: freeze, advance, auto.

import { html, useState } from "./preact.js";
import { Action, Command, Notice, ago, useAnswer } from "./parts.js";

/** How far the buttons advance. Unit: milliseconds. */
const STEPS = [1_000, 10_000, 60_000, 3_600_000];

/** Units of a duration that a person enters. */
export const UNITS = [["ms", 1], ["s", 1_000], ["min", 60_000], ["h", 3_600_000]];

/** A field for a duration; `onChange` gets milliseconds. */
export function Duration({ label, value, onChange }) {
  const [unit, setUnit] = useState(() => UNITS.findLast(([, size]) => value % size === 0)[0]);
  const size = UNITS.find(([name]) => name === unit)[1];
  const set = (number, by) => onChange(Math.max(0, Math.round(Number(number) * by) || 0));
  return html`<span class="duration"><label>${label} <input type="number" min="0" value=${value / size} onInput=${(event) => set(event.target.value, size)} /></label>
    <select aria-label=${`Unit of ${label.toLowerCase()}`} value=${unit} onChange=${(event) => {
      setUnit(event.target.value);
      set(value / size, UNITS.find(([name]) => name === event.target.value)[1]);
    }}>${UNITS.map(([name]) => html`<option key=${name} value=${name}>${name}</option>`)}</select></span>`;
}

export function Clock({ version }) {
  const [now, error] = useAnswer("now", {}, version, 500);
  const [by, setBy] = useState(STEPS[1]);
  const [chosen, setChosen] = useState(0);
  const [isStrict, setStrict] = useState(false);
  const [idle, setIdle] = useState(100);
  if (!now) return html`<div class="view"><h1>Clock</h1><${Notice} error=${error}>Reading…</${Notice}></div>`;
  const fields = isStrict ? { by_ms: by, strict: true } : { by_ms: by };
  return html`<div class="view">
    <div class="title"><h1>Clock</h1><${Command} verb="now" /></div>
    <dl class="facts">
      <dt>State</dt><dd>${now.is_frozen ? html`<b class="warn">frozen</b>: nothing expires until the clock moves` : html`<b class="ok">runs</b>`}</dd>
      <dt>Since the start</dt><dd class="figure">${ago(now.elapsed_ms)} <span class="muted">${now.elapsed_ms} ms</span></dd>
      <dt>Time of day</dt><dd>${when(now.wall_ms)}</dd>
    </dl>
    <section><h2>Freeze</h2>
      <p class="muted">While the clock is frozen no session expires, even if a client stops at a breakpoint.</p>
      ${now.is_frozen ? html`<${Action} label="Unfreeze" verb="unfreeze" />` : html`<${Action} label="Freeze" verb="freeze" />`}
    </section>
    <section><h2>Advance</h2>
      <p class="muted">Everything that falls due on the way happens before the button is free again. Connected sessions live on, unless they expire too.</p>
      <div class="form">
        <${Duration} key=${chosen} label="Advance by" value=${by} onChange=${setBy} />
        <span class="choices" role="group" aria-label="Usual steps">${STEPS.map((step) => html`<button key=${step} type="button" aria-pressed=${by === step} onClick=${() => {
          setBy(step);
          // The field shows it in its own unit.
          setChosen(chosen + 1);
        }}>${ago(step).replace(/ 0 \w+$/, "").replace(".0", "")}</button>`)}</span>
        <label><input type="checkbox" checked=${isStrict} onChange=${(event) => setStrict(event.target.checked)} /> connected sessions expire too</label>
      </div>
      <${Action} label="Advance" verb="advance" fields=${fields} />
    </section>
    <section><h2>Advance by itself</h2>
      <p class="muted">A frozen clock moves to the next deadline whenever all clients have been idle for this long, in real time.</p>
      <div class="form"><${Duration} label="Idle for" value=${idle} onChange=${setIdle} /></div>
      <${Action} label="Switch on" verb="auto_advance" fields=${{ idle_ms: idle }} />
      <${Action} label="Switch off" verb="auto_advance" fields=${{ idle_ms: null }} />
    </section>
  </div>`;
}

/** A time of day for people, with its milliseconds. */
export function when(ms) {
  const date = new Date(ms);
  if (!Number.isFinite(date.getTime())) return `${ms} ms`;
  return date.toISOString().replace("T", " ").replace("Z", " UTC");
}
