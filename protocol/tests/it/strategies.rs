//! Arbitrary records, valid or odd, but always in the form that decoding returns.
//!
//! Requests and replies follow from the table of operations, so that a new operation has them too.

use bytes::Bytes;
use minikeeper_protocol::{
    Acl, AclList, ClientInfo, ConnectRequest, ConnectResponse, Create, CreateOp, ErrorCode,
    EventKind, FieldKind, MultiOp, MultiReadOp, MultiResult, OpCode, Perms, Reader, Reply,
    ReplyHeader, ReplyKind, Request, SessionId, Stat, Ustring, WatcherEvent, Xid, Zxid, jute,
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
    let Some(fields) = op.fields() else {
        return family(op);
    };
    let fields: Vec<_> = fields.iter().map(|(_, kind)| field(*kind)).collect();
    fields
        .prop_map(move |fields| {
            let body = Bytes::from(fields.concat());
            Request::decode(op, &mut Reader::new(&body)).expect("every field is well formed")
        })
        .boxed()
}

/// Yields fields of this kind, encoded.
fn field(kind: FieldKind) -> BoxedStrategy<Vec<u8>> {
    fn encoded<T: std::fmt::Debug + 'static>(
        values: impl Strategy<Value = T> + 'static,
        put: fn(&mut Vec<u8>, T),
    ) -> BoxedStrategy<Vec<u8>> {
        let encode = move |value| {
            let mut out = Vec::new();
            put(&mut out, value);
            out
        };
        values.prop_map(encode).boxed()
    }
    match kind {
        FieldKind::Path | FieldKind::Ustring => {
            encoded(path(), |out, path| jute::put_ustring(out, path.as_ref()))
        }
        FieldKind::Paths => encoded(ustrings(), |out, paths| {
            jute::put_ustrings(out, Some(&paths));
        }),
        FieldKind::Buffer => encoded(data(), |out, data| jute::put_buffer(out, data.as_deref())),
        FieldKind::Acl => encoded(acl_list(), |out, list| list.encode(out)),
        FieldKind::Bool => encoded(any::<bool>(), jute::put_bool),
        FieldKind::Int => encoded(int(), jute::put_int),
        FieldKind::Long | FieldKind::Zxid => encoded(long(), jute::put_long),
    }
}

/// Yields requests whose records are not lists of fields.
fn family(op: OpCode) -> BoxedStrategy<Request> {
    match op {
        OpCode::Create => create(CreateOp::Create).prop_map(Request::Create).boxed(),
        OpCode::Create2 => create(CreateOp::Create2).prop_map(Request::Create).boxed(),
        OpCode::CreateContainer => create(CreateOp::Container)
            .prop_map(Request::Create)
            .boxed(),
        OpCode::CreateTtl => create(CreateOp::Ttl).prop_map(Request::Create).boxed(),
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
        op => panic!("{op:?} has fields"),
    }
}

/// Yields successful replies to this operation. Returns `None` if it has none.
pub(crate) fn reply(op: OpCode) -> Option<BoxedStrategy<Reply>> {
    Some(match op.reply() {
        ReplyKind::None => return None,
        ReplyKind::Empty => Just(Reply::Empty).boxed(),
        ReplyKind::Path => path().prop_map(Reply::Path).boxed(),
        ReplyKind::PathStat => (ustring(), stat())
            .prop_map(|(path, stat)| Reply::PathStat(path, stat))
            .boxed(),
        ReplyKind::Stat => stat().prop_map(Reply::Stat).boxed(),
        ReplyKind::Data => (data(), stat())
            .prop_map(|(data, stat)| Reply::Data(data, stat))
            .boxed(),
        ReplyKind::Children => ustrings().prop_map(Reply::Children).boxed(),
        ReplyKind::Children2 => (ustrings(), stat())
            .prop_map(|(names, stat)| Reply::Children2(names, stat))
            .boxed(),
        ReplyKind::Acl => (acl_list(), stat())
            .prop_map(|(acl, stat)| Reply::Acl(acl, stat))
            .boxed(),
        ReplyKind::Multi => multi_results().prop_map(Reply::Multi).boxed(),
        ReplyKind::Ephemerals => ustrings().prop_map(Reply::Ephemerals).boxed(),
        ReplyKind::Count => int().prop_map(Reply::Count).boxed(),
        ReplyKind::WatchAdded => Just(Reply::WatchAdded).boxed(),
        ReplyKind::Token => data().prop_map(Reply::Token).boxed(),
        ReplyKind::ClientInfos => {
            let info =
                (ustring(), ustring()).prop_map(|(scheme, user)| ClientInfo { scheme, user });
            vec(info, 0..4).prop_map(Reply::ClientInfos).boxed()
        }
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
