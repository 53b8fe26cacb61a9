//! The lock bench: what locks cost, how fair they are, and whether they keep their promises.

mod contestants;
mod goals;
mod locks;
mod measure;
mod peers;
mod plan;
mod progress;
mod rows;
mod stop;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Measures locks and judges their correctness.
#[derive(Parser)]
#[command(name = "minikeeper-bench")]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Compares locks: cycle, hand-over, fairness, recovery, safety.
    Locks(locks::Args),
}

fn main() -> ExitCode {
    let done = match Args::parse().command {
        Command::Locks(args) => locks::run(&args),
    };
    minikeeper_bench::exit("minikeeper-bench", done)
}
