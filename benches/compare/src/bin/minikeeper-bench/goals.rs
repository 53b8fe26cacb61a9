//! The goals, looked up in the results.

use minikeeper_bench::{
    peers::Fairness,
    report::{Figures, GoalRow, Row, Workload},
    stats::Spread,
    table::{grouped, number},
};

const OURS: &str = "recipes on minikeeper";
const EXACT: &str = "recipes, curator_exact on minikeeper";
const IN_PROCESS: &str = "recipes on minikeeper in process";
const CURATOR_HERE: &str = "Curator on minikeeper";

/// The project's own goals, as far as this run measured them.
pub(crate) fn goals(rows: &[Row]) -> Vec<GoalRow> {
    let found = Found(rows);
    let mut goals = Vec::new();
    let mut at_most = |figure: &str, most: f64, value: Option<Spread>| {
        goals.extend(value.map(|value| GoalRow {
            figure: figure.to_owned(),
            goal: format!("<= {}", number(most)),
            holds: value.median <= most,
            value,
        }));
    };
    let eight = Workload::HandOver(8);
    let cycle = Workload::Cycle;
    let ours = |workload| found.row(workload, is(OURS));

    at_most("cycle p50 / echo", 2.3, over_echo(ours(cycle)));
    for (peer, cycle_most, hand_over_most, name) in PEERS {
        if let Some(most) = cycle_most {
            let value = over(ours(cycle), found.row(cycle, *name));
            at_most(&format!("cycle p50 / {peer}"), *most, value);
        }
        let value = over(ours(eight), found.row(eight, *name));
        let figure = format!("hand-over p50, 8 contenders / {peer}");
        at_most(&figure, *hand_over_most, value);
    }
    at_most(
        "hand-over p50, 8 contenders / echo",
        1.5,
        over_echo(ours(eight)),
    );
    at_most(
        "the same, curator_exact",
        2.5,
        over_echo(found.row(eight, is(EXACT))),
    );
    for contenders in [2, 8, 32, 128] {
        let workload = Workload::HandOver(contenders);
        let value = over(
            ours(workload),
            found.row(workload, |name| name.starts_with("GET_LOCK")),
        );
        let figure = format!("hand-over p50, {contenders} contenders / GET_LOCK on MariaDB");
        at_most(&figure, 0.75, value);
    }
    at_most(
        "hand-over p50, 1,000 contenders / 8 contenders",
        3.0,
        over(ours(Workload::HandOver(1_000)), ours(eight)),
    );
    at_most(
        "hand-over p50, 128 contenders / echo",
        2.5,
        over_echo(ours(Workload::HandOver(128))),
    );
    for (workload, most) in [(cycle, 0.5), (eight, 0.6)] {
        let (here, there) = (
            found.row(workload, is(CURATOR_HERE)),
            found.row(workload, curator_kindest),
        );
        let figure = format!(
            "Java Curator on minikeeper / on ZooKeeper kindest: {}",
            workload.name()
        );
        at_most(&figure, most, over(here, there));
    }
    let busiest = Workload::Saturated(8);
    let cpu = |row: &Row| of(row, |round| round.server_cpu_ns);
    let least = found
        .fifo_peers(busiest)
        .filter_map(cpu)
        .min_by(|a, b| a.median.total_cmp(&b.median));
    at_most(
        "server CPU per lock, 8 contenders / least of the FIFO peers",
        1.0,
        ours(busiest)
            .and_then(cpu)
            .zip(least)
            .map(|(own, peer)| own.scaled(peer.median)),
    );

    let mut at_least = |figure: &str, least: f64, value: Option<Spread>| {
        let text = if least >= 1_000.0 { grouped } else { number };
        goals.extend(value.map(|value| GoalRow {
            figure: figure.to_owned(),
            goal: format!(">= {}", text(least)),
            holds: value.median >= least,
            value,
        }));
    };
    for contenders in [2, 8, 32] {
        let workload = Workload::Saturated(contenders);
        for (row, place) in [
            (ours(workload), "loopback"),
            (found.row(workload, is(IN_PROCESS)), "in process"),
        ] {
            let rate = row.and_then(|row| of(row, |round| Some(round.rate)));
            let figure = format!("hand-overs/s, {contenders} contenders, {place}");
            at_least(&figure, 25_000.0, rate);
            let jain = row.and_then(|row| of(row, |round| round.jain));
            at_least(&format!("Jain's index of these, {place}"), 0.99, jain);
        }
    }
    let rate = |row: &Row| of(row, |round| Some(round.rate));
    let most = found
        .fifo_peers(busiest)
        .filter_map(rate)
        .max_by(|a, b| a.median.total_cmp(&b.median));
    at_least(
        "locks/s, 8 contenders / most of the FIFO peers",
        1.0,
        ours(busiest)
            .and_then(rate)
            .zip(most)
            .map(|(own, peer)| own.scaled(peer.median)),
    );
    goals
}

type IsPeer = fn(&str) -> bool;

/// The name, the goals for the cycle and the hand-over, and the test for the contestant.
const PEERS: &[(&str, Option<f64>, f64, IsPeer)] = &[
    ("Redisson's algorithm on Redis", Some(0.75), 0.4, |name| {
        name.starts_with("Redisson")
    }),
    (
        "Curator on ZooKeeper kindest",
        Some(0.16),
        0.1,
        curator_kindest,
    ),
    ("raw recipe on ZooKeeper kindest", None, 0.2, |name| {
        name.starts_with("simple, sequential on ZooKeeper") && name.ends_with("kindest")
    }),
    ("etcd's lock, kindest", None, 0.08, |name| {
        name.contains("etcd") && name.ends_with("kindest")
    }),
];

fn curator_kindest(name: &str) -> bool {
    name.starts_with("Curator on ZooKeeper") && name.ends_with("kindest")
}

fn is(wanted: &'static str) -> impl Fn(&str) -> bool {
    move |name| name == wanted
}

struct Found<'a>(&'a [Row]);

impl<'a> Found<'a> {
    /// A contestant's row, if it has published rounds.
    fn row(&self, workload: Workload, is: impl Fn(&str) -> bool) -> Option<&'a Row> {
        let mut rows = self.0.iter();
        rows.find(|row| row.workload == workload && is(&row.contestant) && !row.rounds.is_empty())
    }

    /// All contestants not on minikeeper that promise first come, first served.
    fn fifo_peers(&self, workload: Workload) -> impl Iterator<Item = &'a Row> {
        self.0.iter().filter(move |row| {
            row.workload == workload
                && row.promises.fairness == Fairness::Fifo
                && !row.contestant.contains("minikeeper")
                && !row.rounds.is_empty()
        })
    }
}

fn of(row: &Row, figure: impl Fn(&Figures) -> Option<f64>) -> Option<Spread> {
    Spread::of(&row.rounds.iter().filter_map(figure).collect::<Vec<_>>())
}

fn over_echo(row: Option<&Row>) -> Option<Spread> {
    row.and_then(Row::over_echo)
}

/// Round by round if both have the same number of rounds; otherwise against the other's median.
fn over(own: Option<&Row>, other: Option<&Row>) -> Option<Spread> {
    let (own, other) = own.zip(other)?;
    if own.rounds.len() != other.rounds.len() {
        let median = of(other, |round| Some(round.p50_ns))?.median;
        return of(own, |round| Some(round.p50_ns / median));
    }
    let rounds = own.rounds.iter().zip(&other.rounds);
    let ratios: Vec<f64> = rounds
        .filter(|(_, other)| other.p50_ns > 0.0)
        .map(|(own, other)| own.p50_ns / other.p50_ns)
        .collect();
    Spread::of(&ratios)
}
