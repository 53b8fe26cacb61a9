//! Four-letter words: questions an operator types into a fresh connection.
//!
//! Source: reference section 18. Served: `ruok`, `srvr`, `isro`, `envi`; any other word is taken
//! as the length of a frame, far too long, and closes the connection.

use std::fmt::Write as _;

use crate::shared::Shared;

/// The version in the original's form, so that client tools can parse it: the protocol's
/// version, then ours.
pub(crate) const VERSION: &str = concat!(
    "3.9.5-minikeeper-",
    env!("CARGO_PKG_VERSION"),
    ", built on 2026-11-21 00:00 UTC"
);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Word {
    Ruok,
    Srvr,
    Isro,
    Envi,
}

/// The word at the start of a connection's input, if it is one.
pub(crate) fn word(input: &[u8]) -> Option<Word> {
    Some(match input.first_chunk::<4>()? {
        b"ruok" => Word::Ruok,
        b"srvr" => Word::Srvr,
        b"isro" => Word::Isro,
        b"envi" => Word::Envi,
        _ => return None,
    })
}

pub(crate) fn answer(word: Word, shared: &Shared) -> String {
    match word {
        Word::Ruok => "imok".to_owned(),
        Word::Isro => "rw".to_owned(),
        Word::Srvr => srvr(shared),
        Word::Envi => envi(),
    }
}

fn srvr(shared: &Shared) -> String {
    let (counts, zxid) = shared
        .turns
        .inspect(|engine| (engine.counts(), engine.zxid()));
    let counters = shared.turns.counters();
    let connections = shared.turns.connections();
    // The root counts twice, as in the original. A turn is far below a millisecond, the unit of
    // the latencies.
    let nodes = counts.znodes + 1;
    format!(
        "Zookeeper version: {VERSION}\n\
         Latency min/avg/max: 0/0.0/0\n\
         Received: {}\nSent: {}\nConnections: {connections}\nOutstanding: 0\nZxid: {zxid}\n\
         Mode: standalone\nNode count: {nodes}\n",
        counters.packets_received, counters.packets_sent,
    )
}

/// The keys of the original that make sense without a Java machine.
fn envi() -> String {
    let mut out = String::from("Environment:\n");
    for (key, value) in [
        ("zookeeper.version", VERSION),
        ("host.name", "localhost"),
        ("java.version", "none"),
        ("java.vendor", "minikeeper"),
        ("os.name", std::env::consts::OS),
        ("os.arch", std::env::consts::ARCH),
    ] {
        writeln!(out, "{key}={value}").expect("writing to a string cannot fail");
    }
    out
}
