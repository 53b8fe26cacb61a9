//! The fuzz target of the engine: any list of operations, with the whole state checked after each.

use bytes::Bytes;
use minikeeper_engine::{
    CloseReason, ConnId, Effects, Engine, Event, Input, Limit, Now, SaslSettings, Settings,
};
use minikeeper_protocol::{
    Acl, AclList, ConnectRequest, ConnectResponse, Create, CreateOp, ErrorCode, MultiOp,
    MultiReadOp, Perms, ReplyHeader, ReplyRef, Request, SessionId, Ustring, Xid, Zxid,
};

/// Few and colliding paths, some of them malformed.
const PATHS: [&str; 19] = [
    "/",
    "/a",
    "/b",
    "/a/b",
    "/a/c",
    "/a/b/c",
    "/a/s",
    "/a/s0000000000",
    "/a/s0000000001",
    "/zookeeper",
    "/zookeeper/quota",
    "/zookeeper/quota/a",
    "/zookeeper/quota/a/zookeeper_limits",
    "/zookeeper/quota/a/zookeeper_stats",
    "",
    "/a/",
    "//",
    "a\0",
    "/\u{e000}",
];

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
        super_digest: Some("super:lK75jTNcA+U9vtVEw5vB51mj/w4=".into()),
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
        10..=17 => Request::Create(create(&mut next)),
        18..=22 => Request::Delete {
            path: path(next()),
            version: version(next()),
        },
        23..=26 => Request::SetData {
            path: path(next()),
            data: some_data(next()),
            version: version(next()),
        },
        27..=29 => Request::Exists {
            path: path(next()),
            watch: next().is_multiple_of(2),
        },
        30..=32 => Request::GetData {
            path: path(next()),
            watch: next().is_multiple_of(2),
        },
        33..=34 => Request::GetChildren {
            path: path(next()),
            watch: next().is_multiple_of(2),
        },
        35 => Request::GetChildren2 {
            path: path(next()),
            watch: next().is_multiple_of(2),
        },
        36 => Request::GetAcl { path: path(next()) },
        37 => Request::SetAcl {
            path: path(next()),
            acl: acl(next()),
            version: version(next()),
        },
        38 => Request::Sync { path: path(next()) },
        39 => Request::GetEphemerals {
            prefix: path(next()),
        },
        40 => Request::GetAllChildrenNumber { path: path(next()) },
        41..=44 => Request::AddWatch {
            path: path(next()),
            mode: i32::from(next() % 3),
        },
        45 => Request::CheckWatches {
            path: path(next()),
            kind: i32::from(next() % 7),
        },
        46..=47 => Request::RemoveWatches {
            path: path(next()),
            kind: i32::from(next() % 7),
        },
        48..=55 => Request::Multi((0..next() % 6).map(|_| multi_op(&mut next)).collect()),
        56 => Request::MultiRead((0..next() % 4).map(|_| multi_read_op(&mut next)).collect()),
        57..=58 => Request::SetWatches2 {
            relative_zxid: Zxid(i64::from(next())),
            data: paths(&mut next),
            exist: paths(&mut next),
            child: paths(&mut next),
            persistent: paths(&mut next),
            persistent_recursive: paths(&mut next),
        },
        59 => Request::SetWatches {
            relative_zxid: Zxid(i64::from(next())),
            data: paths(&mut next),
            exist: paths(&mut next),
            child: paths(&mut next),
        },
        60 => Request::CloseSession,
        61 => Request::Sasl {
            token: Some((0..next() % 64).map(|_| next()).collect()),
        },
        62 => Request::WhoAmI,
        _ => match next() % 4 {
            0 => Request::Ping,
            1 => Request::Auth {
                kind: 0,
                scheme: Some("digest".into()),
                data: Some((0..next() % 16).map(|_| next()).collect()),
            },
            choice => Request::Auth {
                kind: 0,
                scheme: Some(["digest", "ip", "world"][usize::from(next() % 3)].into()),
                data: Some(Bytes::from_static(
                    [&b"bob:pw"[..], b"super:secret"][usize::from(choice - 2)],
                )),
            },
        },
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

fn path(choice: u8) -> Option<Ustring> {
    PATHS
        .get(usize::from(choice % 20))
        .map(|path| (*path).into())
}

fn paths(next: &mut impl FnMut() -> u8) -> Vec<Ustring> {
    (0..next() % 3).filter_map(|_| path(next())).collect()
}

fn version(choice: u8) -> i32 {
    [-1, -1, -1, 0, 1, 2, -2, i32::MAX][usize::from(choice % 8)]
}

fn some_data(choice: u8) -> Option<Bytes> {
    if choice > 240 {
        return Some(Bytes::from_static(b"count=2,bytes=9=;byteHardLimit=50"));
    }
    (!choice.is_multiple_of(8)).then(|| vec![choice; usize::from(choice % 8 * 20)].into())
}

fn acl(choice: u8) -> AclList {
    let entry = |scheme: &str, id: &str| Acl {
        perms: Perms::READ,
        scheme: Some(scheme.into()),
        id: Some(id.into()),
    };
    match choice % 8 {
        0 => AclList::null(),
        1 => AclList::new(&[]),
        2 => AclList::new(&[entry("digest", "bob:ikIaKsbtGweaHnb/jKn7OHqbunM=")]),
        3 => AclList::new(&[entry("ip", "10.0.0.1"), entry("digest", "a:b")]),
        4 => AclList::new(&[entry("auth", "")]),
        5 => AclList::world_read(),
        _ => AclList::world_all(),
    }
}

fn create(next: &mut impl FnMut() -> u8) -> Create {
    let ops = [
        CreateOp::Create,
        CreateOp::Create2,
        CreateOp::Container,
        CreateOp::Ttl,
    ];
    Create {
        op: ops[usize::from(next() % 4)],
        path: path(next()),
        data: some_data(next()),
        acl: acl(next()),
        flags: i32::from(next() % 8),
        ttl_ms: [1_000, 1, 60_000, 0][usize::from(next() % 4)],
    }
}

fn multi_op(next: &mut impl FnMut() -> u8) -> MultiOp {
    match next() % 8 {
        0..=3 => MultiOp::Create(create(next)),
        4..=5 => MultiOp::Delete {
            path: path(next()),
            version: version(next()),
        },
        6 => MultiOp::SetData {
            path: path(next()),
            data: some_data(next()),
            version: version(next()),
        },
        _ => MultiOp::Check {
            path: path(next()),
            version: version(next()),
        },
    }
}

fn multi_read_op(next: &mut impl FnMut() -> u8) -> MultiReadOp {
    let (path, watch) = (path(next()), next().is_multiple_of(2));
    if next().is_multiple_of(2) {
        MultiReadOp::GetData { path, watch }
    } else {
        MultiReadOp::GetChildren { path, watch }
    }
}
