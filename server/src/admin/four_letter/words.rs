//! Finds a word. `admin/reports.rs` lists them.
//!
//! Source: `docs/zookeeper-protocol.md` sections 6.8, 18.1 and 18.2.

use std::sync::atomic::Ordering;

use minikeeper_core::state::{UniverseState, words::Word};

use crate::admin::reports::REPORTS;

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

#[cfg(test)]
mod tests {
    use super::*;
    use minikeeper_core::state::words;

    fn is_allowed(name: &str, whitelist: &str) -> bool {
        let word = all().find(|word| word.name == name);
        words::is_allowed(word.unwrap(), whitelist, true)
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
        let hidden = all().filter(|word| !words::is_allowed(word, "*", false));
        let hidden: Vec<_> = hidden.map(|word| word.name).collect();
        assert_eq!(hidden, ["cons", "dump", "wchc", "wchp"]);
        for word in all() {
            assert!(words::is_allowed(word, "*", true));
            let named = format!("*,{}", word.name);
            assert!(words::is_allowed(word, &named, false));
        }
    }
}
