//! Malformed bytes and the server's answers: a close without a byte where the frame boundaries are
//! lost, an error reply where they are not.

use minikeeper_protocol::{
    ConnectRequest, CreateMode, ErrorCode, OpCode, Reply, Request, Xid, Zxid, frame, jute,
};
use minikeeper_test_kit::wire::{self, Wire};

use crate::kit::{Scene, TIMEOUT_MS, memory_kib};

/// Returns a message: an xid, an operation code, and the bytes that `body` appends.
fn message(xid: i32, op: i32, body: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    jute::put_int(&mut out, xid);
    jute::put_int(&mut out, op);
    body(&mut out);
    out
}

fn framed(message: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    frame::put(&mut out, |out| out.extend_from_slice(message));
    out
}

fn path(out: &mut Vec<u8>, path: &str) {
    jute::put_buffer(out, Some(path.as_bytes()));
}

/// `docs/zookeeper-protocol.md` sections 2.1 and 6.2, rule 1: the server reads the first frame as
/// the handshake.
#[test]
fn invalid_handshake_closes_without_a_byte() {
    let mut password_beyond_frame = Vec::new();
    ConnectRequest::new(TIMEOUT_MS).encode(&mut password_beyond_frame);
    password_beyond_frame[28..32].copy_from_slice(&17_i32.to_be_bytes());
    password_beyond_frame.truncate(48);
    password_beyond_frame[3] = 44;
    let mut password_length_negative = password_beyond_frame.clone();
    password_length_negative[28..32].copy_from_slice(&(-2_i32).to_be_bytes());
    let garbage: Vec<u8> = (0..64_u8)
        .map(|byte| byte.wrapping_mul(151) | 0x80)
        .collect();
    let cases: [(&str, Vec<u8>); 13] = [
        ("random bytes", garbage),
        ("zeros only, an empty frame", vec![0; 4]),
        (
            "http",
            b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec(),
        ),
        (
            "tls hello",
            b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03".to_vec(),
        ),
        ("length -1", (-1_i32).to_be_bytes().to_vec()),
        ("smallest length", i32::MIN.to_be_bytes().to_vec()),
        ("largest length", i32::MAX.to_be_bytes().to_vec()),
        (
            "length one above the limit",
            0x10_0000_i32.to_be_bytes().to_vec(),
        ),
        ("a short frame of garbage", framed(b"not a handshake")),
        ("ping", framed(&message(-2, 11, |_| {}))),
        ("getData", framed(&message(1, 4, |out| path(out, "/")))),
        ("password longer than the frame", password_beyond_frame),
        ("password length -2", password_length_negative),
    ];
    let scene = Scene::new();
    for (what, bytes) in cases {
        let mut wire = scene.connect();
        wire.send_raw(&bytes);
        assert_eq!(wire.rest(), b"", "{what}");
    }
    scene.wait_alone();
    assert_eq!(scene.server.sessions().len(), 1, "only the bystander's");
    scene.end();
}

/// `docs/zookeeper-protocol.md` sections 2.1 and 6.5: invalid lengths and incomplete headers.
#[test]
fn invalid_frame_in_a_session_closes_without_a_byte() {
    let cases: [(&str, Vec<u8>); 8] = [
        ("length -1", (-1_i32).to_be_bytes().to_vec()),
        ("smallest length", i32::MIN.to_be_bytes().to_vec()),
        (
            "length one above the limit",
            0x10_0000_i32.to_be_bytes().to_vec(),
        ),
        ("a four-letter word, now a length", b"ruok".to_vec()),
        ("empty frame", framed(b"")),
        ("half a header", framed(&[0; 4])),
        ("a header without its last byte", framed(&[0; 7])),
        ("http", b"GET / HTTP/1.1\r\n\r\n".to_vec()),
    ];
    let scene = Scene::new();
    for (what, bytes) in cases {
        let (mut wire, response) = scene.open_session();
        wire.send_raw(&bytes);
        assert_eq!(wire.rest(), b"", "{what}");
        // Only the connection ends (`docs/zookeeper-protocol.md` section 14.4).
        let mut again = scene.connect();
        let resumed = again.resume(
            response.session_id,
            &response.password.unwrap(),
            Zxid(0),
            TIMEOUT_MS,
        );
        assert_eq!(resumed.session_id, response.session_id, "{what}");
    }
    scene.end();
}

/// `docs/zookeeper-protocol.md` section 2.1: requests before the bad frame are served in order.
#[test]
fn requests_before_a_bad_frame_are_answered_first() {
    let scene = Scene::new();
    let mut wire = scene.open();
    let mut bytes = Vec::new();
    wire::create("/before", b"", CreateMode::Persistent).encode(Xid(1), &mut bytes);
    bytes.extend((-7_i32).to_be_bytes());
    wire::create("/after", b"", CreateMode::Persistent).encode(Xid(2), &mut bytes);
    wire.send_raw(&bytes);
    assert!(wire.answer(OpCode::Create).outcome.is_ok());
    wire.expect_closed();
    assert_eq!(
        scene.server.children("/").unwrap(),
        ["zookeeper", "bystander", "before"]
    );
    scene.end();
}

/// `docs/zookeeper-protocol.md` section 2.1: a frame of 0xFFFFF bytes is accepted, one of 0x100000
/// is not. This limits the size of data.
#[test]
fn frame_of_exactly_the_limit_is_served_and_one_more_byte_closes() {
    let scene = Scene::new();
    let mut wire = scene.open();
    wire.must(&wire::create("/big", b"", CreateMode::Persistent));
    let data_bytes = 0xF_FFFF - 8 - 4 - "/big".len() - 4 - 4;
    let reply = wire.must(&wire::set("/big", &vec![7; data_bytes]));
    assert!(
        matches!(reply, Reply::Stat(stat) if usize::try_from(stat.data_length) == Ok(data_bytes)),
        "{reply:?}"
    );
    let mut bytes = Vec::new();
    wire::set("/big", &vec![8; data_bytes + 1]).encode(Xid(9), &mut bytes);
    assert_eq!(bytes[..4], 0x10_0000_i32.to_be_bytes());
    // The server may close before the client has sent everything.
    let _ = wire.try_send_raw(&bytes);
    wire.expect_closed();
    assert_eq!(scene.server.get("/big").unwrap().1.version, 1);
    scene.end();
}

/// `docs/zookeeper-protocol.md` section 2.1: the server waits for the rest of a frame, and discards
/// the part it has if the client disconnects.
#[test]
fn incomplete_frame_of_a_disconnected_client_is_discarded() {
    let scene = Scene::new();
    let mut whole = Vec::new();
    wire::create("/cut", b"data", CreateMode::Persistent).encode(Xid(1), &mut whole);
    for cut in [1, 3, 4, 8, 11, whole.len() - 1] {
        let mut wire = scene.open();
        wire.send_raw(&whole[..cut]);
        drop(wire);
        let mut unopened = scene.connect();
        unopened.send_raw(&whole[..cut]);
        drop(unopened);
    }
    scene.wait_alone();
    assert!(scene.server.get("/cut").is_none());
    scene.end();
}

/// `docs/zookeeper-protocol.md` section 2.2, rules 1, 2, 5: the reply to an undecodable body is -5,
/// in request order, and the connection stays open. Section 7.3: of such requests, only a multi
/// uses a zxid.
#[test]
fn undecodable_body_is_answered_and_the_connection_stays_open() {
    const ABSURD: i32 = i32::MAX;
    let long_path = |out: &mut Vec<u8>, length: i32| {
        jute::put_int(out, length);
        out.extend_from_slice(b"/x");
    };
    let cases: [(&str, Vec<u8>); 18] = [
        ("getData without a body", message(1, 4, |_| {})),
        (
            "getData without the bool",
            message(1, 4, |out| path(out, "/")),
        ),
        ("path length -2", message(1, 4, |out| long_path(out, -2))),
        (
            "path length of a gigabyte",
            message(1, 4, |out| long_path(out, 1 << 30)),
        ),
        (
            "largest path length",
            message(1, 4, |out| long_path(out, ABSURD)),
        ),
        (
            "exists, null path",
            message(1, 3, |out| out.extend([0xff, 0xff, 0xff, 0xff, 0])),
        ),
        (
            "getData, null path",
            message(1, 4, |out| out.extend([0xff, 0xff, 0xff, 0xff, 0])),
        ),
        (
            "getChildren, null path",
            message(1, 8, |out| out.extend([0xff, 0xff, 0xff, 0xff, 1])),
        ),
        (
            "create without access list",
            message(1, 1, |out| {
                path(out, "/a");
                jute::put_int(out, -1);
            }),
        ),
        (
            "create, absurd count of entries",
            message(1, 1, |out| {
                path(out, "/a");
                jute::put_int(out, -1);
                jute::put_int(out, ABSURD);
                jute::put_int(out, 31);
            }),
        ),
        (
            "setWatches, absurd count of paths",
            message(-8, 101, |out| {
                jute::put_long(out, 0);
                jute::put_int(out, ABSURD);
            }),
        ),
        (
            "setWatches, null vector",
            message(-8, 101, |out| {
                jute::put_long(out, 0);
                jute::put_int(out, -1);
            }),
        ),
        (
            "setWatches2, absurd count of paths",
            message(-8, 105, |out| {
                jute::put_long(out, 0);
                for count in [0, 0, 0, 0, ABSURD] {
                    jute::put_int(out, count);
                }
            }),
        ),
        (
            "addWatch, unknown mode",
            message(1, 106, |out| {
                path(out, "/");
                jute::put_int(out, 2);
            }),
        ),
        (
            "removeWatches, unknown type",
            message(1, 18, |out| {
                path(out, "/");
                jute::put_int(out, 6);
            }),
        ),
        (
            "checkWatches, unknown type",
            message(1, 17, |out| {
                path(out, "/");
                jute::put_int(out, 0);
            }),
        ),
        (
            "multiRead cut off",
            message(1, 22, |out| out.extend([0, 0, 0, 4])),
        ),
        (
            "multi cut off",
            message(1, 14, |out| out.extend([0, 0, 0, 1])),
        ),
    ];
    let scene = Scene::new();
    let mut wire = scene.open();
    let before_kib = memory_kib();
    let mut zxid = wire.call(&Request::Ping).zxid;
    for (what, bytes) in cases {
        wire.send_frame(&bytes);
        let answer = wire.answer(OpCode::Ping);
        assert_eq!(answer.outcome, Err(ErrorCode::MarshallingError), "{what}");
        assert_eq!(answer.xid.0.to_be_bytes(), bytes[..4], "{what}");
        if what.starts_with("multi cut") {
            zxid.0 += 1;
        }
        assert_eq!(answer.zxid, zxid, "{what}");
        wire.ping();
    }
    // No memory is reserved for an announced count. The bound leaves room for other tests.
    assert!(memory_kib().saturating_sub(before_kib) < 512 << 10);
    scene.end();
}

/// `docs/zookeeper-protocol.md` section 2.2, rule 4: bytes after a record are ignored.
#[test]
fn bytes_after_a_record_are_ignored() {
    let scene = Scene::new();
    let mut wire = scene.open();
    wire.send_frame(&message(5, 3, |out| {
        path(out, "/");
        out.extend_from_slice(b"\0 and more");
    }));
    let answer = wire.answer(OpCode::Exists);
    assert_eq!(answer.xid, Xid(5));
    assert!(answer.outcome.is_ok(), "{answer:?}");
    scene.end();
}

/// `docs/zookeeper-protocol.md` sections 2.2, rule 3, and 9.10: a malformed request of a kind that
/// bypasses ZooKeeper's queue closes the connection, and so does a null token.
#[test]
fn malformed_auth_and_sasl_close_without_a_byte() {
    let cases: [(&str, Vec<u8>); 5] = [
        ("auth without a body", message(-4, 100, |_| {})),
        (
            "auth without data",
            message(-4, 100, |out| {
                jute::put_int(out, 0);
                path(out, "digest");
            }),
        ),
        (
            "auth, data beyond the frame",
            message(-4, 100, |out| {
                jute::put_int(out, 0);
                path(out, "digest");
                jute::put_int(out, 1000);
            }),
        ),
        ("sasl without a body", message(1, 102, |_| {})),
        (
            "sasl, null token",
            message(1, 102, |out| jute::put_int(out, -1)),
        ),
    ];
    let scene = Scene::new();
    for (what, bytes) in cases {
        let mut wire = scene.open();
        wire.send_frame(&bytes);
        assert_eq!(wire.rest(), b"", "{what}");
    }
    scene.wait_alone();
    assert_eq!(scene.server.sessions().len(), 6, "no session ends");
    scene.end();
}

/// `docs/zookeeper-protocol.md` section 9.10: without a SASL login the reply to a token is success
/// with a null token.
#[test]
fn sasl_token_is_answered_with_null_and_zxid_zero() {
    let scene = Scene::new();
    let mut wire = scene.open();
    let token = Some(bytes::Bytes::from_static(b"token"));
    let answer = wire.call(&Request::Sasl { token });
    assert_eq!(answer.zxid, Zxid(0));
    assert_eq!(answer.outcome, Ok(Reply::Token(None)));
    wire.ping();
    scene.end();
}

/// `docs/zookeeper-protocol.md` sections 3.1 and 26: the reply to a code that does not exist or is
/// not for clients is -6 with zxid -1, and later requests of the connection are not served.
#[test]
fn unknown_operation_is_answered_and_closes_and_later_requests_are_not_served() {
    let codes = [10, 23, 99, 108, 0, 13, -1, -10, 20, i32::MIN, i32::MAX];
    let scene = Scene::new();
    for code in codes {
        let (mut wire, response) = scene.open_session();
        let mut bytes = framed(&message(77, code, |out| {
            path(out, "/bystander");
            jute::put_int(out, -1);
        }));
        wire::create("/after", b"", CreateMode::Persistent).encode(Xid(78), &mut bytes);
        wire.send_raw(&bytes);
        let answer = wire.answer(OpCode::Ping);
        assert_eq!(
            (answer.xid, answer.zxid),
            (Xid(77), Zxid(-1)),
            "code {code}"
        );
        assert_eq!(answer.outcome, Err(ErrorCode::Unimplemented), "code {code}");
        assert_eq!(wire.rest(), b"", "code {code}");
        let mut again = scene.connect();
        let password = response.password.unwrap();
        let resumed = again.resume(response.session_id, &password, Zxid(0), TIMEOUT_MS);
        assert_eq!(resumed.session_id, response.session_id, "code {code}");
    }
    assert!(scene.server.get("/after").is_none());
    assert!(scene.server.get("/bystander").is_some());
    scene.end();
}

/// `docs/zookeeper-protocol.md` section 6.5: the server reads a second handshake as xid 0,
/// operation 0.
#[test]
fn second_handshake_is_an_unknown_operation() {
    let scene = Scene::new();
    let mut wire = scene.open();
    let mut bytes = Vec::new();
    ConnectRequest::new(TIMEOUT_MS).encode(&mut bytes);
    wire.send_raw(&bytes);
    let answer = wire.answer(OpCode::Ping);
    assert_eq!((answer.xid, answer.zxid), (Xid(0), Zxid(-1)));
    assert_eq!(answer.outcome, Err(ErrorCode::Unimplemented));
    wire.expect_closed();
    assert_eq!(scene.server.sessions().len(), 2);
    scene.end();
}

/// `docs/zookeeper-protocol.md` section 3.2: the reply to a ping has xid -2 whatever the request's
/// xid; any other reply echoes the xid, even if it is zero, negative, repeated or decreasing.
#[test]
fn replies_echo_the_xid_except_to_pings() {
    let scene = Scene::new();
    let mut wire = scene.open();
    for xid in [7, 7, 3, 0, -1000, i32::MAX, i32::MIN, -4, -8].map(Xid) {
        wire.send_as(xid, &wire::exists("/", false));
        assert_eq!(wire.answer(OpCode::Exists).xid, xid);
        wire.send_as(xid, &Request::Ping);
        assert_eq!(wire.answer(OpCode::Ping).xid, Xid::PING);
    }
    scene.end();
}

/// `docs/zookeeper-protocol.md` sections 10.27 and 10.3: a disabled operation is refused, and the
/// connection stays open.
#[test]
fn disabled_operations_are_refused_and_the_connection_stays_open() {
    let scene = Scene::with(|config| config.extended_types = false);
    let mut wire = scene.open();
    let reconfig = Request::Reconfig {
        joining: None,
        leaving: None,
        members: None,
        config_id: -1,
    };
    assert_eq!(wire.refused(&reconfig), ErrorCode::ReconfigDisabled);
    let with_ttl = wire::create("/ttl", b"", CreateMode::PersistentWithTtl);
    assert_eq!(wire.refused(&with_ttl), ErrorCode::Unimplemented);
    wire.ping();
    scene.end();
}

/// The client resets the connection with requests on their way and replies unread.
#[test]
fn client_reset_with_unread_replies_does_not_affect_others() {
    let scene = Scene::new();
    let mut setup = scene.open();
    setup.must(&wire::create(
        "/data",
        &[1; 100_000],
        CreateMode::Persistent,
    ));
    for _ in 0..20 {
        let mut wire = scene.open();
        let mut bytes = Vec::new();
        for xid in 1..=50 {
            wire::get("/data", true).encode(Xid(xid), &mut bytes);
        }
        wire.send_raw(&bytes);
        // Closing a socket with unread bytes resets the connection.
        drop::<Wire>(wire);
    }
    drop(setup);
    scene.wait_alone();
    scene.end();
}
