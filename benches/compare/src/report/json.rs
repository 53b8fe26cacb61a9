//! The report for programs, and the page, which draws it. Units are in the names of the keys.

use serde_json::{Value, json};

use super::{
    Pause, Report, Row, Workload,
    summary::{Findings, is_ours},
};
use crate::{
    judge::{Finding, Verdict},
    stats::{Spread, interpolated},
};

/// Grows when a key changes its meaning or is removed, but not for new keys.
pub const FORMAT: u32 = 1;

/// The whole report. A value that was not measured or is not finite is null.
#[must_use]
pub fn json(report: &Report) -> Value {
    let about = &report.about;
    let servers = about.servers.iter();
    let servers = servers.map(|(name, version)| json!({ "name": name, "version": version }));
    let goals = report.goals.iter().map(|goal| {
        json!({
            "figure": goal.figure,
            "goal": goal.goal,
            "value": goal.value.json(),
            "holds": goal.holds,
        })
    });
    json!({
        "format": FORMAT,
        "about": {
            "date": about.date,
            "command": about.command,
            "machine": about.machine,
            "placement": about.placement,
            "rounds": about.rounds,
            "servers": servers.collect::<Vec<_>>(),
            "echo_ns": about.echo_ns,
        },
        "rows": report.rows.iter().map(row).collect::<Vec<_>>(),
        "pauses": report.pauses.iter().map(pause).collect::<Vec<_>>(),
        "goals": goals.collect::<Vec<_>>(),
        "not_run": report.not_run,
        "findings": Findings::of(report),
    })
}

/// The report as a page that loads nothing: its script draws the results that it contains.
#[must_use]
pub fn html(report: &Report) -> String {
    format!(
        include_str!("page.html"),
        css = include_str!("page.css"),
        results = json(report).to_string().replace('<', "\\u003c"),
        code = include_str!("page.js"),
    )
}

fn row(row: &Row) -> Value {
    let buckets = row.latencies.iter_recorded();
    let buckets = buckets.map(|at| json!([at.value_iterated_to(), at.count_at_value()]));
    let spread = |spread: Option<Spread>| spread.map(|spread| spread.json());
    let of_all =
        |quantile| (!row.latencies.is_empty()).then(|| interpolated(&row.latencies, quantile));
    json!({
        "workload": workload(row.workload),
        "title": row.workload.title(),
        "contestant": row.contestant,
        "is_ours": row.is_ours(),
        "promises": row.promises,
        "rounds": row.rounds,
        "medians": {
            "p50_ns": row.latency(|round| round.p50_ns),
            "p99_ns": row.latency(|round| round.p99_ns),
            "jain": row.median(|round| round.jain),
            "inversions_per_grant": row.median(|round| round.inversions),
            "regrabs_per_grant": row.median(|round| round.regrabs),
            "server_cpu_ns_per_grant": row.median(|round| round.server_cpu_ns),
            "client_cpu_ns_per_grant": row.median(|round| round.client_cpu_ns),
            "events_per_grant": row.median(|round| round.events),
            "bytes_per_grant": row.median(|round| round.bytes),
        },
        "p50_over_echo": spread(row.over_echo()),
        "p50_over_timeout": spread(row.over_timeout()),
        "latency_p50_ns": of_all(0.5),
        "latency_p99_ns": of_all(0.99),
        "latency_buckets_ns_count": buckets.collect::<Vec<_>>(),
        "timeline": row.timeline,
        "grants": row.grants,
        "verdict": verdict(&row.verdict),
        "refused": row.refused,
        "timeout_ns": row.timeout_ns,
    })
}

fn workload(workload: Workload) -> Value {
    match workload {
        Workload::Cycle => json!({ "kind": "cycle" }),
        Workload::HandOver(contenders) => json!({ "kind": "hand-over", "contenders": contenders }),
        Workload::Saturated(contenders) => json!({ "kind": "saturated", "contenders": contenders }),
        Workload::ReadWrite {
            contenders,
            readers,
        } => json!({ "kind": "read-write", "contenders": contenders, "readers_percent": readers }),
        Workload::Semaphore { contenders, leases } => {
            json!({ "kind": "semaphore", "contenders": contenders, "leases": leases })
        }
        Workload::OpenLoop { contenders, rate } => {
            json!({ "kind": "open-loop", "contenders": contenders, "asks_per_s": rate })
        }
        Workload::Recovery => json!({ "kind": "recovery" }),
        Workload::Herd(contenders) => json!({ "kind": "herd", "contenders": contenders }),
    }
}

fn pause(pause: &Pause) -> Value {
    json!({
        "contestant": pause.contestant,
        "is_ours": is_ours(&pause.contestant),
        "outage": pause.outage.name(),
        "timeout_ms": pause.timeout_ms,
        "granted_after_ms": pause.granted_after_ms,
        "belief": pause.belief,
        "late_write_accepted": pause.late_write_accepted,
        "verdict": verdict(&pause.verdict),
    })
}

fn verdict(verdict: &Verdict) -> Value {
    json!({
        "exclusion": finding(&verdict.exclusion),
        "fencing": finding(&verdict.fencing),
        "word": verdict.word(),
        "unknown": verdict.unknown,
        "refusal": verdict.refusal,
    })
}

fn finding(finding: &Finding) -> Value {
    match finding {
        Finding::Holds { checked } => json!({ "finding": "holds", "checked": checked }),
        Finding::Violated {
            times,
            counterexample,
        } => json!({ "finding": "violated", "times": times, "counterexample": counterexample }),
        Finding::NotChecked(why) => json!({ "finding": "not-checked", "why": why }),
    }
}
