//! The report as one page: fills the template `page.html` with figures and positions on axes.
//! `page.html` takes its charts from `charts.html`.
//!
//! The page needs no script and no other file, is readable without colour, and contains the results
//! as JSON. Horizontal positions are hundredths of a chart's width, so that a chart fills its
//! column while its letters keep their size; vertical ones are pixels.

use std::collections::BTreeSet;

use hdrhistogram::Histogram;
use minijinja::{Environment, UndefinedBehavior};
use serde_json::{Value, json};

use super::{
    Figures, Hold, Report, Row, Workload,
    axis::{self, Axis},
    json::json as results,
    summary::{self, Findings, Word, figure, groups, is_ours, own_violations},
};
use crate::{
    judge::Verdict,
    stats::{Spread, as_f64, interpolated},
    table::{duration_ns, grouped, number as digits},
};

/// The text shown where nothing was measured.
const NONE: &str = "–";

/// The size of the hand-over whose details are shown, if it was measured.
const CONTENDERS: u32 = 8;

/// The heights of the histograms of latencies and of grants.
const HISTOGRAM_HEIGHT: f64 = 84.0;
const GRANTS_HEIGHT: f64 = 72.0;

/// The number of bars in a histogram of latencies.
const HISTOGRAM_BARS: usize = 56;

/// More contenders than this share bars.
const GRANTS_BARS_MAX: usize = 100;

/// The height of a contender's lane, the number of holds shown, and the number of contenders beyond
/// which only holders have a lane.
const LANE_HEIGHT: f64 = 13.0;
const HOLDS_MAX: usize = 60;
const LANES_OF_ALL_MAX: u32 = 24;

/// The chart of growth: its minimum height, the space above and below the lines, and the distance
/// between the names at the ends of lines.
const GROWTH_HEIGHT_MIN: f64 = 340.0;
const GROWTH_MARGIN: f64 = 10.0;
const NAME_HEIGHT: f64 = 17.0;

/// The marks of contestants as paths, the simplest first; the last two are strokes.
const MARKS: [&str; 7] = [
    "M-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0-9 0z",
    "M-4-4h8v8h-8z",
    "M0-5L5 4h-10z",
    "M0-5.5L5.5 0L0 5.5L-5.5 0z",
    "M0 5L5-4h-10z",
    "M-4-4L4 4M-4 4L4-4",
    "M-5 0h10M0-5v10",
];

/// Dash patterns of contestants' lines: the next one each time the marks are used up.
const DASHES: [&str; 4] = ["none", "6 3", "2 3", "9 3 2 3"];

/// The whole page.
#[must_use]
pub fn html(report: &Report) -> String {
    let page = Page::of(report);
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_trim_blocks(true);
    environment.set_lstrip_blocks(true);
    environment.add_filter("short", short);
    environment
        .add_template("page.css", include_str!("page.css"))
        .and_then(|()| environment.add_template("charts.html", include_str!("charts.html")))
        .and_then(|()| environment.add_template("page.html", include_str!("page.html")))
        .and_then(|()| environment.get_template("page.html")?.render(page.view()))
        .unwrap_or_else(|error| panic!("the template does not fit the report: {error:#}"))
}

/// Formats with two decimal places, without trailing zeros.
fn short(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Everything the template shows.
struct Page<'a> {
    report: &'a Report,
    groups: Vec<(Workload, Vec<&'a Row>)>,
    /// In the order in which they first appear; the order decides how they look in all charts.
    contestants: Vec<&'a str>,
    /// The hand-over whose details are shown.
    shown: Option<Workload>,
}

impl<'a> Page<'a> {
    fn of(report: &'a Report) -> Self {
        let mut contestants: Vec<&str> = Vec::new();
        for row in &report.rows {
            if !contestants.contains(&&*row.contestant) {
                contestants.push(&row.contestant);
            }
        }
        let groups = groups(report);
        let contenders = groups.iter().filter_map(|(workload, _)| match workload {
            Workload::HandOver(contenders) => Some(*contenders),
            _ => None,
        });
        let shown = contenders.min_by_key(|&count| (count != CONTENDERS, count < 2, count));
        Self {
            report,
            contestants,
            shown: shown.map(Workload::HandOver),
            groups,
        }
    }

    fn view(&self) -> Value {
        let is_hand_over = |workload| matches!(workload, Workload::HandOver(_));
        let shown = self.of_workloads(|workload| Some(workload) == self.shown);
        json!({
            "results": results(self.report),
            "about": self.about(),
            "cards": self.cards(),
            "goals": self.goals(),
            "cycle": self.dots_of(|workload| workload == Workload::Cycle),
            "hand_over": self.dots_of(is_hand_over),
            "growth": self.growth(),
            "grants": shown.first().map(|(workload, rows)| self.grants(*workload, rows)),
            "fairness": self.fairness(&self.of_workloads(is_hand_over)),
            "lanes": shown.first().map(|(workload, rows)| self.lanes(*workload, rows)),
            "read_write": self.dots_of(|workload| matches!(workload, Workload::ReadWrite { .. })),
            "semaphore": self.dots_of(|workload| matches!(workload, Workload::Semaphore { .. })),
            "open_loop": self.dots_of(|workload| matches!(workload, Workload::OpenLoop { .. })),
            "recovery": self.recovery(),
            "herd": self.herd(),
            "cpu": self.cpu(),
            "pauses": self.pauses(),
            "promises": self.promises(),
            "judge": judge(self.report),
            "refused": refused(self.report),
            "not_run": self.report.not_run.iter()
                .map(|not_run| format!("{}: {}", not_run.what, not_run.why))
                .collect::<Vec<_>>(),
        })
    }

    fn of_workloads(&self, is_wanted: impl Fn(Workload) -> bool) -> Vec<(Workload, Vec<&'a Row>)> {
        let groups = self.groups.iter();
        groups
            .filter(|(workload, _)| is_wanted(*workload))
            .cloned()
            .collect()
    }

    /// A contestant's name, and how it looks in all charts.
    fn contestant(&self, name: &str) -> Value {
        let at = self.contestants.iter().position(|of| *of == name);
        let at = at.unwrap_or(self.contestants.len());
        let mark = at % MARKS.len();
        json!({
            "name": name,
            "ours": is_ours(name),
            "mark": MARKS[mark],
            "stroke": mark >= 5,
            "dash": DASHES[at / MARKS.len() % DASHES.len()],
        })
    }

    fn about(&self) -> Value {
        let about = &self.report.about;
        let servers = about.servers.iter();
        let servers: Vec<_> = servers
            .map(|(name, version)| format!("{name} {version}"))
            .collect();
        let echo = time(Some(about.echo_ns).filter(|ns| ns.is_finite()));
        json!({ "servers": servers.join(", "), "echo": echo })
    }

    /// Our recipe in two figures, and the judge's verdict on all contestants.
    fn cards(&self) -> Vec<Value> {
        let figures = [
            (Workload::Cycle, "acquire and release, free lock"),
            (
                Workload::HandOver(CONTENDERS),
                "hand-over between 8 contenders",
            ),
        ];
        let mut cards: Vec<_> = figures
            .into_iter()
            .filter_map(|(workload, what)| {
                let row = self.ours(workload)?;
                let multiple = figure(row.over_echo()?.median);
                let p50 = time(row.latency(|round| round.p50_ns));
                Some(json!({
                    "what": what,
                    "large": format!("{multiple} ×"),
                    "bad": false,
                    "small": format!("the round trip to the echo; p50 {p50}; {}", row.contestant),
                }))
            })
            .collect();
        let findings = Findings::of(self.report);
        let count = |of| findings.tally.iter().find(|(word, _)| *word == of);
        let all: usize = findings.tally.iter().map(|(_, count)| count).sum();
        let holds = count(Word::Holds).map_or(0, |(_, count)| *count);
        let (large, small) = match count(Word::Violated) {
            Some((_, violated)) => (
                format!("{violated} VIOLATED"),
                match own_violations(self.report) {
                    0 => "none by this project's recipes".to_owned(),
                    own => format!("{own} by this project's recipes"),
                },
            ),
            None => (
                format!("{holds} of {all}"),
                "hold in exclusion and fencing".to_owned(),
            ),
        };
        cards.push(json!({
            "what": "the judge, over all runs",
            "large": large,
            "bad": count(Word::Violated).is_some(),
            "small": format!("{small}: {}", findings.text()),
        }));
        cards
    }

    /// Our row for a workload: on minikeeper if there is one.
    fn ours(&self, workload: Workload) -> Option<&Row> {
        let rows = || self.report.rows.iter();
        let ours = || rows().filter(move |row| row.workload == workload && row.is_ours());
        let mut at_home = ours().filter(|row| row.contestant.ends_with("on minikeeper"));
        at_home.next().or_else(|| ours().next())
    }

    fn goals(&self) -> Vec<Value> {
        let goals = self.report.goals.iter();
        goals
            .map(|goal| {
                let [median, min, max] =
                    [goal.value.median, goal.value.min, goal.value.max].map(figure);
                json!({
                    "figure": goal.figure,
                    "goal": goal.goal,
                    "median": median,
                    "rounds": format!("{min}–{max}"),
                    "holds": goal.holds,
                })
            })
            .collect()
    }

    /// Median and p99 of each contestant, workload by workload.
    fn dots_of(&self, is_wanted: impl Fn(Workload) -> bool) -> Vec<Value> {
        let groups = self.of_workloads(is_wanted).into_iter();
        groups
            .map(|(workload, rows)| {
                let has_details = workload == Workload::Cycle || Some(workload) == self.shown;
                json!({
                    // The cycle has its own section.
                    "title": (workload != Workload::Cycle).then(|| workload.title()),
                    "strips": self.dots(&rows),
                    "histograms": has_details.then(|| self.histograms(&rows)),
                })
            })
            .collect()
    }

    fn dots(&self, rows: &[&Row]) -> Value {
        let p50 = |row: &Row| row.latency(|round| round.p50_ns);
        let p99 = |row: &Row| row.latency(|round| round.p99_ns);
        let ends = rows.iter().flat_map(|row| [p50(row), p99(row)]);
        let axis = Axis::log(ends.flatten(), axis::time);
        let strips = rows.iter().map(|row| {
            let (p50, p99) = (p50(row), p99(row));
            let cells = [time(p50), time(p99), multiple(row.over_echo())];
            self.strip(row, axis.as_ref(), p50, p50.zip(p99), &[], &cells)
        });
        json!({
            "title": "p50, whisker to p99 (log scale)",
            "columns": ["p50", "p99", "p50 / echo"],
            "ticks": ticks(axis.as_ref(), 1),
            "reference": null,
            "rows": strips.collect::<Vec<_>>(),
        })
    }

    /// One contestant's row in a table whose second column is a chart: a dot with a whisker, or
    /// bars one after the other from zero.
    fn strip(
        &self,
        row: &Row,
        axis: Option<&Axis>,
        dot: Option<f64>,
        whisker: Option<(f64, f64)>,
        bars: &[(Option<f64>, &str)],
        cells: &[String],
    ) -> Value {
        let percent = |value: f64| axis.and_then(|axis| axis.percent(value));
        let whisker = whisker.and_then(|(from, to)| Some([percent(from)?, percent(to)?]));
        let mut sum = 0.0;
        let bars: Vec<_> = bars
            .iter()
            .filter_map(|(value, class)| {
                let (from, to) = (percent(sum)?, percent(sum + (*value)?)?);
                sum += (*value)?;
                Some(json!({ "x": from, "width": (to - from).max(0.0), "class": class }))
            })
            .collect();
        json!({
            "contestant": self.contestant(&row.contestant),
            "warning": warning(row.verdict.word()),
            "dot": dot.and_then(percent),
            "whisker": whisker,
            "bars": bars,
            "cells": cells,
        })
    }

    /// Latencies, one chart per contestant, all over the same logarithmic axis and equally high.
    fn histograms(&self, rows: &[&Row]) -> Value {
        let recorded = rows.iter().filter(|row| !row.latencies.is_empty());
        let ends = recorded.flat_map(|row| {
            let bounds = [row.latencies.min(), row.latencies.max()];
            bounds.map(|value| as_f64(value.max(1)))
        });
        let Some(axis) = Axis::log(ends, axis::time) else {
            return Value::Null;
        };
        let shares: Vec<_> = rows
            .iter()
            .map(|row| latency_shares(&row.latencies, &axis))
            .collect();
        let peak = shares.iter().flatten().copied().fold(0.0, f64::max);
        let width = (axis::PERCENT_MAX - axis::PERCENT_MIN) / as_f64(HISTOGRAM_BARS as u64);
        let figures = rows.iter().zip(&shares).map(|(row, shares)| {
            let bars = (0u64..).zip(shares).filter(|(_, share)| **share > 0.0);
            let bars = bars.map(|(at, share)| {
                // High enough to be seen: readers look for the tail.
                let height = (share / peak * (HISTOGRAM_HEIGHT - 4.0)).max(1.0);
                json!({
                    "x": width.mul_add(as_f64(at), axis::PERCENT_MIN),
                    "width": width,
                    "height": height,
                    "title": format!("{} % of all", digits(share * 100.0)),
                })
            });
            let caption = if row.latencies.is_empty() {
                "nothing recorded".to_owned()
            } else {
                let [p50, p99] = [0.5, 0.99].map(|of| interpolated(&row.latencies, of));
                format!("p50 {}, p99 {}", time(Some(p50)), time(Some(p99)))
            };
            json!({
                "contestant": self.contestant(&row.contestant),
                "caption": caption,
                "label": format!("Histogram of latencies, {}: {caption}", row.contestant),
                "bars": bars.collect::<Vec<_>>(),
            })
        });
        json!({
            "height": HISTOGRAM_HEIGHT,
            "fair": null,
            // Not all labels of a wide axis fit below a small chart.
            "ticks": ticks(Some(&axis), 3),
            "figures": figures.collect::<Vec<_>>(),
        })
    }

    /// Lines over the number of contenders, each with its name at its end; null if fewer than two
    /// numbers of contenders were measured.
    fn growth(&self) -> Value {
        let mut series: Vec<(&str, Vec<(f64, f64)>)> = Vec::new();
        for (workload, rows) in &self.groups {
            let Workload::HandOver(contenders) = workload else {
                continue;
            };
            for row in rows {
                let Some(p50) = row.latency(|round| round.p50_ns) else {
                    continue;
                };
                let point = (f64::from(*contenders), p50);
                match series.iter_mut().find(|(name, _)| *name == row.contestant) {
                    Some((_, points)) => points.push(point),
                    None => series.push((&row.contestant, vec![point])),
                }
            }
        }
        let points = || series.iter().flat_map(|(_, points)| points).copied();
        let mut counts: Vec<f64> = points().map(|(x, _)| x).filter(|x| *x >= 1.0).collect();
        counts.sort_by(f64::total_cmp);
        counts.dedup();
        let across = Axis::log_at(&counts, axis::count);
        let down = Axis::log(points().map(|(_, y)| y), axis::time);
        let (Some(across), Some(down)) = (across, down) else {
            return Value::Null;
        };
        let names = NAME_HEIGHT * as_f64(series.len() as u64);
        let height = GROWTH_HEIGHT_MIN.max(2.0f64.mul_add(GROWTH_MARGIN, names));
        let y = |value| {
            let share = down.share(value)?;
            Some((1.0 - share).mul_add(2.0f64.mul_add(-GROWTH_MARGIN, height), GROWTH_MARGIN))
        };
        let mut lines = Vec::new();
        for (name, points) in &mut series {
            points.sort_by(|(a, _), (b, _)| a.total_cmp(b));
            let places: Vec<_> = points
                .iter()
                .filter_map(|&(at, ns)| {
                    let value = time(Some(ns));
                    let title = format!("{name}: {value} with {at} contenders");
                    Some(json!({ "x": across.percent(at)?, "y": y(ns)?, "title": title }))
                })
                .collect();
            let end = places.last().and_then(|place| place["y"].as_f64());
            if let Some(end) = end {
                lines.push((end, self.contestant(name), places));
            }
        }
        lines.sort_by(|(a, ..), (b, ..)| a.total_cmp(b));
        let wanted: Vec<_> = lines.iter().map(|(end, ..)| *end).collect();
        let lines = lines.into_iter().zip(apart(&wanted, height));
        let lines = lines.map(|((_, contestant, points), name_y)| {
            json!({ "contestant": contestant, "points": points, "name_y": name_y })
        });
        let down_ticks = down.ticks.iter().filter_map(|tick| {
            let y = y(tick.value)?;
            Some(json!({ "y": y, "label": tick.label }))
        });
        let letters = series.iter().map(|(name, _)| name.chars().count());
        let letters = letters.max().unwrap_or(0).min(50);
        json!({
            "height": height,
            // About as wide as the longest name and its sample of line; the lines get the rest.
            "names_width": 7.8f64.mul_add(as_f64(letters as u64), 48.0),
            "ticks": ticks(Some(&across), 1),
            "down": down_ticks.collect::<Vec<_>>(),
            "lines": lines.collect::<Vec<_>>(),
        })
    }

    /// How often each contender got the lock, in fair shares, so that fast and slow locks can be
    /// compared.
    fn grants(&self, workload: Workload, rows: &[&Row]) -> Value {
        let shares: Vec<_> = rows.iter().map(|row| fair_shares(&row.grants)).collect();
        if shares.iter().all(Vec::is_empty) {
            return Value::Null;
        }
        // Space for a bar a little above the fair share.
        let peak = shares.iter().flatten().copied().fold(1.25, f64::max);
        let figures = rows.iter().zip(&shares);
        let figures = figures.filter(|(_, shares)| !shares.is_empty());
        let figures = figures.map(|(row, shares)| {
            let width = 100.0 / as_f64(shares.len() as u64);
            let gap = if shares.len() > 40 { 0.0 } else { width * 0.15 };
            let bars = (0u64..).zip(shares).map(|(at, share)| {
                json!({
                    "x": width.mul_add(as_f64(at), gap),
                    "width": 2.0f64.mul_add(-gap, width),
                    "height": share / peak * GRANTS_HEIGHT,
                    "title": format!("{} of the fair share", digits(*share)),
                })
            });
            let jain = number(row.median(|round| round.jain));
            let least = row.grants.iter().min().copied().unwrap_or(0);
            let most = row.grants.iter().max().copied().unwrap_or(0);
            let [least, most] = [least, most].map(|count| grouped(as_f64(count)));
            let caption = format!("Jain {jain}; from {least} to {most} grants");
            json!({
                "contestant": self.contestant(&row.contestant),
                "label": format!("Grants per contender, {}: {caption}", row.contestant),
                "caption": caption,
                "bars": bars.collect::<Vec<_>>(),
            })
        });
        json!({
            "title": workload.title(),
            "height": GRANTS_HEIGHT,
            "fair": GRANTS_HEIGHT - GRANTS_HEIGHT / peak,
            "ticks": [],
            "figures": figures.collect::<Vec<_>>(),
        })
    }

    /// The three figures of fairness, by number of contenders.
    fn fairness(&self, groups: &[(Workload, Vec<&'a Row>)]) -> Value {
        type Pick = fn(&Figures) -> Option<f64>;
        let figures: [Pick; 3] = [
            |round| round.jain,
            |round| round.inversions,
            |round| round.regrabs,
        ];
        let contenders = groups.iter().filter_map(|(workload, _)| match workload {
            Workload::HandOver(contenders) => Some(grouped(f64::from(*contenders))),
            _ => None,
        });
        let rows = self.contestants.iter().filter_map(|contestant| {
            let of = |rows: &[&'a Row]| {
                let mut rows = rows.iter().copied();
                rows.find(|row| row.contestant == *contestant)
            };
            groups.iter().find_map(|(_, rows)| of(rows))?;
            let values = figures.map(|figure| {
                let values = groups.iter();
                let values =
                    values.map(|(_, rows)| number(of(rows).and_then(|row| row.median(figure))));
                values.collect::<Vec<_>>()
            });
            Some(json!({ "contestant": self.contestant(contestant), "figures": values }))
        });
        json!({
            "contenders": contenders.collect::<Vec<_>>(),
            "rows": rows.collect::<Vec<_>>(),
        })
    }

    /// Which contender held the lock when.
    fn lanes(&self, workload: Workload, rows: &[&Row]) -> Value {
        let Workload::HandOver(contenders) = workload else {
            return Value::Null;
        };
        let figures = rows.iter().filter_map(|row| {
            let mut figure = lanes(&row.timeline, contenders)?;
            figure["contestant"] = self.contestant(&row.contestant);
            Some(figure)
        });
        let figures: Vec<_> = figures.collect();
        if figures.is_empty() {
            return Value::Null;
        }
        json!({ "title": workload.title(), "holds_max": HOLDS_MAX, "figures": figures })
    }

    fn recovery(&self) -> Vec<Value> {
        let groups = self.of_workloads(|workload| workload == Workload::Recovery);
        let strips = groups.into_iter().map(|(_, rows)| {
            let spreads = rows.iter().filter_map(|row| row.over_timeout());
            let axis = Axis::linear(spreads.map(|spread| spread.max).chain([1.0]), axis::count);
            let strips = rows.iter().map(|row| {
                let spread = row.over_timeout();
                let cells = [
                    time(row.latency(|round| round.p50_ns)),
                    time(row.timeout_ns.filter(|ns| ns.is_finite())),
                    multiple(spread),
                ];
                let dot = spread.map(|spread| spread.median);
                let whisker = spread.map(|spread| (spread.min, spread.max));
                self.strip(row, Some(&axis), dot, whisker, &[], &cells)
            });
            json!({
                "title": "time-outs, whisker over all rounds (linear scale)",
                "columns": ["p50", "timeout", "p50 / timeout"],
                "ticks": ticks(Some(&axis), 1),
                "reference": axis.percent(1.0),
                "rows": strips.collect::<Vec<_>>(),
            })
        });
        strips.collect()
    }

    fn herd(&self) -> Vec<Value> {
        let groups = self.of_workloads(|workload| matches!(workload, Workload::Herd(_)));
        let bars = |rows: &[&Row], title, column, label, pick: fn(&Figures) -> Option<f64>| {
            let axis = Axis::linear(rows.iter().filter_map(|row| row.median(pick)), label);
            let strips = rows.iter().map(|row| {
                let value = row.median(pick);
                let bars = [(value, "")];
                self.strip(row, Some(&axis), None, None, &bars, &[number(value)])
            });
            json!({
                "title": title,
                "columns": [column],
                "ticks": ticks(Some(&axis), 1),
                "reference": null,
                "rows": strips.collect::<Vec<_>>(),
            })
        };
        let groups = groups.into_iter().map(|(workload, rows)| {
            let bytes = "bytes per grant, both ways (from zero)";
            json!({
                "title": workload.title(),
                "events": bars(&rows, "events per grant (from zero)", "events", axis::count, |round| round.events),
                "bytes": bars(&rows, bytes, "bytes", axis::bytes, |round| round.bytes),
            })
        });
        groups.collect()
    }

    fn cpu(&self) -> Vec<Value> {
        let groups = self
            .of_workloads(|workload| workload == Workload::Cycle || Some(workload) == self.shown);
        let groups = groups.into_iter().map(|(workload, rows)| {
            let server = |row: &Row| row.median(|round| round.server_cpu_ns);
            let client = |row: &Row| row.median(|round| round.client_cpu_ns);
            let sums = rows.iter();
            let sums = sums.map(|row| server(row).unwrap_or(0.0) + client(row).unwrap_or(0.0));
            let axis = Axis::linear(sums, axis::time);
            let strips = rows.iter().map(|row| {
                let bars = [(server(row), ""), (client(row), " client")];
                let cells = [time(server(row)), time(client(row))];
                self.strip(row, Some(&axis), None, None, &bars, &cells)
            });
            let strips = json!({
                "title": "server (full) and client (light) (from zero)",
                "columns": ["server", "client"],
                "ticks": ticks(Some(&axis), 1),
                "reference": null,
                "rows": strips.collect::<Vec<_>>(),
            });
            json!({ "title": workload.title(), "strips": strips })
        });
        groups.collect()
    }

    fn pauses(&self) -> Vec<Value> {
        let pauses = self.report.pauses.iter();
        let pauses = pauses.map(|pause| {
            json!({
                "contestant": self.contestant(&pause.contestant),
                "outage": pause.outage.name(),
                "timeout": format!("{} ms", pause.timeout_ms),
                "granted": pause.granted_after_ms
                    .map_or_else(|| "never".into(), |ms| format!("{ms} ms")),
                "belief": pause.belief.text(),
                "late_write_accepted": pause.late_write_accepted,
                "verdict": verdict(&pause.verdict),
            })
        });
        pauses.collect()
    }

    fn promises(&self) -> Vec<Value> {
        let contestants = self.contestants.iter();
        let promises = contestants.filter_map(|contestant| {
            let mut rows = self.report.rows.iter();
            let row = rows.find(|row| row.contestant == **contestant)?;
            Some(json!({
                "contestant": self.contestant(contestant),
                "order": row.promises.fairness.text(),
                "durability": row.promises.durability,
                "death": row.promises.death,
                "token": row.promises.has_token,
            }))
        });
        promises.collect()
    }
}

/// The ticks of a horizontal axis. If there are more labels than fit, only some are written.
fn ticks(axis: Option<&Axis>, labels_max: usize) -> Vec<Value> {
    let Some(axis) = axis else {
        return Vec::new();
    };
    let labelled = axis.ticks.iter().filter(|tick| tick.label.is_some());
    let every = match labels_max {
        1 => 1,
        max => labelled.count().div_ceil(max).max(1),
    };
    let mut seen = 0;
    let ticks = axis.ticks.iter().filter_map(|tick| {
        let is_written = tick.label.is_some() && seen % every == 0;
        seen += usize::from(tick.label.is_some());
        Some(json!({
            "x": axis.percent(tick.value)?,
            "main": tick.label.is_some(),
            "label": tick.label.as_ref().filter(|_| is_written),
        }))
    });
    ticks.collect()
}

/// The share of all latencies in each part of the axis.
fn latency_shares(histogram: &Histogram<u64>, axis: &Axis) -> [f64; HISTOGRAM_BARS] {
    let mut shares = [0.0; HISTOGRAM_BARS];
    let all = as_f64(histogram.len()).max(1.0);
    for bucket in histogram.iter_recorded() {
        let share = axis.share(as_f64(bucket.value_iterated_to().max(1)));
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share lies between 0 and 1"
        )]
        let at = (share.unwrap_or(0.0) * as_f64(HISTOGRAM_BARS as u64)) as usize;
        shares[at.min(HISTOGRAM_BARS - 1)] += as_f64(bucket.count_at_value()) / all;
    }
    shares
}

/// Grants divided by their mean, the most first; neighbours share a bar if there are too many.
/// Empty if there are none.
fn fair_shares(grants: &[u64]) -> Vec<f64> {
    let mut sorted: Vec<f64> = grants.iter().copied().map(as_f64).collect();
    sorted.sort_by(|a, b| b.total_cmp(a));
    let all: f64 = sorted.iter().sum();
    if all <= 0.0 {
        return Vec::new();
    }
    let fair = all / as_f64(sorted.len() as u64);
    let together = sorted.len().div_ceil(GRANTS_BARS_MAX);
    let bars = sorted.chunks(together);
    bars.map(|part| part.iter().sum::<f64>() / as_f64(part.len() as u64) / fair)
        .collect()
}

/// Positions near the wanted ones, at least the height of a name apart.
fn apart(wanted: &[f64], height: f64) -> Vec<f64> {
    let mut places: Vec<f64> = wanted.to_vec();
    // Down from the top, then up from the bottom: names beyond the end move back.
    let mut least = NAME_HEIGHT / 2.0;
    for place in &mut places {
        *place = place.max(least);
        least = *place + NAME_HEIGHT;
    }
    let mut most = height - NAME_HEIGHT / 2.0;
    for place in places.iter_mut().rev() {
        *place = place.min(most);
        most = *place - NAME_HEIGHT;
    }
    places
}

/// One lane per contender, with its waiting and holding times; `None` if there are no holds.
fn lanes(timeline: &[Hold], contenders: u32) -> Option<Value> {
    let mut holds = timeline.to_vec();
    holds.sort_by_key(|hold| hold.granted_ns);
    let later = holds.split_off(holds.len().min(HOLDS_MAX));
    let begin = holds.first()?.granted_ns;
    let ends = holds
        .iter()
        .map(|hold| hold.released_ns.max(hold.granted_ns));
    let end = ends.max()?;
    let axis = Axis::until(as_f64(end.saturating_sub(begin)).max(1.0), axis::time);
    let mut contenders: BTreeSet<u32> = match contenders {
        few @ ..=LANES_OF_ALL_MAX => (0..few).collect(),
        _ => BTreeSet::new(),
    };
    contenders.extend(holds.iter().map(|hold| hold.contender));
    let x = |ns: u64| {
        axis.percent(as_f64(ns.saturating_sub(begin)))
            .unwrap_or(0.0)
    };
    let lanes = (0u64..).zip(&contenders).map(|(lane, contender)| {
        let own = || holds.iter().filter(|hold| hold.contender == *contender);
        let waits = own().map(|hold| [x(hold.asked_ns), x(hold.granted_ns)]);
        let waiting = later.iter().find(|hold| hold.contender == *contender);
        let waiting = waiting.filter(|hold| hold.asked_ns < end);
        let waits = waits.chain(waiting.map(|hold| [x(hold.asked_ns), x(end)]));
        let held = own().map(|hold| {
            let from = x(hold.granted_ns);
            // Wide enough to be seen, however short.
            let to = x(hold.releasing_ns.max(hold.granted_ns)).max(from + 0.4);
            let [waited, held] = [
                hold.granted_ns.saturating_sub(hold.asked_ns),
                hold.releasing_ns.saturating_sub(hold.granted_ns),
            ]
            .map(|ns| duration_ns(as_f64(ns)));
            let title = format!("contender {contender} waited {waited} and held {held}");
            json!({ "x": from, "width": to - from, "title": title })
        });
        json!({
            "contender": contender,
            "y": LANE_HEIGHT * (as_f64(lane) + 0.5),
            "waits": waits.collect::<Vec<_>>(),
            "holds": held.collect::<Vec<_>>(),
        })
    });
    let count = contenders.len();
    Some(json!({
        "height": LANE_HEIGHT * as_f64(count as u64),
        "label": format!("{} holds of {count} contenders", holds.len()),
        "ticks": ticks(Some(&axis), 5),
        "lanes": lanes.collect::<Vec<_>>(),
    }))
}

/// The tally of verdicts, and all that did not pass.
fn judge(report: &Report) -> Value {
    let findings = Findings::of(report);
    let violations = findings.violations.iter().map(|violation| {
        json!({
            "title": format!("{}: {}, {}", violation.subject, violation.question, violation.text()),
            "counterexample": violation.counterexample,
        })
    });
    let unchecked = findings.unchecked.iter().map(|unchecked| {
        let subjects = unchecked.subjects.iter();
        let subjects = subjects
            .map(|(contestant, workloads)| format!("{contestant}: {}", workloads.join("; ")));
        json!({
            "title": format!("{} not checked: {}", unchecked.question, unchecked.why),
            "subjects": subjects.collect::<Vec<_>>(),
        })
    });
    let unknown = findings.unknown.iter();
    let unknown = unknown.map(|(subject, count)| format!("{subject}: {count}"));
    json!({
        "tally": findings.text(),
        "violations": violations.collect::<Vec<_>>(),
        "unchecked": unchecked.collect::<Vec<_>>(),
        "unknown": unknown.collect::<Vec<_>>(),
    })
}

/// Rounds and runs whose figures are not published, each with the reason.
fn refused(report: &Report) -> Vec<String> {
    let rounds = report.rows.iter().flat_map(|row| {
        let subject = format!("{}: {}", row.workload.title(), row.contestant);
        let refused = row.refused.iter();
        refused.map(move |why| format!("{subject}: {why}"))
    });
    let runs = Findings::of(report).refusals.into_iter();
    rounds
        .chain(runs.map(|(subject, why)| format!("{subject}: {why}")))
        .collect()
}

/// A warning for a row whose lock may not have been exclusive.
fn warning(word: Word) -> Value {
    match word {
        Word::Holds | Word::ExclusionOnly => Value::Null,
        Word::Violated => json!({ "text": word.text(), "state": "no" }),
        Word::FencingOnly | Word::NotChecked | Word::Refused => {
            json!({ "text": word.text(), "state": "open" })
        }
    }
}

fn verdict(verdict: &Verdict) -> Value {
    let state = match verdict.word() {
        Word::Holds => "yes",
        Word::Violated => "no",
        _ => "open",
    };
    json!({ "text": verdict.text(), "state": state })
}

fn number(value: Option<f64>) -> String {
    value.map_or_else(|| NONE.into(), figure)
}

fn time(ns: Option<f64>) -> String {
    let text = ns.map_or_else(|| NONE.into(), summary::duration);
    text.replace(" us", " µs")
}

/// `2.31 × (2.20–2.45)`.
fn multiple(spread: Option<Spread>) -> String {
    spread.map_or_else(
        || NONE.into(),
        |Spread { median, min, max }| {
            let [median, min, max] = [median, min, max].map(figure);
            format!("{median} × ({min}–{max})")
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_sorted_and_bounded_in_number() {
        assert_eq!(fair_shares(&[1, 3]), [1.5, 0.5]);
        assert!(fair_shares(&[0, 0]).is_empty());
        assert!(fair_shares(&[]).is_empty());
        let many: Vec<u64> = (0..1000).collect();
        assert_eq!(fair_shares(&many).len(), GRANTS_BARS_MAX);
    }

    #[test]
    fn names_keep_apart_and_inside() {
        let places = apart(&[100.0, 101.0, 102.0, 199.0, 200.0], 200.0);
        assert!(
            places
                .windows(2)
                .all(|pair| pair[1] - pair[0] >= NAME_HEIGHT)
        );
        assert!(places.iter().all(|place| (0.0..200.0).contains(place)));
        assert_eq!(apart(&[50.0, 150.0], 200.0), [50.0, 150.0]);
    }
}
