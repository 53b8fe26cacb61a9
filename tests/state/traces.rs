//! Random traces: lists of steps over few colliding paths, connections and sessions.

use minikeeper_protocol::Request;
use minikeeper_test_kit::requests::{KINDS, Requests};
use proptest::prelude::*;

/// The number of connections of a trace.
pub(crate) const CONNS: u32 = 3;

/// One step of a trace. A step that refers to something that does not exist is skipped or refused,
/// so every list of steps is a valid trace.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// A handshake for a new session.
    Open {
        conn: u32,
        timeout_ms: i32,
    },
    /// A handshake that resumes the `session`th opened session.
    Resume {
        conn: u32,
        session: usize,
        is_password_right: bool,
    },
    /// A handshake of a client that has seen a later zxid than the server's.
    OpenAhead {
        conn: u32,
    },
    Request {
        conn: u32,
        request: Request,
    },
    /// A message that does not decode: the operation code and the body.
    Raw {
        conn: u32,
        op: i32,
        body: Vec<u8>,
    },
    Disconnect {
        conn: u32,
    },
    /// Expires the `session`th opened session.
    Expire {
        session: usize,
    },
    Advance {
        by_ms: u64,
    },
}

/// Returns a strategy for whole traces.
pub(crate) fn trace() -> impl Strategy<Value = Vec<Step>> {
    // Without a session nothing happens, so each trace starts with a handshake on every connection.
    prop::collection::vec(step(), 1..150).prop_map(|rest| {
        let opening = (0..CONNS).map(|conn| Step::Open {
            conn,
            timeout_ms: 10_000,
        });
        opening.chain(rest).collect()
    })
}

/// Each step is decided by its bytes, so that a failing trace shrinks to few steps that are as simple
/// as possible.
fn step() -> impl Strategy<Value = Step> {
    prop::array::uniform32(any::<u8>()).prop_map(|bytes| {
        let mut bytes = bytes.into_iter();
        let mut requests = Requests::new(move || bytes.next().unwrap_or(0));
        let kind = requests.byte();
        let conn = u32::from(requests.byte()) % CONNS;
        match kind {
            0..228 => Step::Request {
                conn,
                request: requests.request(kind % KINDS),
            },
            228..234 => Step::Open {
                conn,
                timeout_ms: requests.pick(&[10_000, -1, 0, 2_000, 7_500, 99_000_000]),
            },
            234..240 => Step::Resume {
                conn,
                session: usize::from(requests.byte() % 8),
                is_password_right: requests.pick(&[true, true, true, true, false]),
            },
            240..242 => Step::OpenAhead { conn },
            242..245 => Step::Raw {
                conn,
                // Unknown operations, and known ones with too short a body.
                op: requests.pick(&[1, 4, 5, 14, 22, 101, 10, 0, 13, -1, 999]),
                body: requests.bytes(3),
            },
            245..248 => Step::Disconnect { conn },
            248..250 => Step::Expire {
                session: usize::from(requests.byte() % 8),
            },
            _ => Step::Advance {
                by_ms: requests.pick(&[1, 999, 1_000, 2_500, 11_000]),
            },
        }
    })
}
