//! The measurements of minikeeper. `benches/README.md` describes them.

mod compare;
mod echo;
mod floor;
mod footprint;
mod load;
mod lock_cycle;
mod options;
#[cfg(feature = "orders")]
mod orders;
mod pauses;

use std::process::ExitCode;

use clap::Parser;
use minikeeper_benches::{Error, IoContext as _};

/// Measurements of minikeeper.
#[derive(Parser)]
#[command(after_help = "Build first: cargo build --profile dist --workspace")]
enum Program {
    Compare(compare::Args),
    Echo(echo::Args),
    Floor(floor::Args),
    Footprint(footprint::Args),
    Load(load::Args),
    LockCycle(lock_cycle::Args),
    #[cfg(feature = "orders")]
    Orders(orders::Args),
    Pauses(pauses::Args),
}

fn main() -> ExitCode {
    let done = match Program::parse() {
        Program::Compare(args) => compare::run(&args),
        Program::Echo(args) => echo::run(&args),
        Program::Floor(args) => floor::run(&args),
        Program::Footprint(args) => footprint::run(&args),
        Program::Load(args) => load::run(&args),
        Program::LockCycle(args) => lock_cycle::run(&args),
        #[cfg(feature = "orders")]
        Program::Orders(args) => orders::run(&args),
        Program::Pauses(args) => pauses::run(&args),
    };
    minikeeper_benches::exit("minikeeper-benches", done)
}

/// Converts an error of the measured code to an error of the measurement.
fn text(error: impl std::error::Error) -> Error {
    Error::Unexpected(error.to_string())
}

/// A runtime on the calling thread.
fn runtime() -> Result<tokio::runtime::Runtime, Error> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context(|| "cannot start a runtime".into())
}
