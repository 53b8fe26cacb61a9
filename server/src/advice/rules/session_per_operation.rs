//! A client that opens a session for each operation.

use std::mem;

use minikeeper_protocol::OpCode;

use super::{AdviceRule, ClientStep, FactTable, Finder, Scene};

pub(super) const RULE: AdviceRule = AdviceRule {
    name: "session-per-operation",
    title: "session opened for one operation",
    why: "opening and closing a session are two writes for the whole ensemble, besides the connection",
    remedy: "open one client per process and share it",
    occurrences_min: 1,
};

#[derive(Debug, Default)]
pub(super) struct SessionPerOperation {
    sessions: FactTable<Beginning>,
    paths: FactTable<ShortSessions>,
}

/// The first request of a session: entry, operation and path; and whether it has set a watch.
#[derive(Debug, Default)]
struct Beginning {
    first: u64,
    op: &'static str,
    path: String,
    has_watched: bool,
}

/// The last operation on a path for which sessions were opened, and how many in a row.
#[derive(Debug, Default)]
struct ShortSessions {
    op: &'static str,
    count: u64,
}

impl Finder for SessionPerOperation {
    fn observe(&mut self, step: ClientStep<'_>, scene: &mut Scene<'_>) {
        match step {
            ClientStep::Request(request) => {
                let beginning = self.sessions.of(&scene.at.session.to_string());
                beginning.has_watched |= request.watch || request.op == Some(OpCode::AddWatch);
                if scene.client.requests == 1 {
                    (beginning.first, beginning.op) = (scene.at.number, request.op_name);
                    request.path.clone_into(&mut beginning.path);
                }
            }
            ClientStep::Ended { expired: false } => self.closed(scene),
            _ => {}
        }
    }

    fn forget_tree(&mut self) {
        self.paths.clear();
    }
}

impl SessionPerOperation {
    fn closed(&mut self, scene: &mut Scene<'_>) {
        let session = scene.client;
        let beginning = mem::take(self.sessions.of(&scene.at.session.to_string()));
        let Beginning { op, path, .. } = beginning;
        // One that sets a watch stays for its events.
        let is_short = (1..=OPERATION_REQUESTS_MAX).contains(&session.requests);
        if session.opened == 0 || !is_short || beginning.has_watched {
            return;
        }
        let sessions = self.paths.of(&path);
        if sessions.op != op {
            *sessions = ShortSessions { op, count: 0 };
        }
        sessions.count += 1;
        let closed = sessions.count;
        if closed >= SHORT_SESSIONS_MIN {
            let ip = session.ip_text();
            let text = format!(
                "{closed} sessions were opened for {op} {path} and closed after at most {OPERATION_REQUESTS_MAX} requests, \
                 the last of them from {ip}"
            );
            let is_first = closed == SHORT_SESSIONS_MIN;
            let count = if is_first { closed } else { 1 };
            scene.report(
                &path,
                closed,
                count,
                &[session.opened, beginning.first],
                text,
            );
        }
    }
}

/// The most requests, besides opening and closing it, of a session that was opened for an operation.
const OPERATION_REQUESTS_MAX: u64 = 3;

/// The number of sessions opened one after another for the same operation on the same path.
const SHORT_SESSIONS_MIN: u64 = 10;

#[cfg(test)]
mod tests {
    use crate::advice::tests::{NOTHING, found, repeated};

    #[test]
    fn session_per_operation_is_opened_and_closed_again_and_again() {
        let session = "# opened\n# getData /config\n# closed";
        assert_eq!(found(&repeated(1..11, session)), ["session-per-operation"]);
        assert_eq!(found(&repeated(1..10, session)), NOTHING);
        let busy = "# opened\n# getData /a\n# getData /b\n# getData /c\n# getData /d\n# closed";
        assert_eq!(found(&repeated(1..20, busy)), NOTHING);
        let idle = "# opened\n# closed";
        assert_eq!(found(&repeated(1..20, idle)), NOTHING);
        // A suite of tests opens a client for each, with a path of its own.
        let test = "# opened\n# getData /test#\n# closed";
        assert_eq!(found(&repeated(1..50, test)), NOTHING);
        // A monitor stays for events.
        let monitor = "# opened\n# getData /config watch\n# closed";
        assert_eq!(found(&repeated(1..50, monitor)), NOTHING);
        // Sessions that are older than the journal may have done more.
        assert_eq!(
            found(&repeated(1..20, "# getData /config\n# closed")),
            NOTHING
        );
    }
}
