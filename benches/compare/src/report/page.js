/*
 * Draws the page of the lock bench: `page(results)` returns its content as markup.
 *
 * Horizontal positions are hundredths of a chart's width, so that a chart fills its column while its letters keep their
 * size; vertical ones are pixels.
 */
'use strict';

/* Markup: values are escaped, numbers have two decimal places, lists are joined, and null and false are nothing. */

class Markup {
  constructor(text) {
    this.text = text;
  }
}
const ENTITIES = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#x27;' };
const escaped = (value) => {
  if (value instanceof Markup) return value.text;
  if (Array.isArray(value)) return value.map(escaped).join('');
  if (value === null || value === false) return '';
  return (typeof value === 'number' ? trimmed(value, 2) : String(value)).replace(/[&<>"']/g, (char) => ENTITIES[char]);
};
const html = (strings, ...values) => new Markup(String.raw({ raw: strings }, ...values.map(escaped)));

/* Numbers: the same as in `text.rs`. */

const NONE = '–';
const exponent = (text) => text.replace('e+', 'e');
const trimmed = (value, places) => String(Number(value.toFixed(places)));
const grouped = (value) => value.toFixed(0).replace(/\B(?=(\d{3})+$)/g, ',');
const digits = (value) => {
  const size = Math.abs(value);
  if (size >= 100) return grouped(value);
  return size === 0 ? '0' : value.toFixed(size >= 10 ? 1 : size >= 1 ? 2 : 3);
};
const figure = (value) => {
  if (value > 0 && value < 0.0005) return '<0.001';
  return Math.abs(value) >= 1e15 ? exponent(value.toExponential(2)) : digits(value);
};
const number = (value) => (value === null ? NONE : figure(value));
const TIMES = [[1e9, 's'], [1e6, 'ms'], [1e3, 'µs'], [1, 'ns']];
const BYTES = [[1e6, 'MB'], [1e3, 'kB'], [1, 'B']];
const inUnit = (units, value, format) => {
  const [size, unit] = units.find(([size]) => value >= size) ?? units.at(-1);
  return `${format(value / size)} ${unit}`;
};
const time = (ns) => (ns === null ? NONE : inUnit(TIMES, ns, ns >= 1e24 ? figure : digits));
const multiple = (spread) =>
  spread === null ? NONE : `${figure(spread.median)} × (${figure(spread.min)}–${figure(spread.max)})`;

/* Labels of ticks: the values are round except for rounding errors. */

const countLabel = (value) => {
  if (value >= 1e15) return exponent(value.toExponential());
  const isWhole = value >= 1 && Math.abs(value - Math.round(value)) < 1e-6 * value;
  return isWhole ? grouped(value) : trimmed(value, 6);
};
const timeLabel = (ns) => (ns === 0 ? '0' : inUnit(TIMES, ns, countLabel));
const bytesLabel = (bytes) => inUnit(BYTES, bytes, countLabel);

/* Axes: positions of values, with ticks at round numbers. */

class Axis {
  constructor(low, high, isLog, ticks) {
    Object.assign(this, { low, high, isLog, ticks });
  }

  /* From 0 at the low end to 1 at the high one; null for a value without a position. */
  share(value) {
    if (!Number.isFinite(value) || (this.isLog && value <= 0)) return null;
    const at = Math.min(Math.max(value, this.low), this.high);
    if (this.isLog) return Math.log10(at / this.low) / Math.log10(this.high / this.low);
    return (at - this.low) / (this.high - this.low);
  }

  /* The same in hundredths of the width: marks and labels need space beyond the ends. */
  percent(value) {
    const share = this.share(value);
    return share === null ? null : 4 + 92 * share;
  }
}

/* A logarithmic axis around the values that have a logarithm; null if none has one. */
const logAxis = (values, label) => {
  const bounded = values.filter((value) => value > 0 && Number.isFinite(value))
    .map((value) => Math.min(Math.max(value, 1e-3), 1e18));
  if (bounded.length === 0) return null;
  /* Slightly inwards, so that a round value is its own bound despite rounding errors. */
  const low = roundDown(Math.min(...bounded) * 1.000001);
  const above = roundUp(Math.max(...bounded) * 0.999999);
  const high = above > low ? above : low * 10;
  return new Axis(low, high, true, logTicks(low, high, label));
};
/* A logarithmic axis with a tick at each of these rising values; null if there are fewer than two. */
const logAxisAt = (values, label) => {
  const ticks = values.map((value) => ({ value, label: label(value) }));
  return values.length < 2 ? null : new Axis(values[0], values.at(-1), true, ticks);
};
/* A linear axis from zero to a round number above all values. */
const linearAxis = (values, label) => {
  const high = largest(values);
  const step = roundUp(high / 4);
  return linearAxisTo(Math.ceil(high / step) * step, label);
};
const linearAxisTo = (value, label) => {
  const high = largest([value]);
  const step = roundUp(high / 4);
  const values = Array.from({ length: 9 }, (_, at) => at * step).filter((value) => value <= high * 1.000001);
  return new Axis(0, high, false, values.map((value) => ({ value, label: label(value) })));
};
/* The largest of the finite values above zero, but no larger than steps can be summed; 1 if there are none. */
const largest = (values) => Math.min(Math.max(0, ...values.filter(Number.isFinite)), 1e300) || 1;

/* The next number up or down that is 1, 2 or 5 times a power of ten. */
const steps = (value) => [1, 2, 5, 10].map((step) => step * decade(Math.floor(Math.log10(value))));
const roundUp = (value) => steps(value).find((step) => step >= value) ?? steps(value)[3];
const roundDown = (value) => steps(value).findLast((step) => step <= value) ?? steps(value)[0];
/* A power of ten, exact as its decimal notation. */
const decade = (power) => Number(`1e${power}`);

const logTicks = (low, high, label) => {
  const span = Math.log10(high / low);
  /* With more decades than seven, only some are labelled. */
  const every = Math.max(Math.ceil(span / 7), 1);
  const ticks = [];
  const first = Math.floor(Math.log10(low));
  for (let power = first; decade(power) <= high * 1.000001; power += 1) {
    for (const step of [1, 2, 5]) {
      const value = step * decade(power);
      if (value < low * 0.999999 || value > high * 1.000001) continue;
      const isLabelled = span <= 1.75 || (step === 1 && (power - first) % every === 0);
      if (isLabelled || step === 1 || (every === 1 && span <= 5)) {
        ticks.push({ value, label: isLabelled ? label(value) : null });
      }
    }
  }
  return ticks;
};

/* The ticks with their positions. If there are more labels than fit, only some are written. */
const placed = (axis, labelsMax) => {
  if (axis === null) return [];
  const labelled = axis.ticks.filter(({ label }) => label !== null);
  const every = labelsMax ? Math.max(Math.ceil(labelled.length / labelsMax), 1) : 1;
  return axis.ticks.map((tick) => ({
    x: axis.percent(tick.value),
    isMain: tick.label !== null,
    label: labelled.indexOf(tick) % every === 0 ? tick.label : null,
  }));
};

/* Parts of charts. */

/* Marks of contestants as paths, the simplest first; the last two are strokes. */
const MARKS = [
  'M-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0-9 0z', 'M-4-4h8v8h-8z', 'M0-5L5 4h-10z', 'M0-5.5L5.5 0L0 5.5L-5.5 0z',
  'M0 5L5-4h-10z', 'M-4-4L4 4M-4 4L4-4', 'M-5 0h10M0-5v10',
];
/* Dash patterns of contestants' lines: the next one each time the marks are used up. */
const DASHES = ['none', '6 3', '2 3', '9 3 2 3'];
/* How a contestant looks in all charts: by the order in which they first appear. */
let contestants = [];
const mark = (x, y, { contestant, is_ours }, title) => {
  const at = contestants.indexOf(contestant) % MARKS.length;
  return html`<svg x="${x}%" y="${y}" overflow="visible"><title>${title}</title><path d="${MARKS[at]}" class="${
    is_ours ? 'ours' : 'other'}${at >= 5 && ' stroke'}"/></svg>`;
};
const dash = ({ contestant }) => DASHES[Math.floor(contestants.indexOf(contestant) / MARKS.length) % DASHES.length];
const ours = ({ is_ours }) => (is_ours ? ' ours' : '');
const name = (row) => html`<span${row.is_ours && html` class="ours"`}>${row.contestant}</span>`;

const picture = (height, label, ...content) => html`<svg class="pic" width="100%" height="${height}" ${
  label === null ? html`aria-hidden="true"` : html`role="img" aria-label="${label}"`}>${content}</svg>`;
const line = (x1, y1, x2, y2, style, dashes = null) =>
  html`<line x1="${x1}%" y1="${y1}" x2="${x2}%" y2="${y2}" class="${style}"${
    dashes && html` stroke-dasharray="${dashes}"`}/>`;
const rect = (x, width, y, height, style, title) =>
  html`<rect x="${x}%" width="${width}%" y="${y}" height="${height}" class="${style}"><title>${title}</title></rect>`;
const labels = (ticks, y) => ticks.filter(({ label }) => label !== null)
  .map(({ x, label }) => html`<text x="${x}%" y="${y}" text-anchor="middle">${label}</text>`);

const badge = (state, text) => html`<span class="badge ${state}">${text}</span>`;
const list = (items) => html`<ul>${items.map((item) => html`<li>${item}</li>`)}</ul>`;
/* A table of texts and markup; the columns whose titles begin with # are right-aligned. */
const table = (columns, rows) => {
  const style = (at) => columns[at].startsWith('#') && html` class="n"`;
  const heading = columns.map((title, at) => html`<th scope="col"${style(at)}>${title.replace('#', '')}</th>`);
  const line = (cells) => html`<tr>${cells.map((cell, at) => html`<td${style(at)}>${cell}</td>`)}</tr>\n`;
  return html`<div class="scroll"><table><thead><tr>${heading}</tr></thead><tbody>\n${rows.map(line)}</tbody></table></div>`;
};

/* Charts. */

/*
 * A table with a chart in its second column: a row for each contestant over a common axis. `draw` returns the cells of a
 * row, and its dot with a whisker, or its bars, which lie one after the other from zero.
 */
const strips = (rows, axis, title, columns, draw, reference = null) => {
  const ticks = placed(axis);
  const percent = (value) => (axis === null ? null : axis.percent(value));
  const strip = (row) => {
    const { cells, dot = null, whisker = null, bars = [] } = draw(row);
    const tip = `${row.contestant}: ${cells.join(', ')}`;
    const at = percent(dot);
    const [from, to] = whisker === null ? [null, null] : whisker.map(percent);
    let sum = 0;
    const drawn = bars.map(([value, style]) => {
      const [begin, end] = [percent(sum), percent(sum + value)];
      if (value === null || begin === null || end === null) return null;
      sum += value;
      return rect(begin, Math.max(end - begin, 0), 6, 14, `bar${ours(row)}${style}`, tip);
    });
    const hasWhisker = from !== null && to !== null;
    return html`<tr><th scope="row"${row.is_ours && html` class="ours"`}>${row.contestant}${warning(row)}</th>
<td class="plot">${picture(26, null,
    ticks.map(({ x, isMain }) => line(x, -6, x, 32, isMain ? 'grid' : 'grid faint')),
    reference !== null && line(percent(reference), -6, percent(reference), 32, 'fair', '4 3'),
    drawn,
    hasWhisker && line(from, 13, to, 13, `whisker${ours(row)}`),
    hasWhisker && line(to, 9, to, 17, `whisker${ours(row)}`),
    at !== null && mark(at, 13, row, tip),
  )}</td>${cells.map((cell, at) => html`<td class="n" data-of="${columns[at]}">${cell}</td>`)}</tr>\n`;
  };
  const scale = picture(22, null, labels(ticks, 17));
  return html`<table class="strips">
<thead><tr><th scope="col">contestant</th><th scope="col" class="plot"><span class="plot-title">${title}</span>${
    rows.length > 7 && scale}</th>${columns.map((column) => html`<th scope="col" class="n">${column}</th>`)}</tr></thead>
<tbody>${rows.map(strip)}</tbody>
<tfoot aria-hidden="true"><tr><td></td><td class="plot">${scale}</td>${columns.map(() => html`<td></td>`)}</tr></tfoot>
</table>`;
};
/* A warning for a row whose lock may not have been exclusive. */
const warning = ({ verdict: { word } }) =>
  !['holds', 'exclusion only'].includes(word) && html` ${badge(word === 'VIOLATED' ? 'no' : 'open', word)}`;

/* Small bar charts, one for each contestant. */
const multiples = (figures, height, ticks, fair = null) => html`<div class="multiples">
${figures.map(({ row, caption, label, bars }) => html`<figure><figcaption><b${row.is_ours && html` class="ours"`}>${
    row.contestant}</b><span class="muted">${caption}</span></figcaption>
${picture(height + (ticks.length ? 20 : 2), `${label}, ${row.contestant}: ${caption}`,
    ticks.filter(({ isMain }) => isMain).map(({ x }) => line(x, 0, x, height, 'grid')),
    bars.map((bar) => rect(bar.x, bar.width, height - bar.height, bar.height, `bar${ours(row)}`, bar.title)),
    fair !== null && line(0, fair, 100, fair, 'fair', '4 3'),
    line(0, height, 100, height, 'base'),
    labels(ticks, height + 15),
  )}</figure>\n`)}</div>`;

/* Latencies, one chart per contestant, all over the same logarithmic axis and equally high. */
const HISTOGRAM_BARS = 56;
const histograms = (rows) => {
  const ends = rows.flatMap(({ latency_buckets_ns_count: buckets }) => [buckets[0], buckets.at(-1)]);
  const axis = logAxis(ends.filter((bucket) => bucket).map(([ns]) => Math.max(ns, 1)), timeLabel);
  if (axis === null) return null;
  const height = 84;
  const shares = rows.map((row) => latencyShares(row.latency_buckets_ns_count, axis));
  const peak = Math.max(...shares.flat());
  const width = 92 / HISTOGRAM_BARS;
  const figures = rows.map((row, of) => ({
    row,
    label: 'Histogram of latencies',
    caption: row.latency_p50_ns === null ? 'nothing recorded' : `p50 ${time(row.latency_p50_ns)}, p99 ${time(row.latency_p99_ns)}`,
    bars: shares[of].map((share, at) => ({
      x: 4 + width * at,
      width,
      /* High enough to be seen: readers look for the tail. */
      height: share && Math.max((share / peak) * (height - 4), 1),
      title: `${digits(share * 100)} % of all`,
    })).filter((bar) => bar.height > 0),
  }));
  /* Not all labels of a wide axis fit below a small chart. */
  return html`<p class="aid">All rounds together. The height is the share of all latencies. All charts have the same scales, the
horizontal one is logarithmic, and the smallest bar is one pixel high.</p>
${multiples(figures, height, placed(axis, 3))}`;
};
/* The share of all latencies in each part of the axis. */
const latencyShares = (buckets, axis) => {
  const shares = Array(HISTOGRAM_BARS).fill(0);
  const all = buckets.reduce((sum, [, count]) => sum + count, 0);
  for (const [ns, count] of buckets) {
    const at = Math.floor(axis.share(Math.max(ns, 1)) * HISTOGRAM_BARS);
    shares[Math.min(at, HISTOGRAM_BARS - 1)] += count / all;
  }
  return shares;
};

/* Lines over the number of contenders, each with its name at its end; null if fewer than two numbers were measured. */
const NAME_HEIGHT = 17;
const growth = (rows) => {
  const measured = rows.filter(({ p50_ns }) => p50_ns !== null);
  const count = ({ workload }) => workload.contenders;
  const counts = [...new Set(measured.map(count))].filter((count) => count >= 1).sort((a, b) => a - b);
  const across = logAxisAt(counts, countLabel);
  const down = logAxis(measured.map(({ p50_ns }) => p50_ns), timeLabel);
  if (across === null || down === null) return null;
  const series = grouping(measured, 'contestant');
  const margin = 10;
  const height = Math.max(340, NAME_HEIGHT * series.length + 2 * margin);
  const y = (ns) => margin + (1 - down.share(ns)) * (height - 2 * margin);
  const lines = series.map((rows) => {
    const points = [...rows].sort((a, b) => count(a) - count(b)).map((row) => ({
      x: across.percent(count(row)),
      y: y(row.p50_ns),
      title: `${row.contestant}: ${time(row.p50_ns)} with ${count(row)} contenders`,
    })).filter(({ x }) => x !== null);
    return { row: rows[0], points, end: points.at(-1) };
  }).filter(({ end }) => end);
  lines.sort((a, b) => a.end.y - b.end.y);
  const places = apart(lines.map(({ end }) => end.y), height);
  const scale = down.ticks.map(({ value, label }) => ({ y: y(value), label }));
  /* About as wide as the longest name and its sample of line; the lines get the rest. */
  const letters = Math.min(Math.max(...series.map(([{ contestant }]) => [...contestant].length)), 50);
  return html`<h3>Growth with the number of contenders</h3>
<p class="aid">Both scales are logarithmic. A flat line does not depend on how many wait; a line that rises as fast as the number
of contenders has a cost for each of them.</p>
<div class="growth" style="--names:${7.8 * letters + 48}px">
<div class="scale">${picture(height, null, scale.filter(({ label }) => label !== null)
    .map(({ y, label }) => html`<text x="96%" y="${y + 4}" text-anchor="end">${label}</text>`))}</div>
<div class="plot">${picture(height + 40, `p50 by number of contenders, ${lines.length} lines`,
    scale.map(({ y, label }) => line(0, y, 100, y, label === null ? 'grid faint' : 'grid')),
    labels(placed(across), height + 16),
    html`<text x="50%" y="${height + 34}" text-anchor="middle">contenders</text>`,
    lines.map(({ row, points, end }) => html`
<g class="series" stroke-dasharray="${dash(row)}"><title>${row.contestant}</title>${points.slice(1)
    .map((point, at) => line(points[at].x, points[at].y, point.x, point.y, `path${ours(row)}`))}</g>${points
    .map(({ x, y, title }) => mark(x, y, row, title))}${line(end.x, end.y, 100, end.y, 'leader')}`),
  )}</div>
<div class="leaders">${picture(height, null, lines.map(({ end }, at) => line(0, end.y, 100, places[at], 'leader')))}</div>
<div class="names" style="height:${height}px">${lines.map(({ row }, at) => html`
<div class="name${ours(row)}" style="top:${places[at] - 8.5}px" title="${row.contestant}"><span class="sample">${picture(14, null,
    line(0, 7, 100, 7, `path${ours(row)}`, dash(row)), mark(50, 7, row, row.contestant),
  )}</span><span>${row.contestant}</span></div>`)}</div>
</div>`;
};
/* Positions near the wanted ones, at least the height of a name apart. */
const apart = (wanted, height) => {
  /* Down from the top, then up from the bottom: names beyond the end move back. */
  let least = NAME_HEIGHT / 2;
  const places = wanted.map((place) => {
    const moved = Math.max(place, least);
    least = moved + NAME_HEIGHT;
    return moved;
  });
  let most = height - NAME_HEIGHT / 2;
  return places.reverse().map((place) => {
    const moved = Math.min(place, most);
    most = moved - NAME_HEIGHT;
    return moved;
  }).reverse();
};

/* How often each contender got the lock, in fair shares, so that fast and slow locks can be compared. */
const grants = (rows) => {
  const height = 72;
  const shown = rows.map((row) => ({ row, shares: fairShares(row.grants) })).filter(({ shares }) => shares.length);
  if (shown.length === 0) return null;
  /* Space for a bar a little above the fair share. */
  const peak = Math.max(1.25, ...shown.flatMap(({ shares }) => shares));
  const figures = shown.map(({ row, shares }) => {
    const width = 100 / shares.length;
    const gap = shares.length > 40 ? 0 : width * 0.15;
    const [least, most] = [Math.min(...row.grants), Math.max(...row.grants)].map(grouped);
    return {
      row,
      label: 'Grants per contender',
      caption: `Jain ${number(row.jain)}; from ${least} to ${most} grants`,
      bars: shares.map((share, at) => ({
        x: width * at + gap,
        width: width - 2 * gap,
        height: (share / peak) * height,
        title: `${digits(share)} of the fair share`,
      })),
    };
  });
  return html`<h3>Grants by contender: ${rows[0].title}</h3>
<p class="aid">One bar per contender, the most grants first. The dashed line is the fair share, and all charts have the same
scale.</p>
${multiples(figures, height, [], height - height / peak)}`;
};
/* Grants divided by their mean, the most first; neighbours share a bar if there are more than a hundred. */
const fairShares = (grants) => {
  const mean = (counts) => counts.reduce((sum, count) => sum + count, 0) / counts.length;
  if (!grants.some((count) => count > 0)) return [];
  const fair = mean(grants);
  const sorted = [...grants].sort((a, b) => b - a);
  const together = Math.ceil(sorted.length / 100);
  const bars = Array.from({ length: Math.ceil(sorted.length / together) }, (_, at) => at * together);
  return bars.map((from) => mean(sorted.slice(from, from + together)) / fair);
};

/* The three figures of fairness, by number of contenders. */
const fairness = (rows) => {
  const groups = grouping(rows);
  const figures = { "Jain's index": 'jain', 'inversions per grant': 'inversions_per_grant', 'regrabs per grant': 'regrabs_per_grant' };
  const cells = (cell) => groups.map((group, at) => cell(group, at === 0 && ' group'));
  const row = (contestant) => {
    const of = (group) => group.find((row) => row.contestant === contestant) ?? null;
    const any = groups.map(of).find((row) => row);
    return any && html`<tr><th scope="row">${name(any)}</th>${Object.values(figures).map((key) => cells((group, first) =>
      html`<td class="n${first}">${number(of(group) && of(group)[key])}</td>`))}</tr>\n`;
  };
  return html`<h3>Fairness in numbers</h3>
<p class="aid">By number of contenders. Jain's index is 1 if all got the same number of grants, and 1 divided by the number of
contenders if one got all of them. An inversion is a grant that overtook a contender who had been waiting clearly longer; a regrab
is a grant to the last holder although others waited.</p>
<div class="scroll"><table><thead>
<tr><th rowspan="2" scope="col">contestant</th>${Object.keys(figures).map((title) =>
    html`<th colspan="${groups.length}" scope="colgroup" class="group">${title}</th>`)}</tr>
<tr>${Object.keys(figures).map(() => cells((group, first) =>
    html`<th scope="col" class="n${first}">${grouped(group[0].workload.contenders)}</th>`))}</tr>
</thead><tbody>${contestants.map(row).filter((row) => row)}</tbody></table></div>`;
};

/* Which contender held the lock when: thin while waiting, thick while holding. */
const HOLDS_MAX = 60;
const lanes = (rows) => {
  const figures = rows.filter(({ timeline }) => timeline.length > 0).map(lanesOf);
  return figures.length > 0 && html`<h3>Who held it when: ${rows[0].title}</h3>
<p class="aid">One lane per contender, thin while it waits, thick while it holds: the first ${HOLDS_MAX} holds of one part of a round.
Each chart has its own time scale.</p>
<div class="multiples wide">${figures}</div>`;
};
const lanesOf = (row) => {
  const sorted = [...row.timeline].sort((a, b) => a.granted_ns - b.granted_ns);
  const [holds, later] = [sorted.slice(0, HOLDS_MAX), sorted.slice(HOLDS_MAX)];
  const begin = holds[0].granted_ns;
  const end = Math.max(...holds.map((hold) => Math.max(hold.released_ns, hold.granted_ns)));
  const axis = linearAxisTo(Math.max(end - begin, 1), timeLabel);
  const x = (ns) => axis.percent(Math.max(ns - begin, 0));
  const length = (from, to) => time(Math.max(to - from, 0));
  /* With many contenders, only holders have a lane. */
  const all = row.workload.contenders <= 24 ? Array.from({ length: row.workload.contenders }, (_, at) => at) : [];
  const numbers = [...new Set([...all, ...holds.map(({ contender }) => contender)])].sort((a, b) => a - b);
  const height = 13 * numbers.length;
  const lane = (contender, at) => {
    const y = 13 * (at + 0.5);
    const own = holds.filter((hold) => hold.contender === contender);
    const waiting = later.find((hold) => hold.contender === contender);
    const wait = (from, to) => line(x(from), y, x(to), y, 'wait');
    const hold = ({ asked_ns, granted_ns, releasing_ns }) => {
      /* Wide enough to be seen, however short. */
      const width = Math.max(x(Math.max(releasing_ns, granted_ns)) - x(granted_ns), 0.4);
      return rect(x(granted_ns), width, y - 3.5, 7, `hold${ours(row)}`,
        `contender ${contender} waited ${length(asked_ns, granted_ns)} and held ${length(granted_ns, releasing_ns)}`);
    };
    return [
      own.map(({ asked_ns, granted_ns }) => wait(asked_ns, granted_ns)),
      waiting !== undefined && waiting.asked_ns < end && wait(waiting.asked_ns, end),
      own.map(hold),
    ];
  };
  const ticks = placed(axis, 5);
  return html`<figure><figcaption>${name(row)}</figcaption>
<div class="lanes"><div class="numbers">${picture(height + 18, null, numbers.map((contender, at) =>
    html`<text x="88%" y="${13 * (at + 0.5) + 3.5}" text-anchor="end">${contender}</text>`))}</div>
<div>${picture(height + 18, `${holds.length} holds of ${numbers.length} contenders: ${row.contestant}`,
    ticks.map(({ x }) => line(x, 0, x, height, 'grid')), numbers.map(lane), labels(ticks, height + 14),
  )}</div></div></figure>`;
};

/* Median and p99 of each contestant. */
const dots = (rows) => {
  const axis = logAxis(rows.flatMap(({ p50_ns, p99_ns }) => [p50_ns, p99_ns]), timeLabel);
  return strips(rows, axis, 'p50, whisker to p99 (log scale)', ['p50', 'p99', 'p50 / echo'], (row) => ({
    cells: [time(row.p50_ns), time(row.p99_ns), multiple(row.p50_over_echo)],
    dot: row.p50_ns,
    whisker: [row.p50_ns, row.p99_ns],
  }));
};
const bars = (rows, title, column, key, label) => {
  const axis = linearAxis(rows.map((row) => row[key]), label);
  return strips(rows, axis, title, [column], (row) => ({ cells: [number(row[key])], bars: [[row[key], '']] }));
};
const recovery = (rows) => {
  const axis = linearAxis([1, ...rows.map(({ p50_over_timeout: spread }) => spread && spread.max)], countLabel);
  const title = 'time-outs, whisker over all rounds (linear scale)';
  return strips(rows, axis, title, ['p50', 'timeout', 'p50 / timeout'], ({ p50_ns, timeout_ns, p50_over_timeout: spread }) => ({
    cells: [time(p50_ns), time(timeout_ns), multiple(spread)],
    dot: spread && spread.median,
    whisker: spread && [spread.min, spread.max],
  }), 1);
};
const cpu = (rows) => {
  const times = (row) => [row.server_cpu_ns_per_grant, row.client_cpu_ns_per_grant];
  const axis = linearAxis(rows.map((row) => times(row)[0] + times(row)[1]), timeLabel);
  return strips(rows, axis, 'server (full) and client (light) (from zero)', ['server', 'client'], (row) => ({
    cells: times(row).map(time),
    bars: [[times(row)[0], ''], [times(row)[1], ' client']],
  }));
};

/* The page. */

/* Rows with the same value, usually the workload's, in the order in which they first appear. */
const grouping = (rows, key = 'title') =>
  [...new Set(rows.map((row) => row[key]))].map((value) => rows.filter((row) => row[key] === value));
const section = (id, title, aid, ...content) => html`
<section id="${id}"><h2>${title}</h2>${aid && html`\n<p class="aid">${aid}</p>`}
${content}</section>`;
const DOTS = 'The mark is the median and the whisker ends at p99. The scale is logarithmic: equal distances are equal factors.';

const page = (results) => {
  const { about, pauses, goals, findings } = results;
  const rows = results.rows.map((row) => ({ ...row, ...row.medians }));
  contestants = [...new Set(rows.map(({ contestant }) => contestant))];
  const of = (...kinds) => rows.filter(({ workload }) => kinds.includes(workload.kind));
  /* The hand-over whose details are shown: of 8 contenders, else of the fewest that hand over. */
  const [shown] = grouping(of('hand-over')).map((group) => [group[0].workload.contenders, group])
    .sort(([a], [b]) => (a !== 8) - (b !== 8) || (a < 2) - (b < 2) || a - b).map(([, group]) => group);
  const isDetailed = (group) => group[0].workload.kind === 'cycle' || (shown && group[0].title === shown[0].title);
  const measured = (id, rows, title, aid, draw, ...more) => rows.length > 0 && section(id, title, aid,
    grouping(rows).map((group) => [id !== 'cycle' && id !== 'recovery' && html`<h3>${group[0].title}</h3>`, draw(group)]), more);
  const latencies = (group) => [dots(group), isDetailed(group) ? histograms(group) : null];
  const latency = (kind, title, aid, ...more) => measured(kind, of(kind), title, `${aid} ${DOTS}`, latencies, ...more);
  const refused = [
    ...rows.flatMap(({ title, contestant, refused }) => refused.map((why) => `${title}: ${contestant}: ${why}`)),
    ...findings.refusals.map(([subject, why]) => `${subject}: ${why}`),
  ];
  return html`<h1>Locks compared</h1>
<div class="cards">${cards({ rows, pauses, findings })}</div>
${section('about', 'How it was measured', 'Compare ratios rather than times: times depend on the machine and the hour. This \
project\'s own recipes are in colour.', html`<dl>
<dt>date</dt><dd>${about.date}</dd>
<dt>command</dt><dd class="command">${about.command}</dd>
<dt>machine</dt><dd>${about.machine}</dd>
<dt>placement</dt><dd>${about.placement}</dd>
<dt>servers</dt><dd>${about.servers.map(({ name, version }) => `${name} ${version}`).join(', ')}</dd>
<dt>rounds</dt><dd>${about.rounds}; figures are their medians</dd>
<dt>echo</dt><dd>${time(about.echo_ns)}, the median round trip to a server that does nothing; multiples refer to it</dd>
</dl>`)}
${goals.length > 0 && section('goals', 'Goals', 'A goal holds if the median of the rounds meets it; the spread of the rounds shows \
how certain that is.', table(['figure', '#goal', '#median', '#rounds', 'holds'], goals.map(({ figure: of, goal, value, holds }) =>
    [of, goal, figure(value.median), `${figure(value.min)}–${figure(value.max)}`, holds ? badge('yes', 'yes') : badge('no', 'NO')])))}
${latency('cycle', 'How long does a free lock take?', 'One contender acquires and releases; both together are timed.')}
${latency('hand-over', 'How long from release to the next holder?', 'From one contender\'s call of release to the return of the \
next one\'s acquire.', growth(of('hand-over')))}
${shown !== undefined && section('turns', 'Who gets it?', 'A lock that serves in order gives all contenders the same number of \
grants, lets none overtake, and gives none two turns in a row while others wait.',
    grants(shown), fairness(of('hand-over')), lanes(shown))}
${latency('read-write', 'How long do readers and writers wait?', 'The duration of acquire, readers and writers together.')}
${latency('semaphore', 'How long does one of several leases take?', 'The duration of acquire where several contenders may hold a \
lease.')}
${latency('open-loop', 'How long does it take if requests arrive at a fixed rate?', 'From the time a request was due to the return \
of acquire: a stall counts for every request it delayed.')}
${measured('recovery', of('recovery'), 'How soon is a dead holder\'s lock free?', 'The holder\'s process is killed. The figure is \
the time from then until the next contender has the lock, as a multiple of the session or lease time-out. The dashed line is that \
time-out.', recovery)}
${measured('herd', of('herd'), 'How many contenders are woken for nothing?', 'Events are messages that the server sends unasked. If \
each release wakes all waiting contenders, their number grows with the number of contenders.', (group) => [
    bars(group, 'events per grant (from zero)', 'events', 'events_per_grant', countLabel),
    bars(group, 'bytes per grant, both ways (from zero)', 'bytes', 'bytes_per_grant', bytesLabel)])}
${measured('cpu', grouping(rows).filter(isDetailed).flat(), 'What does a lock cost in CPU time?', 'CPU time per grant, of the server \
and of the process with all contenders. A side that was not measured has no bar.', cpu)}
${pauses.length > 0 && section('pauses', 'What if the holder sleeps?', 'Nothing from the holder reaches the server for longer than \
its session or lease, and another contender gets the lock. A holder that is cut off keeps running and asks its client: a client \
that knows its time-out reports the loss in time. A paused holder does not run, and writes as soon as it runs again: with any lock, \
two contenders then believe that they have it, and only a resource that compares tokens refuses the late write.',
    table(['contestant', 'outage', '#timeout', '#next grant after', 'its client says', 'late write', 'judge'], pauses.map(pauseCells)))}
${rows.length > 0 && section('promises', 'What each lock promises', 'From the documentation of each, not measured. Compare speed \
only among locks with the same promises.', table(
    ['contestant', 'order', 'after a crash of the server', 'a dead holder\'s lock is free after', 'fencing token'],
    contestants.map((contestant) => rows.find((row) => row.contestant === contestant)).map((row) => [name(row),
      row.promises.fairness, row.promises.durability, row.promises.death, row.promises.has_token ? 'yes' : 'no'])))}
${section('judge', 'What the judge found', 'The judge sees only the history of each run. A question that was not checked does not \
count as passed.', html`<p class="tally">${tally(findings)}</p>`,
    findings.violations.map(({ subject, question, times, counterexample }) => html`<h3 class="no">${subject}: ${question}, VIOLATED ${
      times === 1 ? 'once' : `${times} times`}</h3><pre>${counterexample}</pre>`),
    findings.unchecked.map(({ question, why, subjects }) => html`<h3 class="open">${question} not checked: ${why}</h3>${
      list(subjects.map(([contestant, workloads]) => `${contestant}: ${workloads.join('; ')}`))}`),
    findings.unknown.length > 0 && html`<h3>Unknown outcomes</h3>${
      list(findings.unknown.map(([subject, count]) => `${subject}: ${count}`))}`)}
${refused.length > 0 && section('refused', 'Refused', null, list(refused))}
${results.not_run.length > 0 && section('not-run', 'Not run', null,
    list(results.not_run.map(({ what, why }) => `${what}: ${why}`)))}`;
};

const tally = ({ tally }) => tally.map(([word, count]) => `${count} ${word}`).join(', ') || 'nothing was judged';

/* Our recipe in two figures, and the judge's verdict on all contestants. */
const cards = ({ rows, pauses, findings }) => {
  const card = (what, large, small, style = '') => html`
<div class="card"><span class="what">${what}</span><b class="large${style}">${large}</b><span class="muted">${small}</span></div>`;
  const figures = [
    ['acquire and release, free lock', ({ kind }) => kind === 'cycle'],
    ['hand-over between 8 contenders', ({ kind, contenders }) => kind === 'hand-over' && contenders === 8],
  ].map(([what, isWanted]) => {
    const own = rows.filter((row) => row.is_ours && isWanted(row.workload));
    const row = own.find(({ contestant }) => contestant.endsWith('on minikeeper')) ?? own[0];
    return row !== undefined && row.p50_over_echo !== null && card(what, `${figure(row.p50_over_echo.median)} ×`,
      `the round trip to the echo; p50 ${time(row.p50_ns)}; ${row.contestant}`);
  });
  const count = Object.fromEntries(findings.tally);
  const all = findings.tally.reduce((sum, [, count]) => sum + count, 0);
  const own = [...rows, ...pauses].filter(({ is_ours, verdict }) => is_ours && verdict.word === 'VIOLATED').length;
  const what = 'the judge, over all runs';
  return [figures, count.VIOLATED
    ? card(what, `${count.VIOLATED} VIOLATED`, `${own || 'none'} by this project's recipes: ${tally(findings)}`, ' no')
    : card(what, `${count.holds ?? 0} of ${all}`, `hold in exclusion and fencing: ${tally(findings)}`)];
};

const pauseCells = (pause) => {
  const { contestant, outage, timeout_ms, granted_after_ms, belief, late_write_accepted: accepted, verdict } = pause;
  const written = accepted === null ? ['yes', 'none: it knew of the loss'] : accepted ? ['no', 'TAKEN'] : ['yes', 'refused'];
  const states = { holds: 'yes', VIOLATED: 'no' };
  const found = verdict.unknown === 0 ? verdict.word : `${verdict.word}, ${verdict.unknown} unknown`;
  return [name(pause), outage, `${timeout_ms} ms`, granted_after_ms === null ? 'never' : `${granted_after_ms} ms`,
    belief === 'no-answer' ? 'cannot be asked' : belief, badge(...written), badge(states[verdict.word] ?? 'open', found)];
};

if (typeof document !== 'undefined') {
  const results = JSON.parse(document.getElementById('results').textContent);
  document.title = `Locks compared, ${results.about.date}`;
  document.getElementById('page').innerHTML = page(results).text;
}
