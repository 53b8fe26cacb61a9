//! An event after which the client goes on with old data.

use minikeeper_protocol::OpCode;

use super::{AdviceRule, ClientStep, FactTable, Finder, HARM, Scene};

pub(super) const RULE: AdviceRule = AdviceRule {
    name: "change-not-read",
    title: "told of a change that was never read",
    why: "a watch says that something changed, not what: the client works with old data",
    remedy: "read with getData and a watch when an event arrives, and use what that returns",
    occurrences_min: 1,
};

#[derive(Debug, Default)]
pub(super) struct ChangeNotRead {
    /// By session and path: how often it has set a watch with exists since the first event whose change it has not read.
    rewatched: FactTable<u64>,
}

impl Finder for ChangeNotRead {
    fn observe(&mut self, step: ClientStep<'_>, scene: &mut Scene<'_>) {
        let session = scene.at.session;
        match step {
            ClientStep::Request(it) if it.op == Some(OpCode::GetData) && it.error.is_none() => {
                *self.rewatched.of(&scene.use_key(it.path)) = 0;
            }
            ClientStep::Request(it) if it.op == Some(OpCode::Exists) && it.watch => {
                let path = it.path;
                let facts = scene.facts.using(session, path);
                if facts.unread == 0 {
                    return;
                }
                let rewatched = self.rewatched.of(&scene.use_key(path));
                *rewatched += 1;
                if facts.is_outdated() && *rewatched >= UNREAD_MIN {
                    let text = format!(
                        "session {session} was told of changes of {path} and set its watch with exists {rewatched} times, \
                         but did not read the data again"
                    );
                    scene.report(path, *rewatched, 1, &[facts.unread], text);
                }
            }
            ClientStep::SetData {
                path,
                is_checked: false,
            } => {
                let facts = scene.facts.using(session, path);
                if facts.is_outdated() && scene.facts.path(path).owner != Some(session) {
                    let text = format!(
                        "session {session} was told that {path} changed, and wrote it without reading it"
                    );
                    scene.report(path, HARM, 1, &[facts.unread], text);
                }
            }
            _ => {}
        }
    }

    fn forget_tree(&mut self) {
        self.rewatched.clear();
    }
}

/// The number of events of which a client reads none.
const UNREAD_MIN: u64 = 2;

#[cfg(test)]
mod tests {
    use crate::advice::tests::{NOTHING, found};

    #[test]
    fn change_not_read_before_a_write_or_a_new_watch() {
        let told = "1 getData /a watch\n2 setData /a 1B\n1 <- changed /a 5\n";
        let then = |what: &str| found(&(told.to_owned() + what));
        assert_eq!(then("1 setData /a 1B"), ["change-not-read"]);
        let twice = "1 exists /a watch\n2 setData /a 1B\n1 <- changed /a 6\n1 exists /a watch";
        assert_eq!(then(twice), ["change-not-read"]);
        for read in [
            "",
            "1 exists /a watch\n1 getData /a",
            "1 getData /a watch\n1 setData /a 1B v4",
            "1 setData /a 1B v4 -> BADVERSION",
            "1 exists /a watch\n2 setData /a 1B\n1 <- changed /a 6\n1 getData /a watch",
        ] {
            assert_eq!(then(read), NOTHING, "{read}");
        }
        // One that never reads the data only wants to know when it changes.
        let signal = "1 exists /a watch\n2 setData /a 1B\n1 <- changed /a 5\n";
        assert_eq!(found(&signal.repeat(5)), NOTHING);
    }
}
