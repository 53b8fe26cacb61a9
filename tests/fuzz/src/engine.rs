//! The fuzz target of the engine: any list of operations, with the whole state checked after each.

use minikeeper_engine::{
    CloseReason, ConnId, Effects, Engine, Event, Input, Limit, Now, SaslSettings, Settings,
};
use minikeeper_protocol::{
    ConnectRequest, ConnectResponse, ErrorCode, ReplyHeader, ReplyRef, SessionId, Xid, Zxid,
};
use minikeeper_test_kit::requests::{LOGINS, Requests};

const CONNS: u8 = 4;

/// Applies operations of a few bytes each. The engine accepts them all, its state is consistent
/// after each, it sends to open connections only, and the same list gives the same state and
/// output.
pub fn engine_ops(data: &[u8]) {
    assert_eq!(run(data), run(data), "the same list gives the same state");
}

fn run(data: &[u8]) -> (String, Vec<u8>) {
    // The first byte determines the settings.
    let (first, data) = data.split_first().unwrap_or((&0, data));
    let is_set = |bit: u8| first >> bit & 1 == 1;
    let settings = Settings {
        enforce_quota: is_set(0),
        extended_types: !is_set(1),
        skip_acl: is_set(2),
        sasl: is_set(3).then(|| SaslSettings {
            users: vec![("bob".to_owned(), "pw".into())],
            allow_failed: is_set(4),
            ..SaslSettings::default()
        }),
        enforce_auth_schemes: is_set(5).then(|| "digest".to_owned()).into_iter().collect(),
        digests: is_set(6),
        container_max_never_used_ms: u64::from(first >> 7),
        super_digest: Some(LOGINS[2].1.into()),
        tick_ms: 1_000,
        rounds_expiry: !is_set(7),
        session_timeout_min_ms: 2_000,
        session_timeout_max_ms: 20_000,
        sessions_max: 6,
        watches_max: 40,
        tree_bytes_max: 6_000,
        ..Settings::default()
    };
    let mut engine = Engine::new(settings);
    let mut shell = Shell::default();
    let mut now = Now::default();
    let mut bytes = data.iter().copied();
    while let Some(code) = bytes.next() {
        for input in inputs(code, &mut bytes, &mut shell, &mut now) {
            let zxid = engine.zxid();
            shell.answers_owed = usize::from(matches!(
                &input,
                Input::Request { conn, .. } if shell.is_attached(*conn)
            ));
            engine.apply(now, &input, &mut shell);
            assert_eq!(shell.answers_owed, 0, "{input:?} is answered once");
            assert!(engine.zxid() >= zxid, "the zxid never decreases");
            if let Err(broken) = engine.check() {
                panic!("{input:?}: {broken}");
            }
            for conn in std::mem::take(&mut shell.closing) {
                shell.used[conn.0 as usize] = false;
                shell.attached[conn.0 as usize] = false;
                engine.apply(now, &Input::Disconnect { conn }, &mut shell);
            }
        }
        let counts = engine.counts();
        assert!(counts.sessions <= 6 && counts.watches <= 40 && counts.tree_bytes <= 6_000);
    }
    (engine.dump(), shell.out)
}

/// The part of a server that tracks connections and their output.
#[derive(Default)]
struct Shell {
    /// Whether each connection is open and has sent its handshake.
    used: [bool; CONNS as usize],
    /// Whether each connection has a session.
    attached: [bool; CONNS as usize],
    closing: Vec<ConnId>,
    sessions: Vec<ConnectResponse>,
    answers_owed: usize,
    /// All bytes sent.
    out: Vec<u8>,
}

impl Shell {
    fn is_attached(&self, conn: ConnId) -> bool {
        self.attached[conn.0 as usize]
    }
}

impl Effects for Shell {
    fn connected(&mut self, to: ConnId, response: &ConnectResponse) {
        assert!(
            self.used[to.0 as usize],
            "connect responses go to connections that sent a handshake"
        );
        response.encode(&mut self.out);
        if response.session_id != SessionId::NONE {
            self.attached[to.0 as usize] = true;
            self.sessions.push(response.clone());
        }
    }

    fn reply(&mut self, to: ConnId, header: ReplyHeader, body: ReplyRef<'_>) {
        // The reply to closeSession goes to a connection that no longer has the session.
        assert!(self.used[to.0 as usize], "replies go to open connections");
        self.answers_owed = self.answers_owed.saturating_sub(1);
        body.encode(header, &mut self.out, ReplyRef::BYTES_MAX)
            .expect("the engine replies with at most reply_bytes_max");
    }

    fn event(&mut self, to: ConnId, event: &Event<'_>) {
        assert!(
            self.is_attached(to),
            "events go to connections with a session"
        );
        minikeeper_protocol::event::encode(event.kind, event.path, event.zxid, &mut self.out);
    }

    fn close(&mut self, conn: ConnId, _: CloseReason) {
        assert!(self.used[conn.0 as usize], "a connection is closed once");
        self.attached[conn.0 as usize] = false;
        // The end of the connection is the only answer to some messages.
        self.answers_owed = 0;
        self.closing.push(conn);
    }

    fn limit_hit(&mut self, _: Limit, _: usize) {}
}

fn inputs(
    code: u8,
    bytes: &mut impl Iterator<Item = u8>,
    shell: &mut Shell,
    now: &mut Now,
) -> Vec<Input> {
    let mut next = || bytes.next().unwrap_or(0);
    let conn = ConnId(u32::from(code >> 6 & (CONNS - 1)));
    let xid = Xid(i32::from(code));
    let request = match code & 0x3f {
        0..=3 => return connect(conn, next(), shell),
        4 => {
            shell.used[conn.0 as usize] = false;
            shell.attached[conn.0 as usize] = false;
            return vec![Input::Disconnect { conn }];
        }
        5..=6 => {
            now.elapsed_ms += u64::from(next()) * 400;
            now.wall_ms = i64::from(next()) * 1_000;
            return vec![Input::Tick];
        }
        7 => {
            let known = shell.sessions.get(usize::from(next() % 8));
            return known
                .map(|response| Input::Expire {
                    session: response.session_id,
                })
                .into_iter()
                .collect();
        }
        8 => {
            return vec![Input::Undecodable {
                conn,
                xid,
                consumes_zxid: next().is_multiple_of(2),
            }];
        }
        9 if next().is_multiple_of(2) => return vec![Input::UnknownOp { conn, xid }],
        9 => {
            let error = ErrorCode::ThrottledOp;
            return vec![Input::Refused {
                conn,
                xid,
                error,
                request: None,
            }];
        }
        kind => Requests::new(next).hostile().request(kind - 10),
    };
    vec![Input::Request { conn, xid, request }]
}

/// Returns the inputs of a handshake. A connection makes one handshake, so a disconnect precedes
/// another.
fn connect(conn: ConnId, choice: u8, shell: &mut Shell) -> Vec<Input> {
    let mut inputs = Vec::new();
    if std::mem::replace(&mut shell.used[conn.0 as usize], true) {
        inputs.push(Input::Disconnect { conn });
    }
    shell.attached[conn.0 as usize] = false;
    let mut hello = ConnectRequest::new(i32::from(choice) * 100);
    if choice % 4 == 1 {
        hello.last_zxid_seen = Zxid(i64::from(choice));
    } else if let Some(known) = shell.sessions.get(usize::from(choice / 4 % 8))
        && !choice.is_multiple_of(4)
    {
        hello.session_id = known.session_id;
        hello.password = (choice % 4 == 2).then(|| known.password.clone()).flatten();
    }
    inputs.push(Input::Connect {
        conn,
        hello,
        is_read_only: false,
    });
    inputs
}
