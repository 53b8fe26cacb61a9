//! A delete of what another session holds.

use super::{AdviceRule, ClientStep, Facts, Finder, Findings, Scene, Suspicions, parent_of};

pub(super) const RULE: AdviceRule = AdviceRule {
    name: "foreign-release",
    title: "ephemeral of another live session deleted",
    why: "its owner still believes to hold the lock, or to be registered",
    remedy: "delete only paths that one's own session created, and ask an owner to release",
    occurrences_min: 1,
};

#[derive(Debug, Default)]
pub(super) struct ForeignRelease {
    /// Until the session deletes the parent.
    suspicions: Suspicions,
}

impl Finder for ForeignRelease {
    fn observe(&mut self, step: ClientStep<'_>, scene: &mut Scene<'_>) {
        let ClientStep::Delete { path, .. } = step else {
            return;
        };
        let session = scene.at.session;
        // A client that deletes the parent, too, clears a tree.
        self.suspicions.explain(scene, |it| parent_of(it) == path);
        let facts = scene.facts.path(path);
        if let Some(owner) = facts.owner.filter(|owner| *owner != session)
            && scene.facts.session(owner).is_connected
        {
            let text = format!("session {session} deleted {path}, an ephemeral of session {owner}");
            self.suspicions.add(scene, path, facts.changed, text);
        }
    }

    fn finish(&mut self, _: &Facts, findings: &mut Findings) {
        self.suspicions.report(findings);
    }
}

#[cfg(test)]
mod tests {
    use crate::advice::tests::{NOTHING, found};

    #[test]
    fn foreign_release_deletes_the_ephemeral_of_a_live_session() {
        let held = "1 opened\n1 create /l/a EPHEMERAL\n";
        let then = |what: &str| found(&(held.to_owned() + what));
        assert_eq!(then("2 delete /l/a"), ["foreign-release"]);
        for other in [
            "1 delete /l/a",
            "2 delete /l/a -> NONODE",
            // Left over by a session without a connection.
            "1 left\n2 delete /l/a",
            // The end of a test clears the tree.
            "2 delete /l/a\n2 delete /l",
        ] {
            assert_eq!(then(other), NOTHING, "{other}");
        }
        assert_eq!(
            found("1 opened\n1 create /a PERSISTENT\n2 delete /a"),
            NOTHING
        );
    }
}
