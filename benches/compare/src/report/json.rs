//! The report for programs: everything, with no summaries. Units are in the names of the keys.

use serde_json::{Value, json};

use super::{Figures, Hold, Pause, Report, Row, Workload};
use crate::{
    judge::{Finding, Verdict},
    peers::{Belief, Promises},
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
    let not_run = report.not_run.iter();
    let not_run = not_run.map(|not_run| json!({ "what": not_run.what, "why": not_run.why }));
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
        "not_run": not_run.collect::<Vec<_>>(),
    })
}

fn row(row: &Row) -> Value {
    let buckets = row.latencies.iter_recorded();
    let buckets = buckets.map(|at| json!([at.value_iterated_to(), at.count_at_value()]));
    json!({
        "workload": workload(row.workload),
        "contestant": row.contestant,
        "promises": promises(&row.promises),
        "rounds": row.rounds.iter().map(figures).collect::<Vec<_>>(),
        "latency_buckets_ns_count": buckets.collect::<Vec<_>>(),
        "timeline": row.timeline.iter().map(hold).collect::<Vec<_>>(),
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

fn promises(promises: &Promises) -> Value {
    json!({
        "fairness": promises.fairness.text(),
        "durability": promises.durability,
        "death": promises.death,
        "has_token": promises.has_token,
    })
}

fn figures(figures: &Figures) -> Value {
    json!({
        "echo_ns": figures.echo_ns,
        "p50_ns": figures.p50_ns,
        "p90_ns": figures.p90_ns,
        "p99_ns": figures.p99_ns,
        "p999_ns": figures.p999_ns,
        "max_ns": figures.max_ns,
        "grants_per_s": figures.rate,
        "jain": figures.jain,
        "inversions_per_grant": figures.inversions,
        "regrabs_per_grant": figures.regrabs,
        "server_cpu_ns_per_grant": figures.server_cpu_ns,
        "client_cpu_ns_per_grant": figures.client_cpu_ns,
        "client_busy_cores": figures.busy,
        "events_per_grant": figures.events,
        "bytes_per_grant": figures.bytes,
    })
}

fn hold(hold: &Hold) -> Value {
    json!({
        "contender": hold.contender,
        "asked_ns": hold.asked_ns,
        "granted_ns": hold.granted_ns,
        "releasing_ns": hold.releasing_ns,
        "released_ns": hold.released_ns,
    })
}

fn pause(pause: &Pause) -> Value {
    let belief = match pause.belief {
        Belief::Held => "held",
        Belief::Unsure => "unsure",
        Belief::Lost => "lost",
        Belief::NoAnswer => "no-answer",
    };
    json!({
        "contestant": pause.contestant,
        "outage": pause.outage.name(),
        "timeout_ms": pause.timeout_ms,
        "granted_after_ms": pause.granted_after_ms,
        "belief": belief,
        "late_write_accepted": pause.late_write_accepted,
        "verdict": verdict(&pause.verdict),
    })
}

fn verdict(verdict: &Verdict) -> Value {
    json!({
        "exclusion": finding(&verdict.exclusion),
        "fencing": finding(&verdict.fencing),
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
