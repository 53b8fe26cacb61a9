//! The table of words: the function that answers each, and which machines may send it.
//!
//! Source: `docs/zookeeper-protocol.md` sections 6.8, 18.1 and 18.2.

use std::{net::IpAddr, sync::atomic::Ordering};

use minikeeper_engine::ConnId;

use crate::admin::four_letter::{client_words, server_words};
use crate::state::UniverseState;

/// The size of the pieces in which ZooKeeper writes an answer; each counts as a packet. Unit:
/// characters.
const PIECE: usize = 8_192;

/// A word and the function that answers it. To add a word, add it to `WORDS`.
pub(crate) struct Word {
    bytes: &'static [u8; 4],
    /// Its name in the whitelist.
    name: &'static str,
    answer: WordAnswer,
    /// Whether the answer lists session ids or the paths that clients watch. Other machines get it
    /// only if the whitelist names the word.
    exposes_clients: bool,
}

/// The way a word is answered.
enum WordAnswer {
    /// From the state.
    Text(fn(&UniverseState) -> String),
    /// From the state, for one server of the ensemble.
    OfServer(fn(&UniverseState, u8) -> String),
    /// From the state and the bytes after the word; `None` closes the connection without an answer.
    After(fn(&UniverseState, &[u8]) -> Option<String>),
}

impl Word {
    const fn new(name: &'static str, answer: fn(&UniverseState) -> String) -> Self {
        Self {
            bytes: name
                .as_bytes()
                .first_chunk()
                .expect("words have four letters"),
            name,
            answer: WordAnswer::Text(answer),
            exposes_clients: false,
        }
    }

    const fn of_clients(name: &'static str, answer: fn(&UniverseState) -> String) -> Self {
        Self {
            exposes_clients: true,
            ..Self::new(name, answer)
        }
    }

    const fn of_server(name: &'static str, answer: fn(&UniverseState, u8) -> String) -> Self {
        Self {
            answer: WordAnswer::OfServer(answer),
            ..Self::new(name, |_| String::new())
        }
    }

    const fn after(
        name: &'static str,
        bytes: &'static [u8; 4],
        answer: fn(&UniverseState, &[u8]) -> Option<String>,
    ) -> Self {
        Self {
            bytes,
            name,
            answer: WordAnswer::After(answer),
            exposes_clients: false,
        }
    }
}

const WORDS: &[Word] = &[
    Word::of_server("conf", server_words::conf),
    Word::of_clients("cons", client_words::cons),
    Word::new("crst", client_words::crst),
    Word::new("dirs", server_words::dirs),
    Word::of_clients("dump", client_words::dump),
    Word::new("envi", |_| server_words::envi()),
    Word::new("gtmk", |shared| {
        shared.trace_mask.load(Ordering::Relaxed).to_string()
    }),
    Word::new("hash", server_words::hash),
    Word::of_server("isro", server_words::isro),
    Word::of_server("mntr", server_words::mntr),
    Word::new("ruok", |_| "imok".to_owned()),
    Word::new("srst", server_words::srst),
    Word::of_server("srvr", server_words::srvr),
    Word::of_server("stat", client_words::stat),
    Word::after("stmk", b"stmk", set_trace_mask),
    Word::of_clients("wchc", client_words::wchc),
    Word::of_clients("wchp", client_words::wchp),
    Word::new("wchs", client_words::wchs),
    // Telnet sends this when it is interrupted. It gets no answer.
    Word::after("telnet close", b"\xff\xf4\xff\xfd", |_, _| None),
];

/// Sets the mask to the eight bytes after the word, which must have arrived with it.
fn set_trace_mask(shared: &UniverseState, after: &[u8]) -> Option<String> {
    let mask = i64::from_be_bytes(*after.first_chunk()?);
    shared.trace_mask.store(mask, Ordering::Relaxed);
    Some(mask.to_string())
}

/// Returns the word at the start of a connection's input, if there is one.
pub(crate) fn find(input: &[u8]) -> Option<&'static Word> {
    let bytes = input.first_chunk::<4>()?;
    WORDS.iter().find(|word| word.bytes == bytes)
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
        match word.answer {
            WordAnswer::Text(answer) => answer(shared),
            WordAnswer::OfServer(answer) => answer(shared, server),
            WordAnswer::After(answer) => {
                answer(shared, &input[word.bytes.len()..]).unwrap_or_default()
            }
        }
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
        let word = WORDS.iter().find(|word| word.name == name);
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
        let hidden = WORDS
            .iter()
            .filter(|word| !super::is_allowed(word, "*", false));
        let hidden: Vec<_> = hidden.map(|word| word.name).collect();
        assert_eq!(hidden, ["cons", "dump", "wchc", "wchp"]);
        for word in WORDS {
            assert!(super::is_allowed(word, "*", true));
            let named = format!("*,{}", word.name);
            assert!(super::is_allowed(word, &named, false));
        }
    }
}
