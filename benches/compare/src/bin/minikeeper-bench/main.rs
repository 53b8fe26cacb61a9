//! The lock bench: what locks cost, who gets them, and whether they keep their word.

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

/// Measures locks, and judges them.
#[derive(Parser)]
#[command(name = "minikeeper-bench")]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Runs locks against one another: cycle, hand-over, fairness, recovery, safety.
    Locks(locks::Args),
}

fn main() -> ExitCode {
    let done = match Args::parse().command {
        Command::Locks(args) => locks::run(&args),
    };
    minikeeper_bench::exit("minikeeper-bench", done)
}
