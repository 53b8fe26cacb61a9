//! Pairs of bytes and values, checked in both directions: here the exchanges of
//! `docs/zookeeper-protocol.md` section 27, in `layout` the other records, in `encoding` odd
//! encodings and refusals, in `numbers` numbers and texts.

mod encoding;
mod layout;
mod numbers;
mod vectors;

use bytes::Bytes;
use minikeeper_protocol::{
    AclList, AddWatchMode, ConnectRequest, ConnectResponse, Create, CreateOp, DecodeError,
    ErrorCode, EventKind, MultiOp, MultiResult, OpCode, Reader, Reply, ReplyHeader, ReplyRef,
    Request, RequestHeader, SessionId, Stat, Ustring, WatcherEvent, Xid, Zxid, event, frame,
};
use vectors::hex;

// Exchanges of section 27.

#[test]
fn every_vector_is_one_whole_frame_and_replies_echo_the_xid() {
    for exchange in vectors::ALL {
        let client = message(exchange.client);
        let replies: Vec<Bytes> = exchange.server.iter().map(|text| message(text)).collect();
        if !exchange.is_handshake {
            let request = RequestHeader::decode(&mut Reader::new(&client)).unwrap();
            let reply = replies.last().expect("every request gets a reply");
            let reply = ReplyHeader::decode(&mut Reader::new(reply)).unwrap();
            assert_eq!(reply.xid, request.xid, "{}", exchange.name);
        }
    }
}

#[test]
fn new_session_handshake_decodes_and_encodes_back() {
    let [response] = vectors::NEW_SESSION.server else {
        panic!("one response")
    };
    assert_connect_request(vectors::NEW_SESSION.client, &ConnectRequest::new(10_000));
    assert_connect_response(
        response,
        &ConnectResponse {
            protocol_version: 0,
            timeout_ms: 10_000,
            session_id: SessionId(0x0100_000d_6068_00c6),
            password: Some(hex("8ae24c0fb22fdec3b4fdf6308f509833").into()),
            read_only: Some(false),
        },
    );
}

#[test]
fn handshake_with_unknown_session_decodes_and_encodes_back() {
    let [response] = vectors::UNKNOWN_SESSION.server else {
        panic!("one response")
    };
    assert_connect_request(
        vectors::UNKNOWN_SESSION.client,
        &ConnectRequest {
            session_id: SessionId(0x1234),
            password: Some(Bytes::from_static(&[1; 16])),
            ..ConnectRequest::new(10_000)
        },
    );
    assert_connect_response(response, &ConnectResponse::refused(Some(false)));
}

#[test]
fn handshake_without_read_only_byte_is_one_byte_shorter_both_ways() {
    assert_connect_request(
        "0000002c 00000000 0000000000000000 00002710 0000000000000000
        00000010 00000000000000000000000000000000",
        &ConnectRequest {
            read_only: None,
            ..ConnectRequest::new(10_000)
        },
    );
    assert_connect_response(
        "00000024 00000000 00000000 0000000000000000
        00000010 00000000000000000000000000000000",
        &ConnectResponse::refused(None),
    );
    assert_eq!(
        encoded_response(&ConnectResponse::refused(None)).len() - 4,
        36
    );
    assert_eq!(
        encoded_response(&ConnectResponse::refused(Some(false))).len() - 4,
        37
    );
}

#[test]
fn create_decodes_and_encodes_back() {
    let [reply] = vectors::CREATE.server else {
        panic!("one reply")
    };
    let request = Request::Create(gold_create(CreateOp::Create));
    assert_request(vectors::CREATE.client, 1, &request);
    assert_reply(reply, OpCode::Create, ok(1, 0x486), &Reply::Path(gold()));
}

#[test]
fn create2_of_existing_znode_decodes_and_encodes_back() {
    let [reply] = vectors::CREATE2_EXISTING.server else {
        panic!("one reply")
    };
    let request = Request::Create(gold_create(CreateOp::Create2));
    assert_request(vectors::CREATE2_EXISTING.client, 2, &request);
    assert_refusal(reply, failed(2, 0x487, ErrorCode::NodeExists));
}

#[test]
fn get_data_decodes_and_encodes_back() {
    let [reply] = vectors::GET_DATA.server else {
        panic!("one reply")
    };
    let request = Request::GetData {
        path: gold(),
        watch: true,
    };
    let data = Some(Bytes::from_static(b"hi"));
    assert_request(vectors::GET_DATA.client, 3, &request);
    assert_reply(
        reply,
        OpCode::GetData,
        ok(3, 0x487),
        &Reply::Data(data, CREATED),
    );
}

#[test]
fn set_data_with_own_event_decodes_and_encodes_back() {
    let [event, reply] = vectors::SET_DATA.server else {
        panic!("an event and a reply")
    };
    let request = Request::SetData {
        path: gold(),
        data: Some(Bytes::from_static(b"yo")),
        version: 0,
    };
    assert_request(vectors::SET_DATA.client, 4, &request);
    assert_event(event, Zxid(0x488), EventKind::DataChanged, "/gold");
    assert_reply(reply, OpCode::SetData, ok(4, 0x488), &Reply::Stat(CHANGED));
}

#[test]
fn exists_of_missing_znode_decodes_and_encodes_back() {
    let [reply] = vectors::EXISTS_MISSING.server else {
        panic!("one reply")
    };
    let request = Request::Exists {
        path: Some("/gold/none".into()),
        watch: true,
    };
    assert_request(vectors::EXISTS_MISSING.client, 5, &request);
    assert_refusal(reply, failed(5, 0x488, ErrorCode::NoNode));
}

#[test]
fn get_children2_decodes_and_encodes_back() {
    let [reply] = vectors::GET_CHILDREN2.server else {
        panic!("one reply")
    };
    let request = Request::GetChildren2 {
        path: gold(),
        watch: false,
    };
    assert_request(vectors::GET_CHILDREN2.client, 6, &request);
    assert_reply(
        reply,
        OpCode::GetChildren2,
        ok(6, 0x488),
        &Reply::Children2(Vec::new(), CHANGED),
    );
}

#[test]
fn failed_multi_decodes_and_encodes_back() {
    let [reply] = vectors::MULTI_FAILED.server else {
        panic!("one reply")
    };
    let request = Request::Multi(vec![
        MultiOp::SetData {
            path: gold(),
            data: Some(Bytes::from_static(b"z")),
            version: 1,
        },
        MultiOp::Check {
            path: gold(),
            version: 9,
        },
        MultiOp::Delete {
            path: gold(),
            version: 1,
        },
    ]);
    let results = Reply::Multi(vec![
        MultiResult::Error(None),
        MultiResult::Error(Some(ErrorCode::BadVersion)),
        MultiResult::Error(Some(ErrorCode::RuntimeInconsistency)),
    ]);
    assert_request(vectors::MULTI_FAILED.client, 7, &request);
    assert_reply(reply, OpCode::Multi, ok(7, 0x489), &results);
}

#[test]
fn multi_decodes_and_encodes_back() {
    let [reply] = vectors::MULTI.server else {
        panic!("one reply")
    };
    let request = Request::Multi(vec![
        MultiOp::Check {
            path: gold(),
            version: 1,
        },
        MultiOp::Delete {
            path: gold(),
            version: 1,
        },
    ]);
    let results = Reply::Multi(vec![MultiResult::Check, MultiResult::Delete]);
    assert_request(vectors::MULTI.client, 8, &request);
    assert_reply(reply, OpCode::Multi, ok(8, 0x48a), &results);
}

#[test]
fn ping_decodes_and_encodes_back() {
    let [reply] = vectors::PING.server else {
        panic!("one reply")
    };
    assert_request(vectors::PING.client, Xid::PING.0, &Request::Ping);
    assert_reply(reply, OpCode::Ping, ok(Xid::PING.0, 0x48a), &Reply::Empty);
}

#[test]
fn auth_decodes_and_encodes_back() {
    let [reply] = vectors::AUTH.server else {
        panic!("one reply")
    };
    let request = Request::Auth {
        kind: 0,
        scheme: Some("digest".into()),
        data: Some(Bytes::from_static(b"bob:pw")),
    };
    assert_request(vectors::AUTH.client, Xid::AUTH.0, &request);
    assert_reply(reply, OpCode::Auth, ok(Xid::AUTH.0, 0), &Reply::Empty);
}

#[test]
fn add_watch_decodes_and_encodes_back() {
    let [reply] = vectors::ADD_WATCH.server else {
        panic!("one reply")
    };
    let request = Request::AddWatch {
        path: gold(),
        mode: AddWatchMode::PersistentRecursive.code(),
    };
    assert_request(vectors::ADD_WATCH.client, 9, &request);
    assert_reply(reply, OpCode::AddWatch, ok(9, 0x48a), &Reply::WatchAdded);
}

#[test]
fn set_watches_with_event_decodes_and_encodes_back() {
    let [event, reply] = vectors::SET_WATCHES.server else {
        panic!("an event and a reply")
    };
    let request = Request::SetWatches {
        relative_zxid: Zxid(5),
        data: vec!["/gold".into()],
        exist: Vec::new(),
        child: Vec::new(),
    };
    let header = ok(Xid::SET_WATCHES.0, 0x48a);
    assert_request(vectors::SET_WATCHES.client, Xid::SET_WATCHES.0, &request);
    assert_event(event, Zxid::NONE, EventKind::Deleted, "/gold");
    assert_reply(reply, OpCode::SetWatches, header, &Reply::Empty);
}

#[test]
fn close_session_decodes_and_encodes_back() {
    let [reply] = vectors::CLOSE_SESSION.server else {
        panic!("one reply")
    };
    assert_request(vectors::CLOSE_SESSION.client, 10, &Request::CloseSession);
    assert_reply(reply, OpCode::CloseSession, ok(10, 0x48b), &Reply::Empty);
}

// Replies with nulls, without a body, or without a reply.

#[test]
fn sync_and_sasl_replies_keep_null() {
    assert_body("ffffffff", OpCode::Sync, &Reply::Path(None));
    assert_body("ffffffff", OpCode::Sasl, &Reply::Token(None));
    assert_body("00000000", OpCode::Sasl, &Reply::Token(Some(Bytes::new())));
}

#[test]
fn add_watch_reply_without_its_int_is_refused() {
    assert_eq!(
        decode_reply(OpCode::AddWatch, &hex("000000")),
        Err(DecodeError::Truncated { missing: 1 })
    );
}

#[test]
fn reply_to_operation_without_one_is_refused() {
    for (op, code) in [(OpCode::Check, 13), (OpCode::CreateSession, -10)] {
        let error = DecodeError::Value {
            field: "operation",
            value: code,
        };
        assert_eq!(decode_reply(op, &[0; 80]), Err(error));
    }
}

#[test]
fn create2_reply_with_null_path_is_refused() {
    let mut body = hex("ffffffff");
    CREATED.encode(&mut body);
    for op in [OpCode::Create2, OpCode::CreateContainer, OpCode::CreateTtl] {
        let error = DecodeError::Null { field: "path" };
        assert_eq!(decode_reply(op, &body), Err(error));
    }
}

// Helpers.

const CREATED: Stat = Stat {
    czxid: Zxid(0x486),
    mzxid: Zxid(0x486),
    ctime_ms: 0x01a1_fd25_020c,
    mtime_ms: 0x01a1_fd25_020c,
    version: 0,
    cversion: 0,
    aversion: 0,
    ephemeral_owner: SessionId::NONE,
    data_length: 2,
    num_children: 0,
    pzxid: Zxid(0x486),
};

const CHANGED: Stat = Stat {
    mzxid: Zxid(0x488),
    mtime_ms: 0x01a1_fd25_020e,
    version: 1,
    ..CREATED
};

#[expect(clippy::unnecessary_wraps, reason = "paths on the wire are optional")]
fn gold() -> Option<Ustring> {
    Some("/gold".into())
}

fn gold_create(op: CreateOp) -> Create {
    Create {
        op,
        path: gold(),
        data: Some(Bytes::from_static(b"hi")),
        acl: AclList::world_all(),
        flags: 0,
        ttl_ms: 0,
    }
}

fn ok(xid: i32, zxid: i64) -> ReplyHeader {
    ReplyHeader {
        xid: Xid(xid),
        zxid: Zxid(zxid),
        error: None,
    }
}

fn failed(xid: i32, zxid: i64, error: ErrorCode) -> ReplyHeader {
    ReplyHeader {
        error: Some(error),
        ..ok(xid, zxid)
    }
}

/// Returns the message in a single frame, given in hex.
fn message(text: &str) -> Bytes {
    let wire = hex(text);
    let body = frame::next(&wire, frame::BYTES_MAX_DEFAULT);
    let body = body.expect("a good length").expect("a whole frame");
    assert_eq!(body.end, wire.len(), "nothing follows the frame");
    Bytes::copy_from_slice(&wire[body])
}

fn decode_request(op: OpCode, body: &[u8]) -> Result<Request, DecodeError> {
    Request::decode(op, &mut Reader::new(&Bytes::copy_from_slice(body)))
}

fn decode_reply(op: OpCode, body: &[u8]) -> Result<Reply, DecodeError> {
    Reply::decode(op, &mut Reader::new(&Bytes::copy_from_slice(body)))
}

fn encoded_response(response: &ConnectResponse) -> Vec<u8> {
    let mut out = Vec::new();
    response.encode(&mut out);
    out
}

#[track_caller]
fn assert_connect_request(text: &str, expected: &ConnectRequest) {
    let wire = message(text);
    let mut reader = Reader::new(&wire);
    assert_eq!(ConnectRequest::decode(&mut reader).as_ref(), Ok(expected));
    assert_eq!(reader.remaining(), 0);
    let mut out = Vec::new();
    expected.encode(&mut out);
    assert_eq!(out, hex(text));
}

#[track_caller]
fn assert_connect_response(text: &str, expected: &ConnectResponse) {
    let wire = message(text);
    let mut reader = Reader::new(&wire);
    assert_eq!(ConnectResponse::decode(&mut reader).as_ref(), Ok(expected));
    assert_eq!(reader.remaining(), 0);
    assert_eq!(encoded_response(expected), hex(text));
}

#[track_caller]
fn assert_request(text: &str, xid: i32, expected: &Request) {
    let wire = message(text);
    let mut reader = Reader::new(&wire);
    let header = RequestHeader {
        xid: Xid(xid),
        op: expected.op().code(),
    };
    assert_eq!(RequestHeader::decode(&mut reader), Ok(header));
    assert_eq!(
        Request::decode(expected.op(), &mut reader).as_ref(),
        Ok(expected)
    );
    assert_eq!(reader.remaining(), 0);
    let mut out = Vec::new();
    expected.encode(Xid(xid), &mut out);
    assert_eq!(out, hex(text));
}

#[track_caller]
fn assert_reply(text: &str, op: OpCode, header: ReplyHeader, expected: &Reply) {
    let wire = message(text);
    let mut reader = Reader::new(&wire);
    assert_eq!(ReplyHeader::decode(&mut reader), Ok(header));
    assert_eq!(Reply::decode(op, &mut reader).as_ref(), Ok(expected));
    assert_eq!(reader.remaining(), 0);
    let mut out = Vec::new();
    expected
        .encode(header, &mut out, ReplyRef::BYTES_MAX)
        .expect("it fits into a frame");
    assert_eq!(out, hex(text));
}

/// Does the same as [`assert_reply`] for a body without a header.
#[track_caller]
fn assert_body(text: &str, op: OpCode, expected: &Reply) {
    let body = hex(text);
    let mut whole = Vec::new();
    frame::put(&mut whole, |out| {
        ok(1, 1).encode(out);
        out.extend_from_slice(&body);
    });
    let text: String = whole.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_reply(&text, op, ok(1, 1), expected);
}

#[track_caller]
fn assert_refusal(text: &str, header: ReplyHeader) {
    let wire = message(text);
    let mut reader = Reader::new(&wire);
    assert_eq!(ReplyHeader::decode(&mut reader), Ok(header));
    assert_eq!(reader.remaining(), 0);
    let mut out = Vec::new();
    ReplyRef::Empty
        .encode(header, &mut out, ReplyRef::BYTES_MAX)
        .expect("it fits into a frame");
    assert_eq!(out, hex(text));
}

#[track_caller]
fn assert_event(text: &str, zxid: Zxid, kind: EventKind, path: &str) {
    let wire = message(text);
    let mut reader = Reader::new(&wire);
    assert_eq!(
        ReplyHeader::decode(&mut reader),
        Ok(ok(Xid::EVENT.0, zxid.0))
    );
    let path = Ustring::from(path);
    let mut out = Vec::new();
    event::encode(kind, path.as_bytes(), zxid, &mut out);
    assert_eq!(
        WatcherEvent::decode(&mut reader),
        Ok(WatcherEvent { kind, path })
    );
    assert_eq!(reader.remaining(), 0);
    assert_eq!(out, hex(text));
}
