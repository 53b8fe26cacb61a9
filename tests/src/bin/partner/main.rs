//! Programs that run beside those of Curator, for `tests/interop`.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program that reports"
)]

mod cacher;
mod contenders;
mod discovery;
mod values;

use std::process::ExitCode;

use clap::Parser;

/// Runs beside a program of Curator, on the same server.
#[derive(Parser)]
enum Partner {
    Cacher(cacher::Args),
    Contenders(contenders::Args),
    Discovery(discovery::Args),
    Values(values::Args),
}

#[tokio::main]
async fn main() -> ExitCode {
    let done = match Partner::parse() {
        Partner::Cacher(args) => cacher::run(&args).await,
        Partner::Contenders(args) => contenders::run(&args).await,
        Partner::Discovery(args) => discovery::run(&args).await,
        Partner::Values(args) => values::run(&args).await,
    };
    match done {
        Ok(is_right) => ExitCode::from(u8::from(!is_right)),
        Err(error) => {
            eprintln!("partner: {error}");
            ExitCode::FAILURE
        }
    }
}
