//! Runs every recipe at once, over TCP and in real time, while links, sessions and the server fail.
//!
//! The program runs one server in its process, and five contenders on four clients for each recipe.
//! In each round it injects faults from a seed. Then the faults end. Each contender must be served
//! once more within a time limit, and leave nothing behind. At every grant and between grants the
//! judge checks that no other contender believes that it is the holder, that tokens grow in the
//! order of grants, and that contenders notice their losses. The contenders and the judge are those
//! of the simulation `tests/sim`, which runs one recipe at a time on paused time. With threads and
//! sockets, runs from the same seed are similar, not equal.
//!
//! Exit codes: 0 no violation, 1 violations or could not run, 2 wrong usage.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a program that reports"
)]

mod faults;
mod memory;
mod run;

use std::{process::ExitCode, sync::Arc, time::Duration};

use clap::Parser;
use minikeeper::Server;
use minikeeper_test_kit::clock;
use minikeeper_tests::sim::{chance, contender, history, judge, worlds};

use self::{faults::FaultKind, history::Totals, run::Round};

/// Injects faults into links, sessions and the server while every recipe is in use, and checks
/// every grant.
#[derive(Parser)]
struct Args {
    /// Begin rounds for this time, in minutes.
    #[arg(long, value_name = "MINUTES", default_value_t = 1.0)]
    minutes: f64,
    /// Inject faults for this time in each round, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 45)]
    round: u64,
    /// Interval between progress reports, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    report: u64,
    /// Seed of all random choices. Default: `MINIKEEPER_SEED`, or a new one each time.
    #[arg(long)]
    seed: Option<u64>,
    /// Inject only this kind of fault; may be repeated.
    #[arg(long = "fault", value_enum)]
    faults: Vec<FaultKind>,
}

#[tokio::main]
async fn main() -> ExitCode {
    let args = Args::parse();
    match chaos(args).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("chaos: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn chaos(args: Args) -> Result<bool, Box<dyn std::error::Error>> {
    let began = clock::now();
    let seed = args.seed.or_else(given_seed).unwrap_or_else(run::seed);
    println!("chaos: MINIKEEPER_SEED={seed}");
    let server = Arc::new(server().start().await?);
    let at_start = memory::resident_kib();
    let end = began + Duration::try_from_secs_f64(args.minutes * 60.0)?;
    let mut totals = Totals::default();
    let mut violations = Vec::new();
    let faults = if args.faults.is_empty() {
        FaultKind::ALL.to_vec()
    } else {
        args.faults
    };
    let mut number = 0;
    while clock::now() < end && violations.is_empty() {
        let left = end.saturating_duration_since(clock::now());
        let round = Round {
            seed: seed.wrapping_add(number),
            faults_for: left.min(Duration::from_secs(args.round)),
            report: Duration::from_secs(args.report.max(1)),
            kinds: faults.clone(),
        };
        let mut history = run::run(&server, &round, &totals).await;
        if !history.violations.is_empty() {
            print_violation(&round, &history);
        }
        violations.append(&mut history.violations);
        totals.add(history.totals);
        number += 1;
    }
    let at_end = run::resident_at_rest(&server).await;
    // Of the last round: what the journal still has.
    println!("advice: {}", server.advise(&[])?);
    println!("grants: {:?}", totals.grants);
    println!("faults: {:?}", totals.faults);
    println!("events: {:?}", totals.events);
    println!(
        "resident memory in KiB: {at_start} at the start, {} at most, {at_end} at the end",
        memory::resident_max_kib().max(at_end)
    );
    println!(
        "chaos: {} s, {number} rounds, {} grants, {} faults, {} violations, MINIKEEPER_SEED={seed}",
        (clock::now() - began).as_secs(),
        totals.grants.values().sum::<u64>(),
        totals.faults.values().sum::<u64>(),
        violations.len(),
    );
    Ok(violations.is_empty())
}

fn given_seed() -> Option<u64> {
    std::env::var("MINIKEEPER_SEED").ok()?.parse().ok()
}

/// Allows short sessions, and deletes unused containers soon.
fn server() -> minikeeper::Builder {
    Server::builder()
        .tick_time(Duration::from_millis(100))
        .session_timeout_min(Duration::from_millis(200))
        .session_timeout_max(Duration::from_secs(60))
        .configure(|config| config.container_check_interval_ms = 100)
}

/// Prints the history before the first violation and shortly after, and all violations.
fn print_violation(round: &Round, history: &history::History) {
    let mut lines = history.lines.iter();
    let first = lines.position(|line| line.contains(history::VIOLATION));
    let from = first.unwrap_or_default().saturating_sub(150);
    for line in history.lines[from..].iter().take(200) {
        println!("{line}");
    }
    println!("violations in the round of seed {}:", round.seed);
    for violation in &history.violations {
        println!("  {violation}");
    }
}
