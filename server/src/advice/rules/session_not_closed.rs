//! A client that ends without closing its session.

use std::{mem, time::Duration};

use super::{AdviceRule, ClientStep, FactTable, Finder, HABIT, Scene};

pub(super) const RULE: AdviceRule = AdviceRule {
    name: "session-not-closed",
    title: "session left to expire",
    why: "its ephemerals, such as locks, stay until the timeout has passed",
    remedy: "close the client before the process ends",
    occurrences_min: 3,
};

#[derive(Debug, Default)]
pub(super) struct SessionNotClosed {
    sessions: FactTable<Ending>,
}

#[derive(Debug, Default)]
struct Ending {
    /// Whether a fault acted on the session.
    is_faulted: bool,
    /// The number of its ephemerals that the server deleted.
    removed: u64,
}

impl Finder for SessionNotClosed {
    fn observe(&mut self, step: ClientStep<'_>, scene: &mut Scene<'_>) {
        let session = scene.at.session;
        let ending = || session.to_string();
        let expired = match step {
            ClientStep::Fault { .. } => {
                self.sessions.of(&ending()).is_faulted = true;
                return;
            }
            ClientStep::Removed(_) => {
                self.sessions.of(&ending()).removed += 1;
                return;
            }
            ClientStep::Ended { expired } => expired,
            _ => return,
        };
        let facts = scene.client;
        let ending = self.sessions.of(&ending());
        let removed = mem::take(&mut ending.removed);
        if expired
            && facts.left > 0
            && !ending.is_faulted
            && scene.at.time.saturating_sub(facts.left_at) >= facts.timeout
            && facts.timeout > Duration::ZERO
        {
            let (ip, timeout) = (facts.ip_text(), facts.timeout.as_millis());
            let kept = match removed {
                0 => String::new(),
                removed => format!(", and kept {removed} ephemerals"),
            };
            let text = format!(
                "session {session} of {ip} lost its connection without being closed, and expired after {timeout} ms{kept}"
            );
            scene.report("", HABIT, 1, &[facts.left], text);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::advice::tests::{NOTHING, advice, found, repeated};

    #[test]
    fn session_not_closed_expires_after_its_client_is_gone() {
        let gone = "at 0s\n# opened\n# create /a# EPHEMERAL\n# left\nat 10s\n# expired\n";
        assert_eq!(found(&repeated(1..4, gone)), ["session-not-closed"]);
        let advice = advice(&repeated(1..4, gone));
        assert!(
            advice.findings[0].text.contains("kept 1 ephemerals"),
            "{advice}"
        );
        for other in [
            // One crash or two are no habit.
            &repeated(1..3, gone),
            // A test expires them.
            &repeated(1..9, "# opened\n# expired"),
            &repeated(1..9, "# opened\n# left\n# expired"),
            // A fault cut them off.
            &repeated(
                1..9,
                "at 0s\n# opened\n# fault disconnect\n# left\nat 10s\n# expired",
            ),
            &repeated(1..9, "# opened\n# create /a# EPHEMERAL\n# closed"),
        ] {
            assert_eq!(found(other), NOTHING, "{other}");
        }
    }
}
