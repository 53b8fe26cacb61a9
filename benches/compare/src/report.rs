//! The report of the lock bench: what was measured, and its shapes.
//!
//! | module | shape |
//! | --- | --- |
//! | [`text`] | a table for the terminal |
//! | [`json`] | everything, for programs |
//! | [`html`] | one self-contained page, from the template `page.html` |
//! | [`axis`] | from values to places in its pictures |
//! | [`summary`] | what they all share: medians, words for verdicts |

pub mod axis;
pub mod html;
pub mod json;
pub mod summary;
pub mod text;

use hdrhistogram::Histogram;

use crate::{
    judge::Verdict,
    peers::{Fairness, Promises},
};

/// Everything one run of the bench found.
#[derive(Debug)]
pub struct Report {
    /// Where and how it was taken.
    pub about: About,
    /// One for each workload and contestant, in the order they are to be shown.
    pub rows: Vec<Row>,
    /// What happened when a holder was away for longer than its session or lease.
    pub pauses: Vec<Pause>,
    /// The project's own goals that were measured, if they were asked for.
    pub goals: Vec<GoalRow>,
    /// What was asked for and not run, and why: a peer that is not installed, for instance.
    pub not_run: Vec<NotRun>,
}

/// Where and how a report was taken.
#[derive(Debug)]
pub struct About {
    /// `2026-11-22`.
    pub date: String,
    /// The command line.
    pub command: String,
    /// Cores and kernel.
    pub machine: String,
    /// Where generator and servers ran.
    pub placement: String,
    /// Rounds; figures are medians of them.
    pub rounds: u32,
    /// Name and version of each server.
    pub servers: Vec<(String, String)>,
    /// Median round trip to a server that does nothing, in nanoseconds: the median of the rounds'.
    pub echo_ns: f64,
}

/// What a workload measures, and in what units its row is to be read.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Workload {
    /// One contender: acquire and release. Latency: both together.
    Cycle,
    /// So many contenders in turn. Latency: from one's call of release to the next one's return of
    /// acquire.
    HandOver(u32),
    /// The same with holders that keep it for no time at all: how many a second.
    Saturated(u32),
    /// N contenders, of whose asks a percentage is to read. Latency: acquire.
    ReadWrite {
        /// How many contend.
        contenders: u32,
        /// Percent of asks that only read.
        readers: u32,
    },
    /// N contenders for M leases. Latency: acquire.
    Semaphore {
        /// How many contend.
        contenders: u32,
        /// How many leases there are.
        leases: u32,
    },
    /// Asks at a rate per second, whether or not earlier ones were served. Latency: from when the
    /// ask was due to the return of acquire.
    OpenLoop {
        /// How many contend.
        contenders: u32,
        /// Asks a second, all together.
        rate: u32,
    },
    /// The holder's process is killed. Latency: from then to the next one's return of acquire.
    Recovery,
    /// The cost of one hand-over on the wire, with N contenders. Latency is not measured.
    Herd(u32),
}

/// One workload on one contestant, all rounds.
#[derive(Debug)]
pub struct Row {
    /// The workload.
    pub workload: Workload,
    /// The contestant, as [`crate::peers::LockUnderTest::name`] says it.
    pub contestant: String,
    /// What its authors say about it.
    pub promises: Promises,
    /// What each round found, but for refused ones.
    pub rounds: Vec<Figures>,
    /// All latencies of all rounds, in nanoseconds.
    pub latencies: Histogram<u64>,
    /// Holds of a part of one round, by time.
    pub timeline: Vec<Hold>,
    /// How often each contender got it, in one round.
    pub grants: Vec<u64>,
    /// What the judge says of all rounds together.
    pub verdict: Verdict,
    /// Rounds whose figures are not published, and why.
    pub refused: Vec<String>,
    /// The session or lease time-out of [`Workload::Recovery`], in nanoseconds.
    pub timeout_ns: Option<f64>,
}

/// What one round found. Times in nanoseconds.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// Median round trip to a server that does nothing, in this round.
    pub echo_ns: f64,
    /// Latency, as the workload defines it.
    pub p50_ns: f64,
    /// As above.
    pub p90_ns: f64,
    /// As above.
    pub p99_ns: f64,
    /// As above.
    pub p999_ns: f64,
    /// The longest.
    pub max_ns: f64,
    /// Grants a second.
    pub rate: f64,
    /// Jain's index of the contenders' grants: 1 when all got as many.
    pub jain: Option<f64>,
    /// The share of grants that overtook a contender that had asked clearly before.
    pub inversions: Option<f64>,
    /// Grants that went to who had it just before although others waited, a grant.
    pub regrabs: Option<f64>,
    /// CPU time of the server a grant.
    pub server_cpu_ns: Option<f64>,
    /// CPU time of the contenders' process a grant.
    pub client_cpu_ns: Option<f64>,
    /// Share of one core that the contenders' process was busy.
    pub busy: Option<f64>,
    /// Messages a grant that the server sent without being asked: watch events, publications.
    pub events: Option<f64>,
    /// Bytes a grant, both ways.
    pub bytes: Option<f64>,
}

/// One hold, for the picture of a hand-over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hold {
    /// Whose.
    pub contender: u32,
    /// When acquire was called; all times are from the beginning of the picture.
    pub asked_ns: u64,
    /// When acquire returned.
    pub granted_ns: u64,
    /// When release was called.
    pub releasing_ns: u64,
    /// When release returned.
    pub released_ns: u64,
}

/// What happened to a holder that was away for longer than its session or lease.
#[derive(Debug)]
pub struct Pause {
    /// The contestant.
    pub contestant: String,
    /// How it was away.
    pub outage: Outage,
    /// The session or lease time-out, in milliseconds.
    pub timeout_ms: u64,
    /// From the beginning of the pause to the grant to the next one, in milliseconds; `None`: not
    /// while it was waited for.
    pub granted_after_ms: Option<u64>,
    /// What its client said when the outage was over.
    pub belief: crate::peers::Belief,
    /// Whether its late write was accepted; `None`: it knew that the lock is or may be lost, and
    /// wrote nothing.
    pub late_write_accepted: Option<bool>,
    /// What the judge says.
    pub verdict: Verdict,
}

/// How a holder is away.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outage {
    /// Its process is killed: its connections are closed.
    Killed,
    /// Nothing of it reaches the server, and nothing comes back; it runs, and asks its client every
    /// millisecond whether the lock is still held.
    CutOff,
    /// The same, and it does not run either: it looked before, and writes as soon as it runs again.
    Paused,
}

/// A goal with what was found.
#[derive(Debug)]
pub struct GoalRow {
    /// What is looked at: `hand-over p50, 8 contenders / echo`.
    pub figure: String,
    /// `<= 1.5`, `>= 25,000`.
    pub goal: String,
    /// Median, smallest and largest of the rounds.
    pub value: crate::stats::Spread,
    /// Whether the median holds the goal.
    pub holds: bool,
}

/// Something that was not run.
#[derive(Debug)]
pub struct NotRun {
    /// What.
    pub what: String,
    /// Why, and what to do about it.
    pub why: String,
}

impl Workload {
    /// What it is called on a command line and in files: `hand-over-8`.
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
    /// As tables say it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Killed => "killed",
            Self::CutOff => "cut-off",
            Self::Paused => "paused",
        }
    }
}

impl Fairness {
    /// As tables say it.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Fifo => "FIFO",
            Self::None => "none",
        }
    }
}
