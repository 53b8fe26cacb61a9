//! Measurements of minikeeper: what the programs in `src/bin/` share.
//!
//! | module | what is there |
//! | --- | --- |
//! | [`awake`] | keeps cores from going to sleep |
//! | [`client`] | one blocking connection: handshake, one request at a time |
//! | [`clock`] | the only module that reads the clock; deadlines with a reason |
//! | [`connects`] | the loop that times new sessions |
//! | [`contest`] | contenders that want one lock over and over |
//! | [`drive`] | many connections driven by one thread |
//! | [`history`] | what happened in a run of a lock |
//! | [`holds`] | a history read as holds |
//! | [`judge`] | whether the lock kept its word in that run |
//! | [`open_loop`] | asks for a lock that come when they come |
//! | [`outage`] | a holder that is killed, cut off or paused |
//! | [`peers`] | the locks that are measured, behind one trait |
//! | [`relay`] | a wire that can be counted, cut and held |
//! | [`report`] | what the lock bench found, and its shapes |
//! | [`resource`] | what a lock is there for; refuses late writers |
//! | [`embedded`] | servers inside this process, each on its own thread |
//! | [`figures`] | from the history of a run to figures |
//! | [`frames`] | requests encoded ahead of time, and the sources that deal them out |
//! | [`mix`] | the operation mix of a load |
//! | [`points`] | what is compared, against which floor, with which goal |
//! | [`process`] | servers as child processes: start, placement, CPU time, memory, stop |
//! | [`record`] | what a run counted: latencies, errors, events |
//! | [`servers`] | the other servers: found, started, stopped |
//! | [`single`] | one connection, one request outstanding, a plain blocking socket |
//! | [`stats`] | medians, spreads, histogram summaries |
//! | [`table`] | readable output |
//!
//! How the numbers are taken is told in `README.md`.

pub mod awake;
pub mod client;
pub mod clock;
pub mod connects;
pub mod contest;
pub mod drive;
pub mod embedded;
pub mod error;
pub mod figures;
pub mod frames;
pub mod history;
pub mod holds;
pub mod judge;
pub mod mix;
pub mod open_loop;
pub mod outage;
pub mod peers;
pub mod points;
pub mod process;
pub mod record;
pub mod relay;
pub mod report;
pub mod resource;
pub mod servers;
pub mod single;
pub mod stats;
pub mod table;

pub use error::{Error, IoContext};

/// Ends a program: 0 done, 1 could not run or found errors. The message goes to standard error.
#[must_use]
#[allow(
    clippy::print_stderr,
    reason = "the one place where the programs report their failure"
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

/// Tells on standard error what is being done, so that a long run does not look stuck.
#[allow(clippy::print_stderr, reason = "progress is not part of the result")]
pub fn note(text: &str) {
    eprintln!("{text}");
}
