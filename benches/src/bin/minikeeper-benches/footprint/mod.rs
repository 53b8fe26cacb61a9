//! The footprint: the start and stop of minikeeper, and the cost of znodes, sessions and watches,
//! each next to its goal.

mod embedded;
mod figures;
mod floor;
mod redis;
mod row;

use minikeeper_benches::{Error, IoContext as _, note, process::Pin, table::Table};
use rustix::{
    process::{Resource, Rlimit, getrlimit, setrlimit},
    thread::{CpuSet, sched_setaffinity},
};
use serde_json::json;

use self::{figures::FIGURES, row::Row};
use crate::options::{Measured, Only, Output};

/// Measures start, stop, memory, heartbeats and fan-out of minikeeper.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  cargo run --profile dist -p minikeeper-benches -- footprint
  footprint --only start --only idle      only some rows
  footprint --pin --json result.json      generator on core 0, server on core 1
  footprint --only znodes --parents 1000  a million znodes under a thousand parents

Rows: start-stop embedded idle-memory binary-size znodes sessions watches fan-out
fan-out-redis (with --redis)")]
pub(crate) struct Args {
    #[command(flatten)]
    measured: Measured,
    #[command(flatten)]
    only: Only,
    #[command(flatten)]
    output: Output,
    /// Runs of each noisy row; the median counts.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// Znodes of the fill.
    #[arg(long, default_value_t = 1_000_000)]
    znodes: usize,
    /// Parents of the znodes of the fill.
    #[arg(long, default_value_t = 1, value_parser = Sizes::new().range(1..=9999))]
    parents: usize,
    /// Idle sessions.
    #[arg(long, default_value_t = 10_000, value_parser = Sizes::new().range(1..=15_000))]
    sessions: usize,
    /// Seconds between two pings of an idle session. Java's client pings after a third of its
    /// timeout, at the latest after 10 s.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=60))]
    ping_interval_s: u32,
    /// Connections that watch one znode in the fan-out.
    #[arg(long, default_value_t = 9500, value_parser = Sizes::new().range(1..=15_000))]
    watchers: usize,
    /// Also measure the fan-out of Redis, which must be installed.
    #[arg(long)]
    redis: bool,
    /// Run as the floor of the fan-out instead, for this many connections.
    #[arg(long, hide = true)]
    fan_out_floor: Option<usize>,
}

type Sizes = clap::builder::RangedU64ValueParser<usize>;

pub(crate) fn run(args: &Args) -> Result<bool, Error> {
    if let Some(connections) = args.fan_out_floor {
        return floor::serve(connections).map(|()| true);
    }
    let optional = args.redis.then_some(&redis::FIGURE);
    let figures = args
        .only
        .of(FIGURES.iter().chain(optional), |(name, _)| name)?;
    raise_files_max()?;
    let pin = args.measured.pin;
    if pin != Pin::None {
        let mut cores = CpuSet::new();
        cores.set(0);
        sched_setaffinity(None, &cores)
            .map_err(std::io::Error::from)
            .context(|| "cannot move to core 0".into())?;
    }
    let mut rows: Vec<Row> = Vec::new();
    for (name, figure) in figures {
        note(&format!("measuring {name}"));
        rows.extend(figure(args)?);
    }
    let json = json!({
        "placement": pin.text(),
        "rows": rows.iter().map(Row::json).collect::<Vec<_>>(),
    });
    let goals = rows.iter().map(Row::holds);
    args.output.finish(&report(args, &rows), &json, goals)
}

/// Raises the limit of open files as far as the system allows; children inherit it. Returns the limit.
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

/// Checks that this program may have this number of files open.
fn expect_files(needed: usize) -> Result<(), Error> {
    let files_max = raise_files_max()?;
    if files_max >= needed as u64 {
        return Ok(());
    }
    Err(Error::Setup(format!(
        "limit of {files_max} open files is below the {needed} files needed; \
         raise it (ulimit -Hn) or lower --sessions and --watchers"
    )))
}

fn report(args: &Args, rows: &[Row]) -> String {
    let mut table = Table::new(&["row", "median", "min-max", "goal", "holds", "note"]).left(5);
    for row in rows {
        table.row(row.cells());
    }
    format!(
        "footprint of minikeeper, {}; noisy rows are medians of {} runs\n\n{}",
        args.measured.pin.text(),
        args.rounds,
        table.text()
    )
}
