//! Reports with values that no run should have, and a plain one to change.

use minikeeper_bench::{
    judge::Verdict,
    peers::{Belief, Fairness, Promises},
    report::{About, Figures, Hold, NotRun, Outage, Pause, Report, Row, Workload},
    stats,
};

use crate::{holds, not_checked, verdict, violated};

/// A contestant whose name is full of markup.
pub(crate) const NAME: &str = "<i>\"a\" & 'b'</i>";

/// A report without results.
pub(crate) fn empty() -> Report {
    Report {
        about: About {
            date: "2026-11-22".into(),
            command: "locks".into(),
            machine: String::new(),
            placement: String::new(),
            rounds: 0,
            servers: Vec::new(),
            echo_ns: f64::NAN,
        },
        rows: Vec::new(),
        pauses: Vec::new(),
        goals: Vec::new(),
        not_run: Vec::new(),
    }
}

/// Two contestants, two workloads and a pause; everything holds.
pub(crate) fn plain() -> Report {
    let rounds = [(100.0, 20.0), (400.0, 20.0), (200.0, 50.0)];
    let figures = rounds.map(|(p50_ns, echo_ns)| Figures {
        echo_ns,
        p50_ns,
        p99_ns: 2_000.0,
        server_cpu_ns: Some(1_500.0),
        ..Figures::default()
    });
    let mut report = empty();
    let contestants = ["recipes on minikeeper", "Curator on minikeeper"];
    report.rows = contestants
        .map(|contestant| row(contestant, Workload::Cycle, figures.to_vec()))
        .into();
    let mut recovery = row(contestants[0], Workload::Recovery, figures.to_vec());
    recovery.timeout_ns = Some(100.0);
    report.rows.push(recovery);
    report.pauses.push(Pause {
        contestant: contestants[0].into(),
        timeout_ms: 4_000,
        granted_after_ms: None,
        belief: Belief::Unsure,
        outage: Outage::Paused,
        late_write_accepted: Some(false),
        verdict: verdict(holds(), holds()),
    });
    report
}

/// Every workload, with rows that have too few values, too many, or values that are not finite.
pub(crate) fn report() -> Report {
    let mut report = plain();
    report
        .about
        .servers
        .push(("minikeeper".into(), "0.1.0".into()));
    report.about.command = NAME.into();
    let workloads = [
        Workload::Cycle,
        Workload::HandOver(1),
        Workload::HandOver(8),
        Workload::HandOver(u32::MAX),
        Workload::ReadWrite {
            contenders: 8,
            readers: 90,
        },
        Workload::Semaphore {
            contenders: 0,
            leases: 0,
        },
        Workload::OpenLoop {
            contenders: 1,
            rate: u32::MAX,
        },
        Workload::Recovery,
        Workload::Herd(0),
    ];
    for workload in workloads {
        report.rows.push(odd_row(workload));
        report.rows.push(row("no rounds", workload, Vec::new()));
        report
            .rows
            .push(row("one round", workload, vec![Figures::default()]));
        let mut huge = row("huge", workload, vec![all(f64::MAX)]);
        huge.timeout_ns = Some(f64::MAX);
        report.rows.push(huge);
        report
            .rows
            .push(row("tiny", workload, vec![all(f64::MIN_POSITIVE)]));
        report.rows.push(row(
            "negative",
            workload,
            vec![all(-1.0), all(f64::INFINITY)],
        ));
    }
    report.not_run.push(NotRun {
        what: "etcd".into(),
        why: "no etcd; install etcd-server".into(),
    });
    report
}

/// A thousand contenders, the first of which never got the lock, with very long holds.
pub(crate) fn thousand() -> Report {
    let mut report = empty();
    let mut row = row(NAME, Workload::HandOver(1_000), vec![all(1e9)]);
    row.grants = (0..1_000).collect();
    row.timeline = (0..1_000)
        .map(|contender| Hold {
            contender,
            asked_ns: 0,
            granted_ns: u64::from(contender) << 50,
            releasing_ns: u64::from(contender + 1) << 50,
            released_ns: u64::from(contender + 1) << 50,
        })
        .collect();
    report.rows.push(row);
    report
}

fn row(contestant: &str, workload: Workload, rounds: Vec<Figures>) -> Row {
    Row {
        workload,
        contestant: contestant.into(),
        promises: Promises {
            fairness: Fairness::Fifo,
            durability: "a write is on disk before its reply <&>",
            death: "session timeout",
            has_token: true,
        },
        rounds,
        latencies: stats::latencies(),
        timeline: Vec::new(),
        grants: Vec::new(),
        verdict: verdict(holds(), holds()),
        refused: Vec::new(),
        timeout_ns: None,
    }
}

/// Times that run backwards, a contender that got all grants, and everything the judge can report.
fn odd_row(workload: Workload) -> Row {
    let mut row = row(NAME, workload, vec![all(0.0), all(f64::NAN)]);
    row.rounds[0].jain = None;
    row.latencies.saturating_record(1);
    row.latencies.saturating_record(u64::MAX);
    row.grants = vec![u64::MAX, 0, 0];
    row.timeline = vec![Hold {
        contender: u32::MAX,
        asked_ns: u64::MAX,
        granted_ns: 40,
        releasing_ns: 30,
        released_ns: 20,
    }];
    row.verdict = Verdict {
        unknown: usize::MAX,
        refusal: Some("contenders shared a session".into()),
        ..verdict(violated(), not_checked())
    };
    row.refused = vec!["round 2: the generator was busy".into()];
    row.timeout_ns = Some(0.0);
    row
}

/// Every figure has this value.
fn all(value: f64) -> Figures {
    Figures {
        echo_ns: value,
        p50_ns: value,
        p90_ns: value,
        p99_ns: value,
        p999_ns: value,
        max_ns: value,
        rate: value,
        jain: Some(value),
        inversions: Some(value),
        regrabs: Some(value),
        server_cpu_ns: Some(value),
        client_cpu_ns: Some(value),
        busy: Some(value),
        events: Some(value),
        bytes: Some(value),
    }
}
