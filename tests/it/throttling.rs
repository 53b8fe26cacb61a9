//! Limits on handshakes and on waiting requests: the effect, the counter and the log line of each.

use std::time::Duration;

use minikeeper_protocol::{
    ConnectRequest, CreateMode, ErrorCode, MultiReadOp, OpCode, Request, Xid, Zxid,
};
use minikeeper_test_kit::wire::{self, Wire};

use crate::kit::{Logged, TIMEOUT_MS, alone_with_memory, wait_until};

/// Sends a handshake, and checks that the server closes the connection without a response.
fn refused_handshake(logged: &Logged) {
    let mut wire = Wire::connect(logged.address());
    let mut bytes = Vec::new();
    ConnectRequest::new(TIMEOUT_MS).encode(&mut bytes);
    wire.send_raw(&bytes);
    wire.expect_closed();
}

/// `docs/zookeeper-protocol.md` section 17.1. A live ZooKeeper 3.9.5 accepted the same handshakes
/// at the same times.
#[test]
fn handshake_without_a_token_is_closed_without_an_answer() {
    let logged = Logged::start(|config| {
        config.connection_throttle_tokens = 2;
        config.connection_throttle_fill_time = Duration::from_secs(2);
    });
    let (mut first, session) = Wire::open(logged.address(), TIMEOUT_MS);
    let (_second, _) = Wire::open(logged.address(), TIMEOUT_MS);
    refused_handshake(&logged);
    refused_handshake(&logged);
    logged.wait_for_line(&["WARN", "connection_throttle_tokens", "max=2"]);
    assert_eq!(logged.server.limit_counts().connection_rejected, 2);
    // Existing sessions and four-letter words are not throttled.
    first.ping();
    assert_eq!(wire::four_letter(logged.address(), b"ruok"), "imok");
    logged.server.advance(Duration::from_millis(2_000));
    refused_handshake(&logged);
    logged.server.advance(Duration::from_millis(1));
    // Resuming a session takes a token too.
    let mut again = Wire::connect(logged.address());
    let password = session.password.unwrap();
    let resumed = again.resume(session.session_id, &password, Zxid(0), TIMEOUT_MS);
    assert_eq!(resumed.session_id, session.session_id);
    refused_handshake(&logged);
    assert_eq!(logged.server.limit_counts().connection_rejected, 4);
    let mntr = wire::four_letter(logged.address(), b"mntr");
    assert!(mntr.contains("zk_connection_rejected\t4\n"), "{mntr}");
    assert_eq!(logged.server.sessions().len(), 2);
}

#[test]
fn refused_and_expired_connections_are_counted() {
    let logged = Logged::start(|config| config.connections_max = 1);
    let mut silent = Wire::connect(logged.address());
    wait_until("the connection is accepted", || {
        logged.server.connections() == 1
    });
    for _ in 0..3 {
        Wire::connect(logged.address()).expect_reset();
    }
    logged.wait_for_line(&["WARN", "connections_max", "max=1"]);
    logged.server.advance(Duration::from_secs(10));
    silent.expect_closed();
    let counts = logged.server.limit_counts();
    assert_eq!(counts.connection_rejected, 3);
    assert_eq!(counts.sessionless_connections_expired, 1);
}

/// Connects a client whose requests wait: the reply before them is larger than any socket buffer,
/// and the client does not read it. The server reads all requests at once, since they are short.
fn waiting_client(logged: &Logged, requests: &[(Xid, Request)]) -> Wire {
    let (mut client, _) = Wire::open(logged.address(), TIMEOUT_MS);
    client.must(&wire::create(
        "/mb",
        &vec![1; 1_000_000],
        CreateMode::Persistent,
    ));
    let read = MultiReadOp::GetData {
        path: Some("/mb".into()),
        watch: false,
    };
    let mut bytes = Vec::new();
    wire::create("/sign", b"", CreateMode::Persistent).encode(Xid(1), &mut bytes);
    Request::MultiRead(vec![read; 60]).encode(Xid(2), &mut bytes);
    for (xid, request) in requests {
        request.encode(*xid, &mut bytes);
    }
    client.send_raw(&bytes);
    wait_until("the reads are served", || {
        logged.server.get("/sign").is_some()
    });
    client
}

/// A request that waited too long is refused, changes nothing and takes no zxid; requests that
/// ZooKeeper never throttles are served. The requests wait after a reply that the client does not
/// read.
///
/// `docs/zookeeper-protocol.md` section 17.2; the replies were observed on a live ZooKeeper 3.9.5.
#[test]
fn requests_that_waited_longer_than_throttled_op_wait_time_are_refused() {
    let _alone = alone_with_memory();
    let logged =
        Logged::start(|config| config.throttled_op_wait_time = Duration::from_millis(1_000));
    let set_watches = Request::SetWatches {
        relative_zxid: Zxid(0),
        data: vec!["/sign".into()],
        exist: vec![],
        child: vec![],
    };
    let requests = [
        (Xid(3), wire::set("/sign", b"late")),
        (Xid(4), wire::exists("/sign", true)),
        (Xid::PING, Request::Ping),
        (Xid(-8), set_watches),
        (Xid(5), wire::create("/late", b"", CreateMode::Persistent)),
        (Xid(6), Request::CloseSession),
    ];
    let mut client = waiting_client(&logged, &requests);
    logged.server.advance(Duration::from_millis(1_001));
    assert!(client.answer(OpCode::Create).outcome.is_ok());
    let zxid = client.answer(OpCode::MultiRead).zxid;
    for (xid, request) in requests {
        let answer = client.answer(request.op());
        assert_eq!(answer.xid, xid);
        match request {
            Request::Ping => assert_eq!((answer.zxid, answer.outcome.is_ok()), (zxid, true)),
            Request::CloseSession => assert!(answer.outcome.is_ok()),
            _ => {
                assert_eq!(answer.outcome.unwrap_err(), ErrorCode::ThrottledOp);
                assert_eq!(answer.zxid, zxid);
            }
        }
    }
    client.expect_closed();
    assert!(logged.server.get("/late").is_none());
    assert_eq!(logged.server.get("/sign").unwrap().1.version, 0);
    logged.wait_for_line(&["WARN", "throttled_op_wait_time", "max_ms=1000"]);
    let counts = logged.server.limit_counts();
    assert_eq!(
        (counts.throttled_ops, counts.stale_requests_dropped),
        (4, 0)
    );
    logged.server.check().unwrap();
}

#[test]
fn requests_that_waited_exactly_throttled_op_wait_time_are_served() {
    let _alone = alone_with_memory();
    let logged =
        Logged::start(|config| config.throttled_op_wait_time = Duration::from_millis(1_000));
    let mut client = waiting_client(&logged, &[(Xid(3), wire::set("/sign", b"in time"))]);
    logged.server.advance(Duration::from_millis(1_000));
    for op in [OpCode::Create, OpCode::MultiRead, OpCode::SetData] {
        assert!(client.answer(op).outcome.is_ok());
    }
    // Idle time does not count as waiting.
    logged.server.advance(Duration::from_millis(5_000));
    client.must(&wire::set("/sign", b"again"));
    assert_eq!(logged.server.limit_counts().throttled_ops, 0);
}

/// The wait of a request begins when its last byte is read.
#[test]
fn request_that_arrives_in_parts_is_not_throttled() {
    let logged = Logged::start(|config| config.throttled_op_wait_time = Duration::from_millis(10));
    let (mut client, _) = Wire::open(logged.address(), TIMEOUT_MS);
    let mut bytes = Vec::new();
    wire::exists("/", false).encode(Xid(1), &mut bytes);
    wire::exists("/", false).encode(Xid(2), &mut bytes);
    let cut = bytes.len() - 3;
    client.send_raw(&bytes[..cut]);
    assert!(client.answer(OpCode::Exists).outcome.is_ok());
    logged.server.advance(Duration::from_millis(1_000));
    client.send_raw(&bytes[cut..]);
    assert!(client.answer(OpCode::Exists).outcome.is_ok());
}

/// The counterpart of ZooKeeper's stale requests, which it drops if `requestThrottleLimit` is set.
#[test]
fn waiting_requests_of_a_closed_connection_are_dropped_and_counted() {
    let _alone = alone_with_memory();
    let logged = Logged::start(|_| {});
    let requests = [3, 4, 5].map(|xid| (Xid(xid), wire::set("/sign", b"stale")));
    drop(waiting_client(&logged, &requests));
    wait_until("the connection is closed", || {
        logged.server.connections() == 0
    });
    assert_eq!(logged.server.limit_counts().stale_requests_dropped, 3);
    assert_eq!(logged.server.get("/sign").unwrap().1.version, 0);
}

/// Returns a setData request with a frame of this length.
fn set_of(bytes: usize) -> Request {
    let overhead = 8 + 4 + "/l".len() + 4 + 4;
    wire::set("/l", &vec![0; bytes - overhead])
}

/// `docs/zookeeper-protocol.md` section 17.2; the single requests were also sent to a live
/// ZooKeeper
/// 3.9.5.
#[test]
fn large_requests_beyond_large_request_bytes_max_close_their_connections() {
    let logged = Logged::start(|config| {
        config.large_request_threshold = 1_000;
        config.large_request_bytes_max = 5_000;
    });
    let (mut client, _) = Wire::open(logged.address(), TIMEOUT_MS);
    client.must(&wire::create("/l", b"", CreateMode::Persistent));
    for bytes in [1_000, 1_001, 5_000, 5_000] {
        client.must(&set_of(bytes));
    }
    let (mut alone, _) = Wire::open(logged.address(), TIMEOUT_MS);
    alone.send(&set_of(5_001));
    alone.expect_closed();
    // The length alone suffices, even before a handshake.
    let mut unopened = Wire::connect(logged.address());
    unopened.send_raw(&5_001_i32.to_be_bytes());
    unopened.expect_closed();
    logged.wait_for_line(&["WARN", "large_request_bytes_max", "max=5000"]);
    assert_eq!(logged.server.limit_counts().large_requests_rejected, 2);

    // Together with another large request that has not arrived in full.
    let mut bytes = Vec::new();
    set_of(3_000).encode(Xid(1), &mut bytes);
    client.send_raw(&bytes[..4]);
    let mut together = Wire::connect(logged.address());
    together.handshake(TIMEOUT_MS);
    wait_until("the incomplete request counts", || {
        let mut probe = Wire::connect(logged.address());
        probe.send_raw(&2_001_i32.to_be_bytes());
        let rejected = logged.server.limit_counts().large_requests_rejected;
        probe.half_close();
        probe.expect_closed();
        rejected < logged.server.limit_counts().large_requests_rejected
    });
    together.must(&set_of(2_000));
    together.must(&set_of(1_000));
    client.send_raw(&bytes[4..]);
    assert!(client.answer(OpCode::SetData).outcome.is_ok());
    together.must(&set_of(5_000));
}

/// Clients that sent only parts of requests used up the common limit, so that the server closed the
/// next client's connection at its first large request.
#[test]
fn incomplete_requests_of_old_connections_yield_to_new_ones() {
    let logged = Logged::start(|config| config.unserved_bytes_max = 4_000_000);
    let half = {
        let mut bytes = Vec::new();
        wire::set("/", &vec![1; 900_000]).encode(Xid(1), &mut bytes);
        bytes.truncate(800_000);
        bytes
    };
    let mut strangers = Vec::new();
    for _ in 0..3 {
        let (mut stranger, _) = Wire::open(logged.address(), TIMEOUT_MS);
        stranger.send_raw(&half);
        strangers.push(stranger);
    }
    for round in 0..10 {
        let (mut client, _) = Wire::open(logged.address(), TIMEOUT_MS);
        let mut bytes = Vec::new();
        wire::set("/", &vec![round; 1_000_000]).encode(Xid(1), &mut bytes);
        let (front, back) = bytes.split_at(900_000);
        client.send_raw(front);
        logged.server.check().unwrap();
        client.send_raw(back);
        assert!(
            client.answer(OpCode::SetData).outcome.is_ok(),
            "round {round}"
        );
        let (mut stranger, _) = Wire::open(logged.address(), TIMEOUT_MS);
        stranger.send_raw(&half);
        strangers.push(stranger);
    }
    // The oldest connections are closed, and the log names the limit.
    strangers[0].expect_closed();
    logged.wait_for_line(&["WARN", "unserved_bytes_max", "max=4000000"]);
}

/// Incomplete requests of all connections together take no more than `unserved_bytes_max`.
#[test]
fn partial_requests_beyond_unserved_bytes_max_close_their_connections() {
    const CLIENTS: usize = 100;
    const PART_BYTES: usize = 60_000;
    // More than twice a whole request: buffers double as they grow, and count with their capacity.
    const BYTES_MAX: usize = 2_500_000;
    let logged = Logged::start(|config| config.unserved_bytes_max = BYTES_MAX);
    let (mut bystander, _) = Wire::open(logged.address(), TIMEOUT_MS);
    bystander.must(&wire::create("/l", b"", CreateMode::Persistent));
    let mut bytes = Vec::new();
    set_of(900_000).encode(Xid(1), &mut bytes);
    let mut slow: Vec<_> = (0..CLIENTS)
        .map(|_| Wire::open(logged.address(), TIMEOUT_MS).0)
        .collect();
    for wire in &mut slow {
        // The server may close the connection before it has read all of it.
        let _ = wire.try_send_raw(&bytes[..PART_BYTES]);
    }
    logged.wait_for_line(&["WARN", "unserved_bytes_max", "max=2500000"]);
    let fitting = BYTES_MAX / PART_BYTES;
    wait_until("only the connections within the limit are left", || {
        logged.server.connections() <= 1 + fitting
    });
    let rejected = logged.server.limit_counts().unserved_bytes_rejected;
    assert!(usize::try_from(rejected).unwrap() >= CLIENTS - fitting);
    // Complete requests are not affected.
    bystander.must(&set_of(100));
    drop(slow);
    wait_until("the connections are closed", || {
        logged.server.connections() == 1
    });
    // Their memory is free again: a long request may arrive in parts.
    for part in bytes.chunks(100_000) {
        bystander.send_raw(part);
    }
    assert!(bystander.answer(OpCode::SetData).outcome.is_ok());
}
