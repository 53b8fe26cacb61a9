//! The report of the lock bench: its content and its forms.
//!
//! | module | content |
//! | --- | --- |
//! | [`text`] | a table for the terminal |
//! | [`json`] | everything, for programs, and a page that draws it with `page.js` |
//! | [`summary`] | the common parts: medians, words for verdicts |

pub mod json;
pub mod summary;
pub mod text;

use hdrhistogram::Histogram;
use serde::Serialize;

use crate::{judge::Verdict, peers::Promises};

/// The results of one run of the bench.
#[derive(Debug)]
pub struct Report {
    /// Where and how it was measured.
    pub about: About,
    /// One for each workload and contestant, in display order.
    pub rows: Vec<Row>,
    /// The results for holders that were away for longer than their session or lease.
    pub pauses: Vec<Pause>,
    /// The project's own goals as far as measured, if requested.
    pub goals: Vec<GoalRow>,
    /// Everything requested that did not run, and why; for instance a server that is not installed.
    pub not_run: Vec<NotRun>,
}

/// Where and how a report was measured.
#[derive(Debug)]
pub struct About {
    /// `2026-11-22`.
    pub date: String,
    /// The command line.
    pub command: String,
    /// Cores and kernel.
    pub machine: String,
    /// The cores on which generator and servers ran.
    pub placement: String,
    /// The number of rounds; figures are their medians.
    pub rounds: u32,
    /// Name and version of each server.
    pub servers: Vec<(String, String)>,
    /// Median round trip to a server that does nothing, in nanoseconds: the median of the rounds'.
    pub echo_ns: f64,
}

/// A workload, and the meaning of its latency.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Workload {
    /// One contender: acquire and release. Latency: both together.
    Cycle,
    /// This number of contenders in turn. Latency: from one contender's call of release to the
    /// return of the next one's acquire.
    HandOver(u32),
    /// The same with holders that release at once; measures the grants per second.
    Saturated(u32),
    /// N contenders, with a percentage of requests that only read. Latency: acquire.
    ReadWrite {
        /// The number of contenders.
        contenders: u32,
        /// The percentage of requests that only read.
        readers: u32,
    },
    /// N contenders for M leases. Latency: acquire.
    Semaphore {
        /// The number of contenders.
        contenders: u32,
        /// The number of leases.
        leases: u32,
    },
    /// Requests at a rate per second, whether or not earlier ones were served. Latency: from when
    /// the request was due to the return of acquire.
    OpenLoop {
        /// The number of contenders.
        contenders: u32,
        /// Requests per second of all contenders together.
        rate: u32,
    },
    /// The holder's process is killed. Latency: from then to the return of the next contender's
    /// acquire.
    Recovery,
    /// The cost of one hand-over on the wire, with N contenders. Latency is not measured.
    Herd(u32),
}

/// One workload on one contestant, all rounds.
#[derive(Debug)]
pub struct Row {
    /// The workload.
    pub workload: Workload,
    /// The contestant's [`crate::peers::LockUnderTest::name`].
    pub contestant: String,
    /// What its authors promise.
    pub promises: Promises,
    /// The figures of each round that was not refused.
    pub rounds: Vec<Figures>,
    /// All latencies of all rounds, in nanoseconds.
    pub latencies: Histogram<u64>,
    /// The holds in a part of one round, in order of time.
    pub timeline: Vec<Hold>,
    /// The number of grants of each contender in one round.
    pub grants: Vec<u64>,
    /// The judge's verdict on all rounds together.
    pub verdict: Verdict,
    /// Rounds whose figures are not published, and why.
    pub refused: Vec<String>,
    /// The session or lease time-out of [`Workload::Recovery`], in nanoseconds.
    pub timeout_ns: Option<f64>,
}

/// The figures of one round. Times are in nanoseconds.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Figures {
    /// Median round trip to a server that does nothing, in this round.
    pub echo_ns: f64,
    /// The median latency, as the workload defines it.
    pub p50_ns: f64,
    /// A higher quantile of it.
    pub p90_ns: f64,
    /// A higher quantile of it.
    pub p99_ns: f64,
    /// A higher quantile of it.
    pub p999_ns: f64,
    /// The longest latency.
    pub max_ns: f64,
    /// Grants per second.
    #[serde(rename = "grants_per_s")]
    pub rate: f64,
    /// Jain's index of the contenders' grants: 1 when all got the same number.
    pub jain: Option<f64>,
    /// The share of grants that overtook a contender that had asked clearly earlier.
    #[serde(rename = "inversions_per_grant")]
    pub inversions: Option<f64>,
    /// The share of grants that went to the previous holder although others waited.
    #[serde(rename = "regrabs_per_grant")]
    pub regrabs: Option<f64>,
    /// CPU time of the server per grant.
    #[serde(rename = "server_cpu_ns_per_grant")]
    pub server_cpu_ns: Option<f64>,
    /// CPU time of the contenders' process per grant.
    #[serde(rename = "client_cpu_ns_per_grant")]
    pub client_cpu_ns: Option<f64>,
    /// The share of one core that the contenders' process used.
    #[serde(rename = "client_busy_cores")]
    pub busy: Option<f64>,
    /// Messages per grant that the server sent unasked: watch events, publications.
    #[serde(rename = "events_per_grant")]
    pub events: Option<f64>,
    /// Bytes per grant, both ways.
    #[serde(rename = "bytes_per_grant")]
    pub bytes: Option<f64>,
}

/// One hold, for the chart of a hand-over.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Hold {
    /// The contender.
    pub contender: u32,
    /// When acquire was called; all times count from the beginning of the chart.
    pub asked_ns: u64,
    /// When acquire returned.
    pub granted_ns: u64,
    /// When release was called.
    pub releasing_ns: u64,
    /// When release returned.
    pub released_ns: u64,
}

/// The result for a holder that was away for longer than its session or lease.
#[derive(Debug)]
pub struct Pause {
    /// The contestant.
    pub contestant: String,
    /// The kind of outage.
    pub outage: Outage,
    /// The session or lease time-out, in milliseconds.
    pub timeout_ms: u64,
    /// From the beginning of the outage to the grant to the next contender, in milliseconds; `None`
    /// if there was none within the time limit.
    pub granted_after_ms: Option<u64>,
    /// The client's answer when the outage was over.
    pub belief: crate::peers::Belief,
    /// Whether its late write was accepted; `None` if it knew that the lock was or might be lost,
    /// and wrote nothing.
    pub late_write_accepted: Option<bool>,
    /// The judge's verdict.
    pub verdict: Verdict,
}

/// The kind of outage of a holder.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outage {
    /// Its process is killed: its connections are closed.
    Killed,
    /// Nothing from it reaches the server, and nothing comes back; it keeps running, and asks its
    /// client every millisecond whether the lock is still held.
    CutOff,
    /// The same, and it does not run either: it checked before, and writes as soon as it runs
    /// again.
    Paused,
}

/// A goal and its result.
#[derive(Debug)]
pub struct GoalRow {
    /// The measured figure: `hand-over p50, 8 contenders / echo`.
    pub figure: String,
    /// `<= 1.5`, `>= 25,000`.
    pub goal: String,
    /// Median, smallest and largest of the rounds.
    pub value: crate::stats::Spread,
    /// Whether the median meets the goal.
    pub holds: bool,
}

/// Something that did not run.
#[derive(Debug, Serialize)]
pub struct NotRun {
    /// Its name.
    pub what: String,
    /// The reason, and what to do about it.
    pub why: String,
}

impl Workload {
    /// Its name on the command line and in files: `hand-over-8`.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::Cycle => "cycle".into(),
            Self::HandOver(contenders) => format!("hand-over-{contenders}"),
            Self::Saturated(contenders) => format!("saturated-{contenders}"),
            Self::ReadWrite {
                contenders,
                readers,
            } => format!("read-write-{contenders}-{readers}"),
            Self::Semaphore { contenders, leases } => format!("semaphore-{contenders}-{leases}"),
            Self::OpenLoop { contenders, rate } => format!("open-loop-{contenders}-{rate}"),
            Self::Recovery => "recovery".into(),
            Self::Herd(contenders) => format!("herd-{contenders}"),
        }
    }
}

impl Outage {
    /// Its name in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Killed => "killed",
            Self::CutOff => "cut-off",
            Self::Paused => "paused",
        }
    }
}
