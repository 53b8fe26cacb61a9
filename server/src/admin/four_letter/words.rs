//! Which words there are, who may use them, and which function answers each.
//!
//! Source: `docs/zookeeper-protocol.md` sections 6.8, 18.1 and 18.2.

use std::sync::atomic::Ordering;

use minikeeper_engine::ConnId;

use crate::admin::four_letter::{client_words, server_words};
use crate::universe::state::UniverseState;

/// The writer of the original hands its text on in pieces of this size, and counts each as a
/// packet. Unit: characters.
const PIECE: usize = 8_192;

pub(crate) struct Word {
    bytes: &'static [u8; 4],
    /// As the whitelist calls it.
    name: &'static str,
    /// The answer; `None` closes the connection without one.
    answer: fn(&Asked<'_>) -> Option<String>,
}

/// A word and everything it may be answered from.
pub(crate) struct Asked<'a> {
    pub(crate) shared: &'a UniverseState,
    /// What came behind the word.
    after: &'a [u8],
}

impl Word {
    /// A word that is its own name.
    const fn new(name: &'static str, answer: fn(&Asked<'_>) -> Option<String>) -> Self {
        let bytes = name
            .as_bytes()
            .first_chunk()
            .expect("words have four letters");
        Self {
            bytes,
            name,
            answer,
        }
    }
}

const WORDS: &[Word] = &[
    Word::new("conf", |asked| Some(server_words::conf(asked.shared))),
    Word::new("cons", |asked| Some(client_words::cons(asked.shared))),
    Word::new("crst", |asked| Some(client_words::crst(asked.shared))),
    Word::new("dirs", |asked| Some(server_words::dirs(asked.shared))),
    Word::new("dump", |asked| Some(client_words::dump(asked.shared))),
    Word::new("envi", |_| Some(server_words::envi())),
    Word::new("gtmk", |asked| {
        Some(asked.shared.trace_mask.load(Ordering::Relaxed).to_string())
    }),
    Word::new("hash", |asked| Some(server_words::hash(asked.shared))),
    Word::new("isro", |_| Some("rw".to_owned())),
    Word::new("mntr", |asked| Some(server_words::mntr(asked.shared))),
    Word::new("ruok", |_| Some("imok".to_owned())),
    Word::new("srst", |asked| Some(server_words::srst(asked.shared))),
    Word::new("srvr", |asked| Some(server_words::srvr(asked.shared))),
    Word::new("stat", |asked| Some(client_words::stat(asked.shared))),
    Word::new("stmk", set_trace_mask),
    Word::new("wchc", |asked| Some(client_words::wchc(asked.shared))),
    Word::new("wchp", |asked| Some(client_words::wchp(asked.shared))),
    Word::new("wchs", |asked| Some(client_words::wchs(asked.shared))),
    // What telnet sends when it is interrupted. Nothing answers it.
    Word {
        bytes: b"\xff\xf4\xff\xfd",
        name: "telnet close",
        answer: |_| None,
    },
];

/// Sets the mask to the eight bytes behind the word, which must be there already.
fn set_trace_mask(asked: &Asked<'_>) -> Option<String> {
    let mask = i64::from_be_bytes(*asked.after.first_chunk()?);
    asked.shared.trace_mask.store(mask, Ordering::Relaxed);
    Some(mask.to_string())
}

/// The word at the start of a connection's input, if it is one.
pub(crate) fn find(input: &[u8]) -> Option<&'static Word> {
    let bytes = input.first_chunk::<4>()?;
    WORDS.iter().find(|word| word.bytes == bytes)
}

/// Answers the word at the start of this input; nothing is answered to some.
pub(crate) fn answer(word: &Word, input: &[u8], shared: &UniverseState, conn: ConnId) -> String {
    let peer = shared.turns.count_word(conn, word.bytes.len() as u64);
    let whitelist = &shared.config.four_letter_whitelist;
    let is_local = peer.to_canonical().is_loopback();
    let is_always = word.name == "isro" && shared.config.read_only_mode;
    let answer = if is_always || is_allowed(word.name, whitelist, is_local) {
        let after = &input[word.bytes.len()..];
        (word.answer)(&Asked { shared, after }).unwrap_or_default()
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

/// What `*` stands for on this machine alone: they list session ids, or the paths that clients
/// watch. ZooKeeper answers nothing but `srvr` unless told to.
const TELLS_OF_CLIENTS: [&str; 4] = ["cons", "dump", "wchc", "wchp"];

/// Whether a comma-separated whitelist names a word. `srvr` needs no naming: ZooKeeper's own
/// scripts live on it.
fn is_allowed(name: &str, whitelist: &str, is_local: bool) -> bool {
    let is_in_all = is_local || !TELLS_OF_CLIENTS.contains(&name);
    let named = |entry: &str| match entry.trim() {
        "*" => is_in_all,
        entry => entry == name,
    };
    name == "srvr" || whitelist.split(',').any(named)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whitelist_is_read_as_the_original_reads_it() {
        for (whitelist, allowed) in [
            ("*", &["srvr", "ruok", "telnet close"][..]),
            ("", &["srvr"]),
            (" ruok , stat", &["srvr", "ruok", "stat"]),
            ("ruok,*", &["mntr"]),
        ] {
            for name in allowed {
                let is_allowed = is_allowed(name, whitelist, true);
                assert!(is_allowed, "{name} by {whitelist:?}");
            }
        }
        for (whitelist, refused) in [("", "ruok"), ("ruok", "mntr"), ("RUOK,ruokx", "ruok")] {
            let is_allowed = is_allowed(refused, whitelist, true);
            assert!(!is_allowed, "{refused}: {whitelist:?}");
        }
    }

    /// `dump`, `wchc` and `wchp` told any machine that reached the port the ids of sessions and the
    /// paths of locks.
    #[test]
    fn star_tells_other_machines_nothing_of_clients() {
        for word in WORDS {
            let is_open = is_allowed(word.name, "*", false);
            assert_eq!(is_open, !TELLS_OF_CLIENTS.contains(&word.name));
            assert!(is_allowed(word.name, "*", true));
            assert!(is_allowed(word.name, &format!("*,{}", word.name), false));
        }
    }
}
