//! The report for the terminal: tables of medians, then all that did not pass.

use super::{
    Report, Row, Workload,
    summary::{self, Findings, figure, groups},
};
use crate::{stats::Spread, table::Table};

/// The text shown where nothing was measured.
const NONE: &str = "-";

/// The whole report.
#[must_use]
pub fn text(report: &Report) -> String {
    let parts = [
        about(report),
        workloads(report),
        pauses(report),
        goals(report),
        findings(report),
        list(
            "Refused rounds",
            report.rows.iter().flat_map(|row| {
                let subject = format!("{}: {}", row.workload.title(), row.contestant);
                row.refused
                    .iter()
                    .map(move |why| (subject.clone(), why.as_str()))
            }),
        ),
        list(
            "Not run",
            report
                .not_run
                .iter()
                .map(|not_run| (not_run.what.clone(), not_run.why.as_str())),
        ),
    ];
    let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join("\n")
}

fn about(report: &Report) -> String {
    let about = &report.about;
    let servers = about.servers.iter();
    let servers: Vec<_> = servers
        .map(|(name, version)| format!("{name} {version}"))
        .collect();
    format!(
        "{}  {}\n{}; {}\n{}\nMedians of {} rounds; echo {}.\n",
        about.date,
        about.command,
        about.machine,
        about.placement,
        servers.join(", "),
        about.rounds,
        duration(Some(about.echo_ns).filter(|ns| ns.is_finite())),
    )
}

fn workloads(report: &Report) -> String {
    let tables = groups(report).into_iter().map(|(workload, rows)| {
        let table = match workload {
            Workload::Herd(_) => herd(&rows),
            Workload::Recovery => recovery(&rows),
            _ => latencies(&rows),
        };
        format!("{}\n{}", workload.title(), table.text())
    });
    tables.collect::<Vec<_>>().join("\n")
}

fn latencies(rows: &[&Row]) -> Table {
    let mut table = Table::new(&[
        "contestant",
        "p50",
        "p90",
        "p99",
        "p99.9",
        "max",
        "p50 / echo",
        "grants/s",
        "Jain",
        "inversions",
        "regrabs",
        "server CPU",
        "client CPU",
        "verdict",
    ])
    .left(13);
    for row in rows {
        table.row(vec![
            row.contestant.clone(),
            duration(row.latency(|round| round.p50_ns)),
            duration(row.latency(|round| round.p90_ns)),
            duration(row.latency(|round| round.p99_ns)),
            duration(row.latency(|round| round.p999_ns)),
            duration(row.latency(|round| round.max_ns)),
            spread(row.over_echo()),
            count(row.median(|round| Some(round.rate))),
            count(row.median(|round| round.jain)),
            count(row.median(|round| round.inversions)),
            count(row.median(|round| round.regrabs)),
            duration(row.median(|round| round.server_cpu_ns)),
            duration(row.median(|round| round.client_cpu_ns)),
            row.verdict.text(),
        ]);
    }
    table
}

fn recovery(rows: &[&Row]) -> Table {
    let heading = [
        "contestant",
        "p50",
        "max",
        "timeout",
        "p50 / timeout",
        "verdict",
    ];
    let mut table = Table::new(&heading).left(5);
    for row in rows {
        table.row(vec![
            row.contestant.clone(),
            duration(row.latency(|round| round.p50_ns)),
            duration(row.latency(|round| round.max_ns)),
            duration(row.timeout_ns.filter(|ns| ns.is_finite())),
            spread(row.over_timeout()),
            row.verdict.text(),
        ]);
    }
    table
}

fn herd(rows: &[&Row]) -> Table {
    let heading = [
        "contestant",
        "events/grant",
        "bytes/grant",
        "server CPU",
        "verdict",
    ];
    let mut table = Table::new(&heading).left(4);
    for row in rows {
        table.row(vec![
            row.contestant.clone(),
            count(row.median(|round| round.events)),
            count(row.median(|round| round.bytes)),
            duration(row.median(|round| round.server_cpu_ns)),
            row.verdict.text(),
        ]);
    }
    table
}

fn pauses(report: &Report) -> String {
    if report.pauses.is_empty() {
        return String::new();
    }
    let mut table = Table::new(&[
        "contestant",
        "outage",
        "timeout",
        "next grant after",
        "client says",
        "late write",
        "verdict",
    ])
    .left(1)
    .left(4)
    .left(5)
    .left(6);
    for pause in &report.pauses {
        let granted = pause.granted_after_ms;
        table.row(vec![
            pause.contestant.clone(),
            pause.outage.name().into(),
            format!("{} ms", pause.timeout_ms),
            granted.map_or_else(|| "never".into(), |ms| format!("{ms} ms")),
            pause.belief.text().into(),
            match pause.late_write_accepted {
                Some(true) => "TAKEN",
                Some(false) => "refused",
                None => "none: it knew of the loss",
            }
            .into(),
            pause.verdict.text(),
        ]);
    }
    format!(
        "Holder cut off or paused for longer than its session or lease\n{}",
        table.text()
    )
}

fn goals(report: &Report) -> String {
    if report.goals.is_empty() {
        return String::new();
    }
    let mut table = Table::new(&["figure", "goal", "measured", "holds"]).left(3);
    for goal in &report.goals {
        table.row(vec![
            goal.figure.clone(),
            goal.goal.clone(),
            spread(Some(goal.value)),
            if goal.holds { "yes" } else { "NO" }.into(),
        ]);
    }
    format!("Goals\n{}", table.text())
}

fn findings(report: &Report) -> String {
    let findings = Findings::of(report);
    let mut text = format!("Judge: {}\n", findings.text());
    for violation in &findings.violations {
        text.push_str(&format!(
            "  {}: {}: {}\n",
            violation.text(),
            violation.question,
            violation.subject
        ));
        for line in violation.counterexample.lines() {
            text.push_str(&format!("    {line}\n"));
        }
    }
    for (subject, why) in &findings.refusals {
        text.push_str(&format!("  refused: {subject}: {why}\n"));
    }
    for unchecked in &findings.unchecked {
        text.push_str(&format!(
            "  not checked: {}: {}\n",
            unchecked.question, unchecked.why
        ));
        for (contestant, workloads) in &unchecked.subjects {
            text.push_str(&format!("    {contestant}: {}\n", workloads.join("; ")));
        }
    }
    for (subject, count) in &findings.unknown {
        text.push_str(&format!("  outcome unknown {count} times: {subject}\n"));
    }
    text
}

fn list<'a>(title: &str, items: impl Iterator<Item = (String, &'a str)>) -> String {
    let lines: String = items
        .map(|(what, why)| format!("  {what}: {why}\n"))
        .collect();
    if lines.is_empty() {
        return lines;
    }
    format!("{title}\n{lines}")
}

fn count(value: Option<f64>) -> String {
    value.map_or_else(|| NONE.into(), figure)
}

fn duration(ns: Option<f64>) -> String {
    ns.map_or_else(|| NONE.into(), summary::duration)
}

/// Median, and smallest to largest in brackets.
fn spread(spread: Option<Spread>) -> String {
    let Some(Spread { median, min, max }) = spread else {
        return NONE.into();
    };
    format!("{} ({}-{})", figure(median), figure(min), figure(max))
}
