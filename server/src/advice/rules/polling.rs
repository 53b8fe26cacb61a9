//! A read in a loop instead of a watch.

use minikeeper_protocol::OpCode;

use super::{AdviceRule, ClientStep, FactTable, Finder, Request, Scene};

pub(super) const RULE: AdviceRule = AdviceRule {
    name: "polling",
    title: "same read again and again, without a watch or a change",
    why: "it loads the server, and the client learns of a change late",
    remedy: "set a watch with the read, and read again when it fires",
    occurrences_min: 1,
};

#[derive(Debug, Default)]
pub(super) struct Polling {
    sessions: FactTable<Poller>,
    uses: FactTable<Polls>,
}

/// The last change and the last sync of a session, and whether it has a recursive watch.
#[derive(Debug, Default)]
struct Poller {
    wrote: u64,
    synced: u64,
    is_cache: bool,
}

/// Equal reads of a path in a row: operation, result, number, first and last.
#[derive(Debug, Default)]
struct Polls {
    op: Option<OpCode>,
    result: &'static str,
    count: u64,
    first: u64,
    last: u64,
}

impl Finder for Polling {
    fn observe(&mut self, step: ClientStep<'_>, scene: &mut Scene<'_>) {
        let session = || scene.at.session.to_string();
        match step {
            ClientStep::Request(request) => match request.op {
                Some(OpCode::Sync) => self.sessions.of(&session()).synced = scene.at.number,
                Some(OpCode::AddWatch) => self.sessions.of(&session()).is_cache = true,
                _ if request.is_read() => self.read(request, scene),
                _ => {}
            },
            ClientStep::Create(..)
            | ClientStep::SetData { .. }
            | ClientStep::Delete { .. }
            | ClientStep::Check => {
                self.sessions.of(&session()).wrote = scene.at.number;
            }
            _ => {}
        }
    }

    fn forget_tree(&mut self) {
        self.uses.clear();
    }
}

impl Polling {
    fn read(&mut self, request: &Request<'_>, scene: &mut Scene<'_>) {
        let (session, number, path) = (scene.at.session, scene.at.number, request.path);
        let facts = scene.facts.path(path);
        let changed = if request.is_list() {
            facts.children_changed
        } else {
            facts.changed
        };
        let has_watch = scene.facts.using(session, path).watch > 0;
        let poller = self.sessions.of(&session.to_string());
        let polls = self.uses.of(&scene.use_key(path));
        let result = request.result;
        // One that creates or deletes in between asks before it acts.
        let asks = request.op == Some(OpCode::Exists) && poller.wrote > polls.last;
        let is_same = polls.op == request.op && polls.result == result;
        if !is_same
            || asks
            || request.watch
            || has_watch
            || poller.is_cache
            || changed.max(poller.synced) > polls.last
        {
            polls.count = 0;
            polls.first = number;
        }
        (polls.op, polls.result, polls.last) = (request.op, result, number);
        polls.count += 1;
        let polled = polls.count;
        if polled >= POLLS_MIN {
            let op = request.op_name;
            let text = format!(
                "session {session} sent {op} {path} {polled} times in a row, always {result}"
            );
            let count = if polled == POLLS_MIN { polled } else { 1 };
            scene.report(path, polled, count, &[polls.first], text);
        }
    }
}

/// The number of equal reads in a row that are polling.
const POLLS_MIN: u64 = 10;

#[cfg(test)]
mod tests {
    use crate::advice::tests::{NOTHING, found, repeated};

    #[test]
    fn polling_is_the_same_read_without_a_watch_or_a_change() {
        assert_eq!(
            found(&repeated(0..10, "1 exists /a -> NONODE")),
            ["polling"]
        );
        assert_eq!(
            found(&repeated(0..10, "1 getChildren /a\n1 setData /own# 1B")),
            ["polling"]
        );
        for other in [
            &repeated(0..9, "1 getData /a"),
            &repeated(0..50, "1 getData /a watch"),
            &repeated(0..50, "# getData /a"),
            &repeated(0..50, "1 getData /a#"),
            &repeated(0..50, "1 getData /a\n2 setData /a 1B"),
            &repeated(0..50, "1 getChildren /a\n2 create /a/# PERSISTENT"),
            &repeated(0..50, "1 sync /a\n1 getData /a"),
            // A parent is made sure to exist before each use.
            &repeated(0..50, "1 exists /a\n1 create /b# PERSISTENT"),
        ] {
            assert_eq!(found(other), NOTHING, "{other}");
        }
    }
}
