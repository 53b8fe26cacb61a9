//! The smallest part of a history that shows a violation.

use std::fmt::Write as _;

use crate::{
    history::{History, What},
    holds::Hold,
    peers::Access,
};

/// The events of the owners of these holds while they had the lock or waited for it, one line per
/// event, up to the end of the hold that ends first. Times count from the first line.
pub(super) fn of(history: &History, holds: &[&Hold]) -> String {
    let from = holds.iter().map(|hold| hold.asked_ns).min().unwrap_or(0);
    let granted = holds.iter().map(|hold| hold.granted_ns).max().unwrap_or(0);
    let until = holds
        .iter()
        .map(|hold| hold.end_ns)
        .min()
        .unwrap_or(granted)
        .max(granted);
    lines(history, holds, from, until)
}

/// Like [`of`], up to a given time.
pub(super) fn until(history: &History, holds: &[&Hold], until: u64) -> String {
    let from = holds.iter().map(|hold| hold.asked_ns).min().unwrap_or(0);
    lines(history, holds, from, until)
}

fn lines(history: &History, holds: &[&Hold], from: u64, until: u64) -> String {
    let mut text = String::new();
    for event in &history.events {
        let is_part = holds.iter().any(|hold| {
            let last = hold.released_ns.unwrap_or(hold.end_ns).max(hold.end_ns);
            hold.contender == event.contender && (hold.asked_ns..=last).contains(&event.at_ns)
        });
        if !is_part || event.at_ns < from || event.at_ns > until {
            continue;
        }
        let at = crate::table::duration_ns(crate::stats::as_f64(event.at_ns - from));
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{at:>10}  contender {}: {}",
            event.contender,
            text_of(event.what)
        );
    }
    text
}

fn text_of(what: What) -> String {
    let with = |token: Option<u64>| {
        token.map_or_else(
            || "without a token".to_owned(),
            |token| format!("with token {token}"),
        )
    };
    match what {
        What::Due => "is due to ask for the lock".into(),
        What::Asked(Access::Exclusive) => "asks for the lock".into(),
        What::Asked(Access::Shared) => "asks for the lock to read".into(),
        What::Granted { token } => format!("HAS the lock, {}", with(token)),
        What::Refused => "does not get the lock".into(),
        What::GaveUp => "stops waiting".into(),
        What::AcquireUnknown => "does not know whether it has the lock".into(),
        What::Wrote {
            token,
            is_accepted: true,
        } => format!("writes {}: accepted", with(token)),
        What::Wrote {
            token,
            is_accepted: false,
        } => format!("writes {}: refused", with(token)),
        What::Lost => "learns that the lock is lost".into(),
        What::Died => "dies".into(),
        What::Releasing => "begins to release the lock".into(),
        What::Released => "has released the lock".into(),
        What::ReleaseRefused => "learns on release that the lock was lost".into(),
        What::ReleaseUnknown => "does not know whether it has released the lock".into(),
    }
}
