//! Arbitrary records, valid or odd, but always in the form that decoding returns.
//!
//! The match over [`OpCode`] in [`request`] has no wildcard: a new operation does not compile until
//! its record is added here.

use bytes::Bytes;
use minikeeper_protocol::{
    Acl, AclList, ClientInfo, ConnectRequest, ConnectResponse, Create, CreateOp, ErrorCode,
    EventKind, MultiOp, MultiReadOp, MultiResult, OpCode, Perms, Reply, ReplyHeader, Request,
    SessionId, Stat, Ustring, WatcherEvent, Xid, Zxid,
};
use proptest::{collection::vec, option, prelude::*};

/// Yields text, odd bytes and empty strings.
pub(crate) fn ustring() -> impl Strategy<Value = Ustring> {
    prop_oneof![
        Just("/".into()),
        Just("/locks/printer".into()),
        Just(Ustring::default()),
        vec(any::<char>(), 0..=12).prop_map(|text| text.into_iter().collect::<String>().into()),
        bytes().prop_map(Ustring::from),
    ]
}

pub(crate) fn bytes() -> impl Strategy<Value = Bytes> {
    vec(any::<u8>(), 0..24).prop_map(Bytes::from)
}

/// Yields paths, null one time in ten.
fn path() -> impl Strategy<Value = Option<Ustring>> {
    option::weighted(0.9, ustring())
}

fn data() -> impl Strategy<Value = Option<Bytes>> {
    option::weighted(0.8, bytes())
}

fn ustrings() -> impl Strategy<Value = Vec<Ustring>> {
    vec(ustring(), 0..5)
}

/// Yields small numbers, the ends of the range, and any others.
fn int() -> impl Strategy<Value = i32> {
    prop_oneof![-2..8_i32, Just(i32::MIN), Just(i32::MAX), any::<i32>()]
}

fn long() -> impl Strategy<Value = i64> {
    prop_oneof![-2..8_i64, Just(i64::MIN), Just(i64::MAX), any::<i64>()]
}

fn zxid() -> impl Strategy<Value = Zxid> {
    long().prop_map(Zxid)
}

pub(crate) fn xid() -> impl Strategy<Value = Xid> {
    int().prop_map(Xid)
}

/// Yields codes with and without a name; never zero, which means success.
pub(crate) fn error() -> impl Strategy<Value = Option<ErrorCode>> {
    option::of(prop_oneof![
        proptest::sample::select(ErrorCode::ALL),
        any::<i32>()
            .prop_filter("zero is success", |&code| code != 0)
            .prop_map(ErrorCode::from_code),
    ])
}

pub(crate) fn acl_list() -> impl Strategy<Value = AclList> {
    let acl = (int(), path(), path()).prop_map(|(perms, scheme, id)| Acl {
        perms: Perms(perms),
        scheme,
        id,
    });
    prop_oneof![
        Just(AclList::world_all()),
        Just(AclList::null()),
        vec(acl, 0..4).prop_map(|entries| AclList::new(&entries)),
    ]
}

pub(crate) fn stat() -> impl Strategy<Value = Stat> {
    (
        (zxid(), zxid(), long(), long()),
        (int(), int(), int(), long(), int(), int(), zxid()),
    )
        .prop_map(|((czxid, mzxid, ctime_ms, mtime_ms), rest)| Stat {
            czxid,
            mzxid,
            ctime_ms,
            mtime_ms,
            version: rest.0,
            cversion: rest.1,
            aversion: rest.2,
            ephemeral_owner: SessionId(rest.3),
            data_length: rest.4,
            num_children: rest.5,
            pzxid: rest.6,
        })
}

fn create(op: CreateOp) -> impl Strategy<Value = Create> {
    (path(), data(), acl_list(), int(), long()).prop_map(move |(path, data, acl, flags, ttl_ms)| {
        Create {
            op,
            path,
            data,
            acl,
            flags,
            // Only on the wire with this operation.
            ttl_ms: if op == CreateOp::Ttl { ttl_ms } else { 0 },
        }
    })
}

/// Yields operations of a multi with this code. Returns `None` if a multi cannot contain it.
pub(crate) fn multi_op(op: OpCode) -> Option<BoxedStrategy<MultiOp>> {
    Some(match op {
        OpCode::Create => create(CreateOp::Create).prop_map(MultiOp::Create).boxed(),
        OpCode::Create2 => create(CreateOp::Create2).prop_map(MultiOp::Create).boxed(),
        OpCode::CreateContainer => create(CreateOp::Container)
            .prop_map(MultiOp::Create)
            .boxed(),
        OpCode::CreateTtl => create(CreateOp::Ttl).prop_map(MultiOp::Create).boxed(),
        OpCode::Delete => (path(), int())
            .prop_map(|(path, version)| MultiOp::Delete { path, version })
            .boxed(),
        OpCode::SetData => (path(), data(), int())
            .prop_map(|(path, data, version)| MultiOp::SetData {
                path,
                data,
                version,
            })
            .boxed(),
        OpCode::Check => (path(), int())
            .prop_map(|(path, version)| MultiOp::Check { path, version })
            .boxed(),
        _ => return None,
    })
}

fn multi_ops() -> impl Strategy<Value = Vec<MultiOp>> {
    let kinds: Vec<_> = OpCode::ALL.iter().filter_map(|&op| multi_op(op)).collect();
    vec(proptest::strategy::Union::new(kinds), 0..6)
}

fn multi_read_ops() -> impl Strategy<Value = Vec<MultiReadOp>> {
    let op = (any::<bool>(), path(), any::<bool>()).prop_map(|(is_data, path, watch)| {
        if is_data {
            MultiReadOp::GetData { path, watch }
        } else {
            MultiReadOp::GetChildren { path, watch }
        }
    });
    vec(op, 0..6)
}

pub(crate) fn multi_results() -> impl Strategy<Value = Vec<MultiResult>> {
    let result = prop_oneof![
        ustring().prop_map(|path| MultiResult::Create { path }),
        (ustring(), stat()).prop_map(|(path, stat)| MultiResult::Create2 { path, stat }),
        Just(MultiResult::Delete),
        stat().prop_map(|stat| MultiResult::SetData { stat }),
        Just(MultiResult::Check),
        (data(), stat()).prop_map(|(data, stat)| MultiResult::GetData { data, stat }),
        ustrings().prop_map(|names| MultiResult::GetChildren { names }),
        error().prop_map(MultiResult::Error),
    ];
    vec(result, 0..6)
}

/// Yields requests with this code.
pub(crate) fn request(op: OpCode) -> BoxedStrategy<Request> {
    match op {
        OpCode::Create => create(CreateOp::Create).prop_map(Request::Create).boxed(),
        OpCode::Create2 => create(CreateOp::Create2).prop_map(Request::Create).boxed(),
        OpCode::CreateContainer => create(CreateOp::Container)
            .prop_map(Request::Create)
            .boxed(),
        OpCode::CreateTtl => create(CreateOp::Ttl).prop_map(Request::Create).boxed(),
        OpCode::Delete => (path(), int())
            .prop_map(|(path, version)| Request::Delete { path, version })
            .boxed(),
        OpCode::DeleteContainer => path()
            .prop_map(|path| Request::DeleteContainer { path })
            .boxed(),
        OpCode::Exists => (path(), any::<bool>())
            .prop_map(|(path, watch)| Request::Exists { path, watch })
            .boxed(),
        OpCode::GetData => (path(), any::<bool>())
            .prop_map(|(path, watch)| Request::GetData { path, watch })
            .boxed(),
        OpCode::SetData => (path(), data(), int())
            .prop_map(|(path, data, version)| Request::SetData {
                path,
                data,
                version,
            })
            .boxed(),
        OpCode::GetAcl => path().prop_map(|path| Request::GetAcl { path }).boxed(),
        OpCode::SetAcl => (path(), acl_list(), int())
            .prop_map(|(path, acl, version)| Request::SetAcl { path, acl, version })
            .boxed(),
        OpCode::GetChildren => (path(), any::<bool>())
            .prop_map(|(path, watch)| Request::GetChildren { path, watch })
            .boxed(),
        OpCode::GetChildren2 => (path(), any::<bool>())
            .prop_map(|(path, watch)| Request::GetChildren2 { path, watch })
            .boxed(),
        OpCode::Sync => path().prop_map(|path| Request::Sync { path }).boxed(),
        OpCode::Ping => Just(Request::Ping).boxed(),
        OpCode::Check => (path(), int())
            .prop_map(|(path, version)| Request::Check { path, version })
            .boxed(),
        OpCode::Multi => multi_ops().prop_map(Request::Multi).boxed(),
        // Operations that change something decode too; without any operations it is a plain
        // multiRead.
        OpCode::MultiRead => prop_oneof![
            multi_read_ops().prop_map(Request::MultiRead),
            multi_ops().prop_map(|ops| match ops.as_slice() {
                [] => Request::MultiRead(Vec::new()),
                _ => Request::MultiReadOfChanges(ops),
            }),
        ]
        .boxed(),
        OpCode::Reconfig => (path(), path(), path(), long())
            .prop_map(|(joining, leaving, members, config_id)| Request::Reconfig {
                joining,
                leaving,
                members,
                config_id,
            })
            .boxed(),
        OpCode::CheckWatches => (path(), int())
            .prop_map(|(path, kind)| Request::CheckWatches { path, kind })
            .boxed(),
        OpCode::RemoveWatches => (path(), int())
            .prop_map(|(path, kind)| Request::RemoveWatches { path, kind })
            .boxed(),
        OpCode::Auth => (int(), path(), data())
            .prop_map(|(kind, scheme, data)| Request::Auth { kind, scheme, data })
            .boxed(),
        OpCode::SetWatches => (zxid(), ustrings(), ustrings(), ustrings())
            .prop_map(|(relative_zxid, data, exist, child)| Request::SetWatches {
                relative_zxid,
                data,
                exist,
                child,
            })
            .boxed(),
        OpCode::SetWatches2 => (
            zxid(),
            (ustrings(), ustrings(), ustrings()),
            (ustrings(), ustrings()),
        )
            .prop_map(
                |(relative_zxid, (data, exist, child), persistent)| Request::SetWatches2 {
                    relative_zxid,
                    data,
                    exist,
                    child,
                    persistent: persistent.0,
                    persistent_recursive: persistent.1,
                },
            )
            .boxed(),
        OpCode::Sasl => data().prop_map(|token| Request::Sasl { token }).boxed(),
        OpCode::GetEphemerals => path()
            .prop_map(|prefix| Request::GetEphemerals { prefix })
            .boxed(),
        OpCode::GetAllChildrenNumber => path()
            .prop_map(|path| Request::GetAllChildrenNumber { path })
            .boxed(),
        OpCode::AddWatch => (path(), int())
            .prop_map(|(path, mode)| Request::AddWatch { path, mode })
            .boxed(),
        OpCode::WhoAmI => Just(Request::WhoAmI).boxed(),
        OpCode::CreateSession => Just(Request::CreateSession).boxed(),
        OpCode::CloseSession => Just(Request::CloseSession).boxed(),
    }
}

/// Yields successful replies to this operation. Returns `None` if it has none.
pub(crate) fn reply(op: OpCode) -> Option<BoxedStrategy<Reply>> {
    Some(match op {
        OpCode::Create | OpCode::Sync => path().prop_map(Reply::Path).boxed(),
        OpCode::Create2 | OpCode::CreateContainer | OpCode::CreateTtl => (ustring(), stat())
            .prop_map(|(path, stat)| Reply::PathStat(path, stat))
            .boxed(),
        OpCode::Exists | OpCode::SetData | OpCode::SetAcl => stat().prop_map(Reply::Stat).boxed(),
        OpCode::GetData | OpCode::Reconfig => (data(), stat())
            .prop_map(|(data, stat)| Reply::Data(data, stat))
            .boxed(),
        OpCode::GetChildren => ustrings().prop_map(Reply::Children).boxed(),
        OpCode::GetChildren2 => (ustrings(), stat())
            .prop_map(|(names, stat)| Reply::Children2(names, stat))
            .boxed(),
        OpCode::GetAcl => (acl_list(), stat())
            .prop_map(|(acl, stat)| Reply::Acl(acl, stat))
            .boxed(),
        OpCode::Multi | OpCode::MultiRead => multi_results().prop_map(Reply::Multi).boxed(),
        OpCode::GetEphemerals => ustrings().prop_map(Reply::Ephemerals).boxed(),
        OpCode::GetAllChildrenNumber => int().prop_map(Reply::Count).boxed(),
        OpCode::AddWatch => Just(Reply::WatchAdded).boxed(),
        OpCode::Sasl => data().prop_map(Reply::Token).boxed(),
        OpCode::WhoAmI => {
            let info =
                (ustring(), ustring()).prop_map(|(scheme, user)| ClientInfo { scheme, user });
            vec(info, 0..4).prop_map(Reply::ClientInfos).boxed()
        }
        OpCode::Check | OpCode::CreateSession => return None,
        _ => Just(Reply::Empty).boxed(),
    })
}

pub(crate) fn reply_header() -> impl Strategy<Value = ReplyHeader> {
    (xid(), zxid(), error()).prop_map(|(xid, zxid, error)| ReplyHeader { xid, zxid, error })
}

pub(crate) fn connect_request() -> impl Strategy<Value = ConnectRequest> {
    (
        (int(), zxid(), int(), long()),
        data(),
        option::of(any::<bool>()),
    )
        .prop_map(|(numbers, password, read_only)| ConnectRequest {
            protocol_version: numbers.0,
            last_zxid_seen: numbers.1,
            timeout_ms: numbers.2,
            session_id: SessionId(numbers.3),
            password,
            read_only,
        })
}

pub(crate) fn connect_response() -> impl Strategy<Value = ConnectResponse> {
    ((int(), int(), long()), data(), option::of(any::<bool>())).prop_map(
        |(numbers, password, read_only)| ConnectResponse {
            protocol_version: numbers.0,
            timeout_ms: numbers.1,
            session_id: SessionId(numbers.2),
            password,
            read_only,
        },
    )
}

/// Yields events with the zxid in their header.
pub(crate) fn event() -> impl Strategy<Value = (WatcherEvent, Zxid)> {
    let kinds = [
        EventKind::Created,
        EventKind::Deleted,
        EventKind::DataChanged,
        EventKind::ChildrenChanged,
    ];
    let event = (proptest::sample::select(kinds.to_vec()), ustring())
        .prop_map(|(kind, path)| WatcherEvent { kind, path });
    (event, zxid())
}
