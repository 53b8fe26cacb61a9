//! The questions a picture answers: how long, how it grows, what it costs.

use super::{multiple, number, section, time};
use crate::report::{
    Report, Row, Workload,
    markup::text_element,
    summary::{Word, groups},
    svg::{
        Looks,
        axis::{self, Axis},
        growth::{Series, growth},
        histograms::{Latencies, histograms},
        strips::{Marks, Strip, Strips},
    },
};

const DOTS_AID: &str = "The mark is the median, the whisker ends at p99; the scale is logarithmic, \
                        so equal distances are equal factors.";

/// A free lock.
pub(super) fn cycle(report: &Report, looks: &Looks) -> String {
    let mut body = String::new();
    for (_, rows) in of(report, |workload| workload == Workload::Cycle) {
        body += &dots(&rows, looks);
        body += &small_histograms(&rows, looks);
    }
    let heading = "How long does a lock take nobody else wants?";
    let aid = format!("One contender acquires and releases; both together are timed. {DOTS_AID}");
    section("cycle", heading, &aid, &body)
}

/// From one holder to the next.
pub(super) fn hand_over(report: &Report, looks: &Looks) -> String {
    let groups = of(report, |workload| matches!(workload, Workload::HandOver(_)));
    let shown = shown_contenders(&groups);
    let mut body = String::new();
    for (workload, rows) in &groups {
        body += &text_element("h3", &[], &workload.title());
        body += &dots(rows, looks);
        if Some(*workload) == shown {
            body += &small_histograms(rows, looks);
        }
    }
    if let Some(lines) = growth(&series(&groups, looks)) {
        let title = "Growth with the number of contenders";
        body += &text_element("h3", &[], title);
        let aid = "Both scales are logarithmic: a flat line does not care how many wait, one that \
                   rises tenfold where the contenders do pays for each of them.";
        body += &text_element("p", &[("class", "aid")], aid);
        body += &lines;
    }
    let heading = "How long from release to the next holder?";
    let aid = format!(
        "From one contender's call of release to the return of the next one's acquire. {DOTS_AID}"
    );
    section("hand-over", heading, &aid, &body)
}

/// The number of contenders whose details are shown: 8, or else the least above one.
pub(super) fn shown_contenders(groups: &[(Workload, Vec<&Row>)]) -> Option<Workload> {
    let contenders = groups.iter().filter_map(|(workload, _)| match workload {
        Workload::HandOver(contenders) => Some(*contenders),
        _ => None,
    });
    let shown = contenders.min_by_key(|&contenders| (contenders != 8, contenders < 2, contenders));
    shown.map(Workload::HandOver)
}

fn series(groups: &[(Workload, Vec<&Row>)], looks: &Looks) -> Vec<Series> {
    let mut all: Vec<Series> = Vec::new();
    for (workload, rows) in groups {
        let Workload::HandOver(contenders) = workload else {
            continue;
        };
        for row in rows {
            let Some(p50) = row.latency(|round| round.p50_ns) else {
                continue;
            };
            let point = (f64::from(*contenders), p50);
            match all.iter_mut().find(|series| series.name == row.contestant) {
                Some(series) => series.points.push(point),
                None => all.push(Series {
                    name: row.contestant.clone(),
                    look: looks.look(&row.contestant),
                    points: vec![point],
                }),
            }
        }
    }
    for series in &mut all {
        series.points.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    }
    all
}

/// Readers beside writers.
pub(super) fn read_write(report: &Report, looks: &Looks) -> String {
    let groups = of(report, |workload| {
        matches!(workload, Workload::ReadWrite { .. })
    });
    let aid = format!("How long acquire takes, readers and writers together. {DOTS_AID}");
    let heading = "How long do readers and writers wait?";
    section("read-write", heading, &aid, &dots_of_all(&groups, looks))
}

/// Several holders.
pub(super) fn semaphore(report: &Report, looks: &Looks) -> String {
    let groups = of(report, |workload| {
        matches!(workload, Workload::Semaphore { .. })
    });
    let aid = format!("How long acquire takes where several may hold. {DOTS_AID}");
    let heading = "How long for one of several leases?";
    section("semaphore", heading, &aid, &dots_of_all(&groups, looks))
}

/// Asks that do not wait for those before.
pub(super) fn open_loop(report: &Report, looks: &Looks) -> String {
    let groups = of(report, |workload| {
        matches!(workload, Workload::OpenLoop { .. })
    });
    let aid = format!(
        "From when an ask was due to the return of acquire: a stall is charged to every ask it \
         delayed. {DOTS_AID}"
    );
    let heading = "How long if asks come when they come?";
    section("open-loop", heading, &aid, &dots_of_all(&groups, looks))
}

fn dots_of_all(groups: &[(Workload, Vec<&Row>)], looks: &Looks) -> String {
    let parts = groups
        .iter()
        .map(|(workload, rows)| text_element("h3", &[], &workload.title()) + &dots(rows, looks));
    parts.collect()
}

/// After the holder's death.
pub(super) fn recovery(report: &Report, looks: &Looks) -> String {
    let mut body = String::new();
    for (_, rows) in of(report, |workload| workload == Workload::Recovery) {
        let spreads = rows.iter().filter_map(|row| row.over_timeout());
        let ends = spreads.map(|spread| spread.max).chain([1.0]);
        let strips = rows.iter().map(|row| {
            let spread = row.over_timeout();
            Strip {
                name: row.contestant.clone(),
                warning: warning(row),
                look: looks.look(&row.contestant),
                marks: Marks::Dot {
                    at: spread.map(|spread| spread.median),
                    whisker: spread.map(|spread| (spread.min, spread.max)),
                },
                cells: vec![
                    time(row.latency(|round| round.p50_ns)),
                    time(row.timeout_ns.filter(|ns| ns.is_finite())),
                    multiple(spread),
                ],
            }
        });
        let strips = Strips {
            title: "time-outs, whisker over all rounds (linear scale)",
            columns: &["p50", "timeout", "p50 / timeout"],
            axis: Some(Axis::linear(ends, axis::count)),
            reference: Some(1.0),
            rows: strips.collect(),
        };
        body += &strips.html();
    }
    let aid = "The holder's process is killed; from then until the next one has the lock, as a \
               multiple of the session or lease time-out, which the dashed line is.";
    section(
        "recovery",
        "How soon is a dead holder's lock free?",
        aid,
        &body,
    )
}

/// What a hand-over costs on the wire.
pub(super) fn herd(report: &Report, looks: &Looks) -> String {
    let mut body = String::new();
    for (workload, rows) in of(report, |workload| matches!(workload, Workload::Herd(_))) {
        body += &text_element("h3", &[], &workload.title());
        let bars = |title, column, label, figure: fn(&Row) -> Option<f64>| {
            let axis = Axis::linear(rows.iter().filter_map(|row| figure(row)), label);
            let strips = rows.iter().map(|row| Strip {
                name: row.contestant.clone(),
                warning: warning(row),
                look: looks.look(&row.contestant),
                marks: Marks::Bars(
                    figure(row)
                        .into_iter()
                        .map(|value| (value, "server"))
                        .collect(),
                ),
                cells: vec![number(figure(row))],
            });
            let strips = Strips {
                title,
                columns: &[column],
                axis: Some(axis),
                reference: None,
                rows: strips.collect(),
            };
            strips.html()
        };
        let events = |row: &Row| row.median(|round| round.events);
        let bytes = |row: &Row| row.median(|round| round.bytes);
        body += &bars("events a grant (from zero)", "events", axis::count, events);
        body += &bars(
            "bytes a grant, both ways (from zero)",
            "bytes",
            axis::bytes,
            bytes,
        );
    }
    let aid = "Events are what the server sends without being asked. Where each release wakes all \
               who wait, they grow with the number of contenders.";
    section("herd", "Who is woken for nothing?", aid, &body)
}

/// CPU time, both sides.
pub(super) fn cpu(report: &Report, looks: &Looks) -> String {
    let hand_overs = of(report, |workload| matches!(workload, Workload::HandOver(_)));
    let shown = shown_contenders(&hand_overs);
    let mut body = String::new();
    let groups = of(report, |workload| {
        workload == Workload::Cycle || Some(workload) == shown
    });
    for (workload, rows) in groups {
        let server = |row: &Row| row.median(|round| round.server_cpu_ns);
        let client = |row: &Row| row.median(|round| round.client_cpu_ns);
        let sums = rows.iter();
        let sums = sums.map(|row| server(row).unwrap_or(0.0) + client(row).unwrap_or(0.0));
        let axis = Axis::linear(sums, axis::time);
        let strips = rows.iter().map(|row| {
            let bars = [(server(row), "server"), (client(row), "client")];
            let bars = bars.into_iter();
            Strip {
                name: row.contestant.clone(),
                warning: warning(row),
                look: looks.look(&row.contestant),
                marks: Marks::Bars(bars.filter_map(|(of, what)| Some((of?, what))).collect()),
                cells: vec![time(server(row)), time(client(row))],
            }
        });
        let strips = Strips {
            title: "server (full) and client (light) (from zero)",
            columns: &["server", "client"],
            axis: Some(axis),
            reference: None,
            rows: strips.collect(),
        };
        body += &text_element("h3", &[], &workload.title());
        body += &strips.html();
    }
    let aid = "CPU time a grant, of the server and of the process with all contenders; a side \
               without a figure was not measured, and its bar is missing.";
    section("cpu", "What does a lock cost in CPU time?", aid, &body)
}

/// The groups of some workloads.
pub(super) fn of(
    report: &Report,
    is_wanted: impl Fn(Workload) -> bool,
) -> Vec<(Workload, Vec<&Row>)> {
    let groups = groups(report).into_iter();
    groups
        .filter(|(workload, _)| is_wanted(*workload))
        .collect()
}

/// Median and p99 of each contestant.
fn dots(rows: &[&Row], looks: &Looks) -> String {
    let ends = rows.iter().flat_map(|row| {
        let ends = [
            row.latency(|round| round.p50_ns),
            row.latency(|round| round.p99_ns),
        ];
        ends.into_iter().flatten()
    });
    let strips = rows.iter().map(|row| {
        let p50 = row.latency(|round| round.p50_ns);
        let p99 = row.latency(|round| round.p99_ns);
        Strip {
            name: row.contestant.clone(),
            warning: warning(row),
            look: looks.look(&row.contestant),
            marks: Marks::Dot {
                at: p50,
                whisker: p50.zip(p99),
            },
            cells: vec![time(p50), time(p99), multiple(row.over_echo())],
        }
    });
    let strips = Strips {
        title: "p50, whisker to p99 (log scale)",
        columns: &["p50", "p99", "p50 / echo"],
        axis: Axis::log(ends, axis::time),
        reference: None,
        rows: strips.collect(),
    };
    strips.html()
}

/// A word about a row whose lock may not have been one.
fn warning(row: &Row) -> Option<(&'static str, &'static str)> {
    let word = row.verdict.word();
    let badge = match word {
        Word::Holds | Word::ExclusionOnly => return None,
        Word::Violated => "no",
        Word::FencingOnly | Word::NotChecked | Word::Refused => "open",
    };
    Some((word.text(), badge))
}

fn small_histograms(rows: &[&Row], looks: &Looks) -> String {
    let latencies: Vec<_> = rows
        .iter()
        .map(|row| Latencies {
            name: &row.contestant,
            look: looks.look(&row.contestant),
            histogram: &row.latencies,
        })
        .collect();
    let aid = "All rounds together. Height is the share of all; all pictures have the same scales, \
               across logarithmic, and bars too low to be seen are one pixel high.";
    histograms(&latencies).map_or_else(String::new, |pictures| {
        text_element("p", &[("class", "aid")], aid) + &pictures
    })
}
