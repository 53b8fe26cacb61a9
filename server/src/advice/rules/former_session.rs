//! An ephemeral that ends with the session before.

use minikeeper_protocol::OpCode;

use super::{AdviceRule, ClientStep, Facts, Finder, Findings, Scene, Suspicions};

pub(super) const RULE: AdviceRule = AdviceRule {
    name: "former-session",
    title: "ephemeral of a former session taken for one's own",
    why: "it disappears when that session expires, while the client believes to be registered",
    remedy: "after NODEEXISTS compare the znode's ephemeralOwner with the session: delete one's own old znode, or \
             watch it and create again",
    occurrences_min: 1,
};

#[derive(Debug, Default)]
pub(super) struct FormerSession {
    /// Until the session looks at the znode.
    suspicions: Suspicions,
}

impl Finder for FormerSession {
    fn observe(&mut self, step: ClientStep<'_>, scene: &mut Scene<'_>) {
        let ClientStep::Request(request) = step else {
            return;
        };
        let path = request.path;
        if request.is_read() || request.is_create() || request.op == Some(OpCode::Delete) {
            self.suspicions.explain(scene, |it| it == path);
        }
        if !request.is_late() || !request.mode.is_ephemeral() {
            return;
        }
        let session = scene.at.session;
        let owner = scene.facts.path(path).owner;
        let Some(owner) = owner.filter(|owner| *owner != session) else {
            return;
        };
        let former = scene.facts.session(owner);
        let own = scene.client;
        if former.left > 0 && own.opened > former.left && own.ip == former.ip {
            let text = format!(
                "session {owner} created {path} and lost its connection; session {session}, opened later at the same \
                 address, found it there (NODEEXISTS) and went on without looking whose it is"
            );
            let created = scene.facts.path(path).changed;
            self.suspicions.add(scene, path, created, text);
        }
    }

    fn finish(&mut self, facts: &Facts, findings: &mut Findings) {
        // A client that gives up says nothing more.
        self.suspicions.drop_silent(facts);
        self.suspicions.report(findings);
    }
}

#[cfg(test)]
mod tests {
    use crate::advice::tests::{NOTHING, found};

    #[test]
    fn former_session_owns_the_ephemeral() {
        let before = "1 opened\n1 create /me EPHEMERAL\n1 left\n2 opened\n2 create /me EPHEMERAL -> NODEEXISTS\n";
        let goes_on = |what: &str| found(&(before.to_owned() + what));
        assert_eq!(goes_on("2 getData /work"), ["former-session"]);
        assert_eq!(
            goes_on("2 getData /work\n1 expired\n2 getData /work"),
            ["former-session"]
        );
        for handled in [
            "",
            "2 delete /me\n2 create /me EPHEMERAL",
            "2 exists /me watch\n2 getData /work",
            "2 getData /work\n2 create /me EPHEMERAL",
        ] {
            assert_eq!(goes_on(handled), NOTHING, "{handled}");
        }
        // A rival that lives, and one that was there before the owner left.
        let rival = "1 opened\n2 opened\n1 create /me EPHEMERAL\n2 create /me EPHEMERAL -> NODEEXISTS\n2 getData /work";
        assert_eq!(found(rival), NOTHING);
        let waiting = "1 opened\n2 opened\n1 create /me EPHEMERAL\n1 left\n2 create /me EPHEMERAL -> NODEEXISTS\n2 getData /work";
        assert_eq!(found(waiting), NOTHING);
        // The reply to the create was lost, and the session went on.
        let same = "1 opened\n1 create /me EPHEMERAL\n1 left\n1 resumed\n1 create /me EPHEMERAL -> NODEEXISTS\n1 getData /work";
        assert_eq!(found(same), NOTHING);
    }
}
