//! Watches on znodes that nobody will change.

use super::{AdviceRule, ClientStep, Finder, Scene};

pub(super) const RULE: AdviceRule = AdviceRule {
    name: "watch-leak",
    title: "watches that never fire pile up in a session",
    why: "the server keeps each of them until the session ends, and the client sends all of them at a reconnect",
    remedy: "remove them with removeWatches, watch the parent, or use one recursive watch (addWatch)",
    occurrences_min: 1,
};

#[derive(Debug, Default)]
pub(super) struct WatchLeak;

impl Finder for WatchLeak {
    fn observe(&mut self, step: ClientStep<'_>, scene: &mut Scene<'_>) {
        let ClientStep::WatchSet(parent, watches) = step else {
            return;
        };
        let session = scene.at.session;
        let (count, what) = if watches.on_nothing >= MISSING_WATCHES_MIN {
            (watches.on_nothing, "that do not exist")
        } else if watches.all >= WATCHES_MIN {
            (watches.all, "that have not changed")
        } else {
            return;
        };
        let text = format!("session {session} has {count} watches on znodes below {parent} {what}");
        let is_first = count == MISSING_WATCHES_MIN || count == WATCHES_MIN;
        scene.report(parent, count, u64::from(is_first), &[watches.first], text);
    }
}

/// The numbers of watches of a session below one parent that are a leak: on znodes that are missing, on any.
const MISSING_WATCHES_MIN: u64 = 100;
const WATCHES_MIN: u64 = 1_000;

#[cfg(test)]
mod tests {
    use crate::advice::tests::{NOTHING, found, repeated};

    #[test]
    fn watch_leak_is_many_watches_that_do_not_fire() {
        let missing = |range| repeated(range, "1 exists /l/# watch -> NONODE");
        assert_eq!(found(&missing(0..100)), ["watch-leak"]);
        assert_eq!(found(&missing(0..99)), NOTHING);
        assert_eq!(
            found(&repeated(0..1_000, "1 getData /l/# watch")),
            ["watch-leak"]
        );
        assert_eq!(found(&repeated(0..999, "1 getData /l/# watch")), NOTHING);
        let fired = repeated(0..500, "1 exists /l/# watch -> NONODE\n1 <- created /l/# 5");
        assert_eq!(found(&fired), NOTHING);
        assert_eq!(
            found(&repeated(0..500, "1 exists /l/a watch -> NONODE")),
            NOTHING
        );
        // getData leaves no watch on what is missing.
        assert_eq!(
            found(&repeated(0..500, "1 getData /l/# watch -> NONODE")),
            NOTHING
        );
    }
}
