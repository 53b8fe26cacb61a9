//! Random traces: lists of steps over few colliding paths, connections and sessions.

use bytes::Bytes;
use minikeeper_protocol::{
    Acl, AclList, Create, CreateOp, MultiOp, MultiReadOp, Perms, Request, Ustring, Zxid,
};
use minikeeper_tests::model::access::LOGINS;
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

fn step() -> BoxedStrategy<Step> {
    let conn = 0..CONNS;
    let session = 0..8_usize;
    prop_oneof![
        150 => (conn.clone(), request()).prop_map(|(conn, request)| Step::Request { conn, request }),
        4 => (conn.clone(), prop::sample::select(vec![-1, 0, 2_000, 7_500, 10_000, 99_000_000]))
            .prop_map(|(conn, timeout_ms)| Step::Open { conn, timeout_ms }),
        4 => (conn.clone(), session.clone(), prop::bool::weighted(0.8))
            .prop_map(|(conn, session, is_password_right)| Step::Resume {
                conn,
                session,
                is_password_right,
            }),
        1 => conn.clone().prop_map(|conn| Step::OpenAhead { conn }),
        2 => raw(),
        2 => conn.prop_map(|conn| Step::Disconnect { conn }),
        1 => session.prop_map(|session| Step::Expire { session }),
        4 => prop::sample::select(vec![1_u64, 999, 1_000, 2_500, 11_000])
            .prop_map(|by_ms| Step::Advance { by_ms }),
    ]
    .boxed()
}

fn raw() -> BoxedStrategy<Step> {
    // Unknown operations, and known ones with too short a body.
    let op = prop::sample::select(vec![1, 4, 5, 14, 22, 101, 10, 0, 13, -1, 999]);
    (0..CONNS, op, prop::collection::vec(any::<u8>(), 0..3))
        .prop_map(|(conn, op, body)| Step::Raw { conn, op, body })
        .boxed()
}

fn path() -> BoxedStrategy<Option<Ustring>> {
    let good = prop::sample::select(vec![
        "/a", "/a", "/a", "/a", "/a", "/a/b", "/a/b", "/a/b", "/a/c", "/b", "/b", "/b", "/b/c",
        "/a/b/c", "/ab", "/é", "/e", "/e/x",
    ]);
    let built_in =
        prop::sample::select(vec!["/", "/zookeeper", "/zookeeper/quota", "/zookeeper/q"]);
    let numbered = prop::sample::select(vec![
        "/a/0000000000",
        "/a/0000000001",
        "/s0000000000",
        "/s0000000001",
        "/s0000000002",
        "/a/s0000000001",
    ]);
    let bad = prop::sample::select(vec![
        "",
        "a",
        "a/b",
        "//",
        "/a/",
        "/a//b",
        "/a/.",
        "/a/../b",
        "/a\0",
        "/\u{e000}",
        "/a\u{7f}",
        "/missing/x",
        "/missing/",
    ]);
    prop_oneof![
        40 => good.prop_map(Some),
        3 => built_in.prop_map(Some),
        4 => numbered.prop_map(Some),
        3 => bad.prop_map(Some),
        1 => Just(None),
    ]
    .prop_map(|path| path.map(Ustring::from))
    .boxed()
}

fn data() -> BoxedStrategy<Option<Bytes>> {
    prop::sample::select(vec![None, Some(&b""[..]), Some(b"x"), Some(b"longer data")])
        .prop_map(|data| data.map(Bytes::from_static))
        .boxed()
}

fn version() -> BoxedStrategy<i32> {
    prop_oneof![4 => Just(-1), 4 => 0..3, 1 => prop::sample::select(vec![-2, 7, i32::MAX])].boxed()
}

fn acl() -> BoxedStrategy<AclList> {
    let entry = |perms: i32, scheme: &str, id: Option<&str>| Acl {
        perms: Perms(perms),
        scheme: Some(scheme.into()),
        id: id.map(Into::into),
    };
    let world = entry(31, "world", Some("anyone"));
    let digest = entry(1, "digest", Some("bob:x"));
    let [bob, alice, _] = LOGINS.map(|(_, identity)| entry(31, "digest", Some(identity)));
    let lists = vec![
        AclList::new(std::slice::from_ref(&digest)),
        AclList::new(&[world.clone(), digest.clone(), world]),
        AclList::new(&[entry(-1, "ip", Some("127.0.0.1"))]),
        AclList::new(&[entry(13, "ip", Some("127.0.0.0/8")), bob.clone()]),
        AclList::new(&[entry(16, "world", Some("anyone")), alice.clone()]),
        AclList::new(&[entry(30, "world", Some("anyone")), bob, alice]),
        AclList::new(&[entry(1, "world", Some("anyone")), entry(31, "auth", None)]),
        AclList::new(&[entry(31, "super", Some(""))]),
        AclList::new(&[entry(31, "world", Some("foo"))]),
        AclList::new(&[entry(31, "auth", Some(""))]),
        AclList::new(&[entry(31, "digest", Some("bob"))]),
        AclList::new(&[entry(31, "world", None)]),
        AclList::new(&[]),
        AclList::null(),
    ];
    prop_oneof![6 => Just(AclList::world_all()), 1 => prop::sample::select(lists)].boxed()
}

fn create() -> BoxedStrategy<Create> {
    let op = prop_oneof![
        5 => Just(CreateOp::Create),
        5 => Just(CreateOp::Create2),
        1 => Just(CreateOp::Container),
        1 => Just(CreateOp::Ttl),
    ];
    let flags = prop_oneof![
        8 => Just(0),
        6 => Just(1),
        4 => Just(2),
        4 => Just(3),
        1 => 4..8,
    ];
    let ttl = prop::sample::select(vec![1_000_i64, 1, (1 << 40) - 1, 1 << 40, 0, -1]);
    let sequential = prop::sample::select(vec!["/s", "/a/", "/a/s", "/", "/missing/s"]);
    let path = prop_oneof![4 => path(), 1 => sequential.prop_map(|path| Some(path.into()))];
    (op, path, data(), acl(), flags, ttl)
        .prop_map(|(op, path, data, acl, flags, ttl_ms)| Create {
            op,
            path,
            data,
            acl,
            flags,
            ttl_ms: if op == CreateOp::Ttl { ttl_ms } else { 0 },
        })
        .boxed()
}

fn multi_op() -> BoxedStrategy<MultiOp> {
    prop_oneof![
        4 => create().prop_map(MultiOp::Create),
        3 => (path(), version()).prop_map(|(path, version)| MultiOp::Delete { path, version }),
        3 => (path(), data(), version()).prop_map(|(path, data, version)| MultiOp::SetData {
            path,
            data,
            version,
        }),
        1 => (path(), version()).prop_map(|(path, version)| MultiOp::Check { path, version }),
    ]
    .boxed()
}

fn multi_read_op() -> BoxedStrategy<MultiReadOp> {
    (path(), any::<bool>(), any::<bool>())
        .prop_map(|(path, watch, is_data)| {
            if is_data {
                MultiReadOp::GetData { path, watch }
            } else {
                MultiReadOp::GetChildren { path, watch }
            }
        })
        .boxed()
}

fn paths() -> BoxedStrategy<Vec<Ustring>> {
    let path = prop::sample::select(vec!["/a", "/b", "/a/b", "/", "/e", "/missing", ""]);
    prop::collection::vec(path.prop_map(Ustring::from), 0..3).boxed()
}

fn request() -> BoxedStrategy<Request> {
    let changes = prop_oneof![
        8 => create().prop_map(Request::Create),
        5 => (path(), version()).prop_map(|(path, version)| Request::Delete { path, version }),
        5 => (path(), data(), version()).prop_map(|(path, data, version)| Request::SetData {
            path,
            data,
            version,
        }),
        1 => (path(), acl(), version())
            .prop_map(|(path, acl, version)| Request::SetAcl { path, acl, version }),
        4 => prop::collection::vec(multi_op(), 0..5).prop_map(Request::Multi),
    ]
    .boxed();
    let reads = prop_oneof![
        3 => (path(), any::<bool>()).prop_map(|(path, watch)| Request::Exists { path, watch }),
        3 => (path(), any::<bool>()).prop_map(|(path, watch)| Request::GetData { path, watch }),
        2 => (path(), any::<bool>()).prop_map(|(path, watch)| Request::GetChildren { path, watch }),
        2 => (path(), any::<bool>()).prop_map(|(path, watch)| Request::GetChildren2 { path, watch }),
        1 => path().prop_map(|path| Request::GetAcl { path }),
        1 => path().prop_map(|path| Request::Sync { path }),
        3 => prop::sample::select(vec![None, Some("/"), Some("/a"), Some("/e")])
            .prop_map(|prefix| Request::GetEphemerals { prefix: prefix.map(Ustring::from) }),
        1 => path().prop_map(|path| Request::GetAllChildrenNumber { path }),
        1 => prop::collection::vec(multi_read_op(), 0..4).prop_map(Request::MultiRead),
    ].boxed();
    let watches = prop_oneof![
        4 => (path(), 0..3).prop_map(|(path, mode)| Request::AddWatch { path, mode }),
        1 => (path(), 0..7).prop_map(|(path, kind)| Request::CheckWatches { path, kind }),
        2 => (path(), 0..7).prop_map(|(path, kind)| Request::RemoveWatches { path, kind }),
        1 => (-1_i64..20, paths(), paths(), paths()).prop_map(|(zxid, data, exist, child)| {
            Request::SetWatches {
                relative_zxid: Zxid(zxid),
                data,
                exist,
                child,
            }
        }),
        1 => (-1_i64..20, paths(), paths(), paths(), paths(), paths()).prop_map(
            |(zxid, data, exist, child, persistent, persistent_recursive)| Request::SetWatches2 {
                relative_zxid: Zxid(zxid),
                data,
                exist,
                child,
                persistent,
                persistent_recursive,
            }
        ),
    ]
    .boxed();
    let rare = prop::sample::select(vec![
        Request::CloseSession,
        Request::WhoAmI,
        Request::CreateSession,
        Request::Reconfig {
            joining: None,
            leaving: None,
            members: None,
            config_id: -1,
        },
        Request::Sasl {
            token: Some(Bytes::new()),
        },
    ]);
    let auth = prop_oneof![
        12 => prop::sample::select(LOGINS.map(|(login, _)| ("digest", Some(login))).to_vec()),
        1 => prop::sample::select(vec![
            ("digest", None),
            ("ip", Some("")),
            ("world", Some("anyone")),
            ("x509", Some("CN=a")),
        ]),
    ];
    let auth = auth.prop_map(|(scheme, data)| Request::Auth {
        kind: 0,
        scheme: Some(scheme.into()),
        data: data.map(|data| Bytes::from_static(data.as_bytes())),
    });
    prop_oneof![
        2 => auth,
        24 => changes,
        14 => reads,
        8 => watches,
        1 => Just(Request::Ping),
        1 => rare,
    ]
    .boxed()
}
