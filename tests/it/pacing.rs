//! Bytes that arrive all at once, one by one or incompletely, and replies that are read slowly.

use minikeeper_protocol::{
    ConnectRequest, CreateMode, EventKind, OpCode, Reply, Request, Xid, Zxid,
};
use minikeeper_test_kit::wire;

use crate::kit::{Scene, TIMEOUT_MS};

/// `docs/zookeeper-protocol.md` section 2.1, "pipelining": requests after the handshake wait for
/// the session.
#[test]
fn handshake_and_requests_in_one_write_are_answered_in_order() {
    let scene = Scene::new();
    let mut client = scene.connect();
    let mut bytes = Vec::new();
    ConnectRequest::new(TIMEOUT_MS).encode(&mut bytes);
    wire::create("/p", b"1", CreateMode::Ephemeral).encode(Xid(1), &mut bytes);
    wire::get("/p", true).encode(Xid(2), &mut bytes);
    wire::set("/p", b"2").encode(Xid(3), &mut bytes);
    Request::Ping.encode(Xid::PING, &mut bytes);
    client.send_raw(&bytes);
    let session = client.connect_response();
    assert_eq!(session.timeout_ms, TIMEOUT_MS);
    assert!(client.answer(OpCode::Create).outcome.is_ok());
    let read = client.answer(OpCode::GetData).outcome.unwrap();
    assert!(
        matches!(read, Reply::Data(_, stat) if stat.ephemeral_owner == session.session_id),
        "{read:?}"
    );
    // `docs/zookeeper-protocol.md` section 12.4, rule 1: the event comes before the reply to the
    // write.
    let event = client.event();
    assert_eq!((event.kind, &*event.path), (EventKind::DataChanged, "/p"));
    let answer = client.answer(OpCode::SetData);
    assert_eq!((answer.xid, answer.zxid), (Xid(3), event.zxid));
    assert_eq!(client.answer(OpCode::Ping).zxid, event.zxid);
    scene.end();
}

/// Every handshake, header and body arrives in pieces.
#[test]
fn handshake_and_requests_byte_by_byte_are_answered() {
    let scene = Scene::new();
    let mut client = scene.connect();
    let mut bytes = Vec::new();
    ConnectRequest::new(TIMEOUT_MS).encode(&mut bytes);
    wire::create("/slow", b"data", CreateMode::Persistent).encode(Xid(1), &mut bytes);
    wire::get("/slow", false).encode(Xid(2), &mut bytes);
    for byte in bytes {
        client.send_raw(&[byte]);
    }
    assert_eq!(client.connect_response().timeout_ms, TIMEOUT_MS);
    assert!(client.answer(OpCode::Create).outcome.is_ok());
    let read = client.answer(OpCode::GetData).outcome.unwrap();
    assert!(matches!(read, Reply::Data(Some(data), _) if *data == *b"data"));
    scene.end();
}

/// `docs/zookeeper-protocol.md` section 1, rule 1: replies of one connection come in the order of
/// its requests.
#[test]
fn two_hundred_pipelined_requests_are_answered_in_order() {
    let scene = Scene::new();
    let mut client = scene.open();
    client.must(&wire::create("/q", b"", CreateMode::Persistent));
    let mut bytes = Vec::new();
    for number in 0..200 {
        let request = match number % 4 {
            0 => wire::create("/q/n-", b"", CreateMode::PersistentSequential),
            1 => wire::get("/q", false),
            2 => wire::set("/q", number.to_string().as_bytes()),
            _ => wire::delete("/missing"),
        };
        request.encode(Xid(1000 + number), &mut bytes);
    }
    client.send_raw(&bytes);
    let mut last = Zxid(0);
    let mut created = 0;
    for number in 0..200 {
        let op = [
            OpCode::Create,
            OpCode::GetData,
            OpCode::SetData,
            OpCode::Delete,
        ][usize::try_from(number % 4).unwrap()];
        let answer = client.answer(op);
        assert_eq!(answer.xid, Xid(1000 + number));
        // `docs/zookeeper-protocol.md` section 7.3: every write takes a zxid, even a failed one; a
        // read takes none.
        let took = i64::from(op != OpCode::GetData);
        if number > 0 {
            assert_eq!(answer.zxid.0, last.0 + took, "request {number}");
        }
        last = answer.zxid;
        match answer.outcome {
            Ok(Reply::Path(Some(path))) => {
                assert_eq!(path.to_str_lossy(), format!("/q/n-{created:010}"));
                created += 1;
            }
            // The read sees the last setData, three requests before it.
            Ok(Reply::Data(data, _)) if number > 4 => {
                assert_eq!(data.unwrap(), (number - 3).to_string().as_bytes());
            }
            Ok(Reply::Data(..) | Reply::Stat(_)) => {}
            other => assert_eq!(op, OpCode::Delete, "request {number}: {other:?}"),
        }
    }
    scene.end();
}

/// Backpressure must not lose, truncate or reorder replies. They exceed the socket's buffer many
/// times before the client reads the first byte.
#[test]
fn replies_far_beyond_the_backlog_reach_a_slow_reader_whole() {
    let scene = Scene::with(|config| config.write_backlog_bytes_max = 10_000);
    let mut client = scene.open();
    let data: Vec<u8> = (0..500_000_u32)
        .flat_map(|i| i.to_be_bytes())
        .take(900_000)
        .collect();
    client.must(&wire::create("/large", &data, CreateMode::Persistent));
    let mut bytes = Vec::new();
    for xid in 1..=60 {
        wire::get("/large", false).encode(Xid(xid), &mut bytes);
    }
    Request::CloseSession.encode(Xid(61), &mut bytes);
    client.send_raw(&bytes);
    for xid in 1..=60 {
        let answer = client.answer(OpCode::GetData);
        assert_eq!(answer.xid, Xid(xid));
        assert!(matches!(answer.outcome, Ok(Reply::Data(Some(got), _)) if *got == data));
    }
    // `docs/zookeeper-protocol.md` section 6.5: the server sends queued replies before it closes.
    assert_eq!(client.answer(OpCode::CloseSession).xid, Xid(61));
    client.expect_closed();
    scene.end();
}

/// With the smallest backlog and turn, the server serves one request at a time.
#[test]
fn smallest_backlog_and_turn_answer_everything() {
    let scene = Scene::with(|config| {
        config.write_backlog_bytes_max = 1;
        config.turn_requests_max = 1;
    });
    let mut client = scene.open();
    let mut bytes = Vec::new();
    for xid in 1..=300 {
        wire::exists("/", false).encode(Xid(xid), &mut bytes);
    }
    client.send_raw(&bytes);
    for xid in 1..=300 {
        assert_eq!(client.answer(OpCode::Exists).xid, Xid(xid));
    }
    scene.end();
}

/// `docs/zookeeper-protocol.md` section 6.5: the end of the client's stream ends the connection.
/// Requests received before are executed; the session survives, its watches do not.
#[test]
fn half_closed_socket_is_closed_and_its_requests_are_executed() {
    let mut scene = Scene::new();
    let (mut client, _) = scene.open_session();
    client.must(&wire::watch("/bystander"));
    client.send(&wire::create("/half", b"", CreateMode::Ephemeral));
    client.half_close();
    // The reply may be lost, as in ZooKeeper; the connection ends in any case.
    let _ = client.rest();
    scene.wait_alone();
    assert!(scene.server.get("/half").is_some());
    assert_eq!(scene.server.sessions().len(), 2);
    assert!(!scene.server.dump().contains("watch /bystander"));
    scene.check_bystander();
    scene.end();
}

/// `docs/zookeeper-protocol.md` section 6.5, "half-closes": the same without a handshake.
#[test]
fn half_closed_socket_before_the_handshake_is_closed() {
    let scene = Scene::new();
    let mut client = scene.connect();
    client.send_raw(&[0, 0, 0]);
    client.half_close();
    client.expect_closed();
    scene.wait_alone();
    scene.end();
}

/// `docs/zookeeper-protocol.md` section 12.4: a client that reads while others write gets events
/// and replies in the order of the changes.
#[test]
fn events_arrive_before_replies_that_show_the_change() {
    let scene = Scene::new();
    let (mut watcher, mut writer) = (scene.open(), scene.open());
    writer.must(&wire::create("/w", b"0", CreateMode::Persistent));
    watcher.must(&wire::watch("/w"));
    for number in 1..=100 {
        let written = writer.call(&wire::set("/w", number.to_string().as_bytes()));
        let xid = watcher.send(&wire::get("/w", false));
        let event = watcher.event();
        assert_eq!(event.zxid, written.zxid);
        let answer = watcher.answer(OpCode::GetData);
        assert_eq!((answer.xid, answer.zxid), (xid, written.zxid));
    }
    scene.end();
}
