//! Measurements of minikeeper: the code that the commands of the program and the lock bench share.
//!
//! | module | contents |
//! | --- | --- |
//! | [`awake`] | keeps cores from going to sleep |
//! | [`client`] | one blocking connection: handshake, one request at a time |
//! | [`clock`] | the only module that reads the clock; deadlines that name the event |
//! | [`connects`] | the loop that times new sessions |
//! | [`drive`] | many connections driven by one thread |
//! | [`embedded`] | servers inside this process, each on its own thread |
//! | [`frames`] | requests encoded in advance, and the sources that deal them out |
//! | [`mix`] | the operation mix of a load |
//! | [`points`] | the comparisons, each with its floor and its goal |
//! | [`process`] | servers as child processes: start, placement, CPU time, memory, stop |
//! | [`record`] | the counts of a run: latencies, errors, events |
//! | [`single`] | one connection, one request outstanding, a plain blocking socket |
//! | [`stats`] | medians, spreads, histogram summaries |
//! | [`table`] | readable output |
//!
//! `README.md` describes the method.

pub mod awake;
pub mod client;
pub mod clock;
pub mod connects;
pub mod drive;
pub mod embedded;
pub mod error;
pub mod frames;
pub mod mix;
pub mod points;
pub mod process;
pub mod record;
pub mod single;
pub mod stats;
pub mod table;

pub use error::{Error, IoContext};

/// Returns the exit code of a program: 0 done, 1 could not run or found errors. Prints the error to
/// standard error.
#[must_use]
#[allow(
    clippy::print_stderr,
    reason = "the only place where the programs report their failure"
)]
pub fn exit(program: &str, done: Result<bool, Error>) -> std::process::ExitCode {
    match done {
        Ok(true) => std::process::ExitCode::SUCCESS,
        Ok(false) => std::process::ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{program}: {}", error.chain());
            std::process::ExitCode::FAILURE
        }
    }
}

/// Prints progress to standard error, so that a long run does not look stuck.
#[allow(clippy::print_stderr, reason = "progress is not part of the result")]
pub fn note(text: &str) {
    eprintln!("{text}");
}
