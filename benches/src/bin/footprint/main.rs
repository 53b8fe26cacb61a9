//! The footprint: the start and stop of minikeeper, and the cost of znodes, sessions and watches,
//! each next to its goal.

mod embedded;
mod figures;
mod floor;
mod redis;
mod row;

use std::{fs, path::PathBuf, process::ExitCode};

use clap::Parser;
use figures::{Bench, FIGURES};
use minikeeper_benches::{
    Error, IoContext as _, note,
    process::{self, Pin},
    table::{Table, say},
};
use row::Row;
use rustix::{
    process::{Resource, Rlimit, getrlimit, setrlimit},
    thread::{CpuSet, sched_setaffinity},
};
use serde_json::json;

/// Measures start, stop, memory, heartbeats and fan-out of minikeeper.
#[derive(Parser)]
#[command(after_help = "Examples:
  cargo run --release -p minikeeper-benches --bin footprint
  footprint --only start --only idle      only some rows
  footprint --pin --json result.json      generator on core 0, server on core 1
  footprint --only znodes --parents 1000  a million znodes under a thousand parents

Rows: start-stop embedded idle-memory binary-size znodes sessions watches fan-out
fan-out-redis (with --redis)
Build first: cargo build --release --workspace")]
struct Args {
    /// Only rows whose name contains this; may be repeated.
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Runs of each noisy row; the median counts.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// Placement; without a value: split.
    #[arg(long, value_enum, default_value = "none", num_args = 0..=1, default_missing_value = "split")]
    pin: Pin,
    /// Program to measure [default: minikeeper next to this program].
    #[arg(long, value_name = "PATH")]
    minikeeper: Option<PathBuf>,
    /// Further argument for minikeeper; may be repeated.
    #[arg(long, value_name = "ARG", allow_hyphen_values = true)]
    minikeeper_arg: Vec<String>,
    /// Znodes of the fill.
    #[arg(long, default_value_t = 1_000_000)]
    znodes: u32,
    /// Parents of the znodes of the fill.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=9999))]
    parents: u32,
    /// Idle sessions.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=15_000))]
    sessions: u32,
    /// Seconds between two pings of an idle session. Java's client pings after a third of its
    /// timeout, at the latest after 10 s.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=60))]
    ping_interval_s: u32,
    /// Connections that watch one znode in the fan-out.
    #[arg(long, default_value_t = 9500, value_parser = clap::value_parser!(u32).range(1..=15_000))]
    watchers: u32,
    /// Also measure the fan-out of Redis, which must be installed.
    #[arg(long)]
    redis: bool,
    /// Also write the rows as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// End with code 1 when a goal is missed.
    #[arg(long)]
    strict: bool,
    /// Run as the floor of the fan-out instead, for this many connections.
    #[arg(long, hide = true)]
    fan_out_floor: Option<u32>,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let done = match args.fan_out_floor {
        Some(connections) => floor::serve(connections as usize).map(|()| true),
        None => run(&args),
    };
    minikeeper_benches::exit("footprint", done)
}

fn run(args: &Args) -> Result<bool, Error> {
    let minikeeper = match &args.minikeeper {
        Some(path) => path.clone(),
        None => process::sibling("minikeeper")?,
    };
    let wanted =
        |name: &str| args.only.is_empty() || args.only.iter().any(|only| name.contains(only));
    let optional = args.redis.then_some(&redis::FIGURE);
    let figures: Vec<_> = FIGURES.iter().chain(optional).collect();
    if !figures.iter().any(|(name, _)| wanted(name)) {
        let names: Vec<_> = figures.iter().map(|(name, _)| *name).collect();
        return Err(Error::Setup(format!(
            "unknown row {}; one of: {}",
            args.only.join(", "),
            names.join(", ")
        )));
    }
    let files_max = raise_files_max()?;
    if args.pin != Pin::None {
        let mut cores = CpuSet::new();
        cores.set(0);
        sched_setaffinity(None, &cores)
            .map_err(std::io::Error::from)
            .context(|| "cannot move to core 0".into())?;
    }
    let bench = Bench {
        minikeeper,
        minikeeper_args: args.minikeeper_arg.clone(),
        pin: args.pin,
        rounds: args.rounds,
        znodes: args.znodes as usize,
        parents: args.parents as usize,
        sessions: args.sessions as usize,
        ping_interval_s: args.ping_interval_s,
        watchers: args.watchers as usize,
        files_max,
    };
    let mut rows: Vec<Row> = Vec::new();
    for (name, figure) in figures {
        if wanted(name) {
            note(&format!("measuring {name}"));
            rows.extend(figure(&bench)?);
        }
    }
    say(report(args, &rows)).context(|| "cannot print the report".into())?;
    if let Some(path) = &args.json {
        let json = json!({
            "placement": args.pin.text(),
            "rows": rows.iter().map(Row::json).collect::<Vec<_>>(),
        });
        fs::write(path, format!("{json:#}\n"))
            .context(|| format!("cannot write {:?}", path.display()))?;
    }
    Ok(!args.strict || rows.iter().all(|row| row.holds() != Some(false)))
}

/// Raises the limit of open files as far as the system allows; children inherit it.
fn raise_files_max() -> Result<u64, Error> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current == maximum {
        return Ok(current.unwrap_or(u64::MAX));
    }
    let raised = Rlimit {
        current: maximum,
        maximum,
    };
    setrlimit(Resource::Nofile, raised)
        .map_err(std::io::Error::from)
        .context(|| "cannot raise the limit of open files".into())?;
    Ok(maximum.unwrap_or(u64::MAX))
}

fn report(args: &Args, rows: &[Row]) -> String {
    let mut table = Table::new(&["row", "median", "min-max", "goal", "holds", "note"]).left(5);
    for row in rows {
        table.row(row.cells());
    }
    format!(
        "footprint of minikeeper, {}; noisy rows are medians of {} runs\n\n{}",
        args.pin.text(),
        args.rounds,
        table.text()
    )
}
