//! How a word is answered, and which machines may send it. `admin/reports.rs` lists the words.
//!
//! Source: `docs/zookeeper-protocol.md` sections 6.8, 18.1 and 18.2.

use std::{net::IpAddr, sync::atomic::Ordering};

use minikeeper_engine::ConnId;

use crate::{admin::reports::REPORTS, state::UniverseState};

/// The size of the pieces in which ZooKeeper writes an answer; each counts as a packet. Unit:
/// characters.
const PIECE: usize = 8_192;

/// A word and the function that answers it.
#[derive(Debug)]
pub(crate) struct Word {
    pub(crate) bytes: &'static [u8; 4],
    /// Its name in the whitelist.
    pub(crate) name: &'static str,
    /// Answers from the state, for a server of the ensemble, given the bytes after the word.
    pub(crate) answer: fn(&UniverseState, u8, &[u8]) -> String,
    /// Whether the answer lists session ids or the paths that clients watch. Other machines get it
    /// only if the whitelist names the word.
    pub(crate) exposes_clients: bool,
}

impl Word {
    pub(crate) const fn new(
        name: &'static str,
        answer: fn(&UniverseState, u8, &[u8]) -> String,
    ) -> Self {
        Self {
            bytes: (name.as_bytes().first_chunk()).expect("words have four letters"),
            name,
            answer,
            exposes_clients: false,
        }
    }

    pub(crate) const fn exposing_clients(self) -> Self {
        Self {
            exposes_clients: true,
            ..self
        }
    }
}

/// Sets the mask to the eight bytes after the word, which must have arrived with it.
pub(crate) fn set_trace_mask(shared: &UniverseState, after: &[u8]) -> String {
    let mask = after.first_chunk().map(|mask| i64::from_be_bytes(*mask));
    mask.map_or_else(String::new, |mask| {
        shared.trace_mask.store(mask, Ordering::Relaxed);
        mask.to_string()
    })
}

fn all() -> impl Iterator<Item = &'static Word> {
    REPORTS.iter().flat_map(|report| report.words)
}

/// Returns the word at the start of a connection's input, if there is one.
pub(crate) fn find(input: &[u8]) -> Option<&'static Word> {
    let bytes = input.first_chunk::<4>()?;
    all().find(|word| word.bytes == bytes)
}

/// Answers the word at the start of this input; some words get an empty answer.
pub(crate) fn answer(
    word: &Word,
    input: &[u8],
    shared: &UniverseState,
    conn: ConnId,
    server: u8,
) -> String {
    text(word, input, shared, count(word, shared, conn), server)
}

/// Counts a word. Returns the address of the client.
pub(crate) fn count(word: &Word, shared: &UniverseState, conn: ConnId) -> IpAddr {
    shared.turns.count_word(conn, word.bytes.len() as u64)
}

/// Returns the answer to a word from this address.
pub(crate) fn text(
    word: &Word,
    input: &[u8],
    shared: &UniverseState,
    peer: IpAddr,
    server: u8,
) -> String {
    let whitelist = &shared.config.four_letter_whitelist;
    let is_local = peer.to_canonical().is_loopback();
    let is_always = word.name == "isro" && shared.config.read_only_mode;
    let answer = if is_always || is_allowed(word, whitelist, is_local) {
        (word.answer)(shared, server, &input[word.bytes.len()..])
    } else {
        format!(
            "{} is not executed because it is not in the whitelist.\n",
            word.name
        )
    };
    let packets = answer.len().div_ceil(PIECE) as u64;
    let count = |counters: &mut crate::turn::stats::Counters| counters.packets_sent += packets;
    shared.turns.recount(count);
    answer
}

/// Returns whether a comma-separated whitelist allows a word. `srvr` is always allowed: ZooKeeper's own
/// scripts need it.
fn is_allowed(word: &Word, whitelist: &str, is_local: bool) -> bool {
    let named = |entry: &str| match entry.trim() {
        "*" => is_local || !word.exposes_clients,
        entry => entry == word.name,
    };
    word.name == "srvr" || whitelist.split(',').any(named)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_allowed(name: &str, whitelist: &str) -> bool {
        let word = all().find(|word| word.name == name);
        super::is_allowed(word.unwrap(), whitelist, true)
    }

    #[test]
    fn whitelist_is_parsed_as_in_zookeeper() {
        for (whitelist, allowed) in [
            ("*", &["srvr", "ruok", "telnet close"][..]),
            ("", &["srvr"]),
            (" ruok , stat", &["srvr", "ruok", "stat"]),
            ("ruok,*", &["mntr"]),
        ] {
            for name in allowed {
                assert!(is_allowed(name, whitelist), "{name} by {whitelist:?}");
            }
        }
        for (whitelist, refused) in [("", "ruok"), ("ruok", "mntr"), ("RUOK,ruokx", "ruok")] {
            assert!(!is_allowed(refused, whitelist), "{refused}: {whitelist:?}");
        }
    }

    /// `dump`, `wchc` and `wchp` exposed session ids and lock paths to any machine that could reach the
    /// port.
    #[test]
    fn star_allows_other_machines_no_words_about_clients() {
        let hidden = all().filter(|word| !super::is_allowed(word, "*", false));
        let hidden: Vec<_> = hidden.map(|word| word.name).collect();
        assert_eq!(hidden, ["cons", "dump", "wchc", "wchp"]);
        for word in all() {
            assert!(super::is_allowed(word, "*", true));
            let named = format!("*,{}", word.name);
            assert!(super::is_allowed(word, &named, false));
        }
    }
}
