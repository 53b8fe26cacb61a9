//! The hook for four-letter words: how a word is answered, and which machines may send it.
//!
//! Source: `docs/zookeeper-protocol.md` sections 6.8, 18.1 and 18.2.

use std::net::IpAddr;

use minikeeper_engine::ConnId;

use crate::{state::UniverseState, turn::stats::Counters};

/// Returns the word at the start of a connection's input, if there is one.
pub(crate) type FindWord = fn(&[u8]) -> Option<&'static Word>;

/// The size of the pieces in which ZooKeeper writes an answer; each counts as a packet. Unit:
/// characters.
const PIECE: usize = 8_192;

/// A word and the function that answers it.
#[derive(Debug)]
pub struct Word {
    pub bytes: &'static [u8; 4],
    /// Its name in the whitelist.
    pub name: &'static str,
    /// Answers from the state, for a server of the ensemble, given the bytes after the word.
    pub answer: fn(&UniverseState, u8, &[u8]) -> String,
    /// Whether the answer lists session ids or the paths that clients watch. Other machines get it
    /// only if the whitelist names the word.
    pub exposes_clients: bool,
}

impl Word {
    pub const fn new(name: &'static str, answer: fn(&UniverseState, u8, &[u8]) -> String) -> Self {
        Self {
            bytes: (name.as_bytes().first_chunk()).expect("words have four letters"),
            name,
            answer,
            exposes_clients: false,
        }
    }

    pub const fn exposing_clients(self) -> Self {
        Self {
            exposes_clients: true,
            ..self
        }
    }
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
    let count = |counters: &mut Counters| counters.packets_sent += packets;
    shared.turns.recount(count);
    answer
}

/// Returns whether a comma-separated whitelist allows a word. `srvr` is always allowed: ZooKeeper's own
/// scripts need it.
pub fn is_allowed(word: &Word, whitelist: &str, is_local: bool) -> bool {
    let named = |entry: &str| match entry.trim() {
        "*" => is_local || !word.exposes_clients,
        entry => entry == word.name,
    };
    word.name == "srvr" || whitelist.split(',').any(named)
}
