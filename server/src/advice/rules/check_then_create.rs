//! A check that another session can make false before the create.

use std::mem;

use minikeeper_protocol::{ErrorCode, OpCode, SessionId};

use super::{AdviceRule, ClientStep, FactTable, Finder, HARM, PROVEN, Request, Scene};

pub(super) const RULE: AdviceRule = AdviceRule {
    name: "check-then-create",
    title: "exists, then create of what was missing",
    why: "another client can create it in between",
    remedy: "create at once, and take NODEEXISTS as the answer that it is there",
    occurrences_min: 1,
};

#[derive(Debug, Default)]
pub(super) struct CheckThenCreate {
    /// By session and path: the last exists that found nothing.
    missing: FactTable<u64>,
    /// By path: the last session that saw it missing, then created it.
    checked_by: FactTable<Option<SessionId>>,
}

impl Finder for CheckThenCreate {
    fn observe(&mut self, step: ClientStep<'_>, scene: &mut Scene<'_>) {
        let ClientStep::Request(request) = step else {
            return;
        };
        if request.op == Some(OpCode::Exists) {
            let is_missing = request.error == Some(ErrorCode::NoNode);
            let number = if is_missing { scene.at.number } else { 0 };
            *self.missing.of(&scene.use_key(request.path)) = number;
        } else if request.is_create() && !request.mode.is_sequential() {
            let missing = mem::take(self.missing.of(&scene.use_key(request.path)));
            // A client that makes a parent sure to exist creates it without data, and does not care who is first.
            if missing > 0 && (request.mode.is_ephemeral() || request.data_bytes > 0) {
                self.create(request, missing, scene);
            }
        }
    }

    fn forget_tree(&mut self) {
        *self = Self::default();
    }
}

impl CheckThenCreate {
    /// A create after an exists that found nothing.
    fn create(&mut self, request: &Request<'_>, missing: u64, scene: &mut Scene<'_>) {
        let (session, path) = (scene.at.session, request.path);
        let checked_by = self.checked_by.of(path).replace(session);
        let other = checked_by.filter(|other| *other != session);
        let facts = scene.facts.path(path);
        let winner = facts.changed_by.filter(|winner| *winner != session);
        let winner = winner.filter(|_| facts.changed > missing);
        match (request.error, winner, other) {
            (Some(ErrorCode::NodeExists), Some(winner), _) => {
                let text = format!(
                    "session {session} found no {path}, session {winner} created it, and the create of {session} failed"
                );
                scene.report(path, HARM, 1, &[missing, facts.changed], text);
            }
            // One session alone may have a path of its own.
            (None, _, Some(other)) => {
                let text = format!(
                    "session {session} found no {path} and created it; session {other} does so too"
                );
                scene.report(path, PROVEN, 1, &[missing], text);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::advice::tests::{NOTHING, found, repeated};

    #[test]
    fn check_then_create_is_a_race_between_sessions() {
        let raced =
            "1 exists /a -> NONODE\n2 create /a EPHEMERAL\n1 create /a EPHEMERAL -> NODEEXISTS";
        assert_eq!(found(raced), ["check-then-create"]);
        let both = "1 exists /a -> NONODE\n1 create /a PERSISTENT 3B\n1 delete /a\n2 exists /a -> NONODE\n2 create /a PERSISTENT 3B";
        assert_eq!(found(both), ["check-then-create"]);
        for other in [
            &repeated(
                0..50,
                "1 exists /a/# -> NONODE\n1 create /a/# EPHEMERAL\n1 delete /a/#",
            ),
            // Parents, as libraries create them.
            &repeated(
                0..9,
                "# exists /a -> NONODE\n# create /a PERSISTENT 0B -> NODEEXISTS",
            ),
            "1 exists /a -> NONODE\n2 create /a EPHEMERAL\n1 exists /a",
            "2 create /a EPHEMERAL\n1 create /a EPHEMERAL -> NODEEXISTS",
        ] {
            assert_eq!(found(other), NOTHING, "{other}");
        }
    }
}
