//! The clock: frozen, running, advanced, and the deadlines on the way. Few tests wait for real
//! time, and those wait for a condition.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, UNIX_EPOCH},
};

use minikeeper::{Config, Fault, OpCode, Server as AsyncServer, Znode, blocking::Server, tree};
use minikeeper_protocol::{ConnectRequest, Create, CreateMode, EventKind, Request, Xid};
use minikeeper_test_kit::{
    random::Random,
    wire::{self, Wire},
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::kit::{Scene, TIMEOUT_MS, wait_until};

const SECOND: Duration = Duration::from_secs(1);
const MS: Duration = Duration::from_millis(1);

fn running() -> Server {
    Server::builder().start().unwrap()
}

/// Unlike ZooKeeper, the server expires a session exactly its timeout after its last request
/// (`docs/zookeeper-protocol.md` section 14.2), to the millisecond, not at the next tick.
#[test]
fn silent_session_expires_exactly_its_timeout_after_its_last_request() {
    let scene = Scene::new();
    let mut client = scene.open();
    client.must(&wire::create("/e", b"", CreateMode::Ephemeral));
    for _ in 0..5 {
        scene.server.advance_strictly(1_234 * MS);
        client.ping();
    }
    scene.server.advance_strictly(10 * SECOND - MS);
    assert!(scene.server.get("/e").is_some());
    scene.server.advance_strictly(MS);
    assert!(scene.server.get("/e").is_none());
    client.expect_closed();
    scene.end();
}

/// With a container check every millisecond, advancing by a year took an hour and a half.
#[test]
fn advance_by_a_year_is_fast_despite_container_checks_every_millisecond() {
    let server = Server::builder()
        .manual_clock()
        .configure(|config| config.container_check_interval_ms = 1)
        .start()
        .unwrap();
    let (mut client, _) = Wire::open(server.addr(), TIMEOUT_MS);
    let day_ms = 24 * 60 * 60 * 1_000;
    for (path, mode, ttl_ms) in [
        ("/container", CreateMode::Container, 0),
        ("/container/child", CreateMode::Persistent, 0),
        ("/ttl", CreateMode::PersistentWithTtl, day_ms),
    ] {
        client.must(&Request::Create(Create {
            ttl_ms,
            ..Create::new(path, b"".as_slice(), mode)
        }));
    }
    server.advance(Duration::from_secs(24 * 60 * 60));
    assert!(server.get("/ttl").is_some());
    server.advance(MS);
    assert!(server.get("/ttl").is_none());
    server.advance(365 * 24 * 60 * 60 * SECOND);
    assert!(server.get("/container").is_some());
    let (mut client, _) = Wire::open(server.addr(), TIMEOUT_MS);
    client.must(&wire::delete("/container/child"));
    server.advance(MS);
    assert!(server.get("/container").is_none());
    server.check().unwrap();
}

/// `docs/zookeeper-protocol.md` section 14.1: with `rounds_expiry`, expiry at the tick as in
/// ZooKeeper.
#[test]
fn rounds_expiry_expires_a_session_at_the_tick_after_its_timeout() {
    let scene = Scene::with(|config| config.rounds_expiry = true);
    let mut client = scene.open();
    client.must(&wire::create("/e", b"", CreateMode::Ephemeral));
    scene.server.advance_strictly(12 * SECOND - MS);
    assert!(scene.server.get("/e").is_some());
    scene.server.advance_strictly(MS);
    assert!(scene.server.get("/e").is_none());
    client.expect_closed();
    scene.end();
}

#[test]
fn frozen_clock_starts_at_a_fixed_time_and_moves_only_by_advance() {
    let scene = Scene::new();
    let start = scene.server.now();
    let wall_ms = start.wall.duration_since(UNIX_EPOCH).unwrap().as_millis();
    assert_eq!((start.is_frozen, start.elapsed), (true, Duration::ZERO));
    assert_eq!(wall_ms, 1_704_067_200_000);
    assert!(!scene.server.freeze(), "the clock is already frozen");
    scene.server.advance(1_500 * MS);
    let moved = scene.server.now();
    assert_eq!(moved.elapsed, 1_500 * MS);
    assert_eq!(moved.wall, start.wall + 1_500 * MS);
    // Fractions of a millisecond are dropped.
    scene.server.advance(Duration::from_micros(999));
    assert_eq!(scene.server.now(), moved);
    scene.end();
}

/// On a running clock, sessions due on the way expire in order before `advance_strictly` returns,
/// and time continues from there.
#[test]
fn advance_of_a_running_clock_meets_deadlines_and_time_continues() {
    let server = running();
    let (mut watcher, _) = Wire::open(server.addr(), 60_000);
    let mut owners = Vec::new();
    for (path, timeout_ms) in [("/second", 20_000), ("/first", 10_000)] {
        let (mut owner, _) = Wire::open(server.addr(), timeout_ms);
        owner.must(&wire::create(path, b"", CreateMode::Ephemeral));
        watcher.must(&wire::exists(path, true));
        owners.push(owner);
    }
    let before = server.now();
    assert!(!before.is_frozen);
    server.advance_strictly(50 * SECOND);
    assert_eq!(server.sessions().len(), 1);
    let after = server.now();
    assert!(after.elapsed >= before.elapsed + 50 * SECOND);
    // Wall time is the system's plus 50 s. The system's time may be adjusted meanwhile; 1 s allows
    // for that.
    assert!(after.wall >= before.wall + 49 * SECOND);
    for path in ["/first", "/second"] {
        let event = watcher.event();
        assert_eq!((event.kind, &*event.path), (EventKind::Deleted, path));
    }
    owners.iter_mut().for_each(Wire::expect_closed);
    // Znodes get the advanced wall time.
    watcher.must(&wire::create("/late", b"", CreateMode::Persistent));
    let ctime_ms = server.get("/late").unwrap().1.ctime_ms.unsigned_abs();
    assert!(UNIX_EPOCH + Duration::from_millis(ctime_ms) + SECOND >= after.wall);
    wait_until("time continues", || server.now().elapsed > after.elapsed);
    server.check().unwrap();
}

/// The expiry task sleeps until a deadline in real time; advancing the clock must wake it.
#[test]
fn session_expires_on_a_running_clock_after_a_jump_close_to_its_deadline() {
    let server = running();
    let (mut client, _) = Wire::open(server.addr(), 60_000);
    client.must(&wire::create("/e", b"", CreateMode::Ephemeral));
    server.advance_strictly(60 * SECOND - 50 * MS);
    wait_until("the session expires", || server.sessions().is_empty());
    client.expect_closed();
}

#[test]
fn session_expires_only_after_the_clock_is_unfrozen() {
    let server = running();
    let (mut client, session) = Wire::open(server.addr(), 60_000);
    client.ping();
    assert!(server.freeze());
    assert!(!server.freeze());
    let frozen = server.now();
    assert!(frozen.is_frozen);
    let left = server.sessions()[0].timeout_left;
    assert!(left <= 60 * SECOND && left > Duration::ZERO);
    server.advance_strictly(left - MS);
    assert_eq!(server.sessions()[0].id, session.session_id);
    assert_eq!(server.sessions()[0].timeout_left, MS);
    assert_eq!(server.now().elapsed, frozen.elapsed + left - MS);
    assert_eq!(server.now().wall, frozen.wall + left - MS);
    // One millisecond of real time is left.
    assert!(server.unfreeze());
    assert!(!server.unfreeze());
    wait_until("the session expires", || server.sessions().is_empty());
    client.expect_closed();
}

/// The clock of a server that started frozen runs once it is unfrozen.
#[test]
fn handshake_deadline_holds_on_an_unfrozen_clock() {
    let scene = Scene::with(|config| config.handshake_timeout = 50 * MS);
    let mut silent = scene.connect();
    wait_until("the connection is accepted", || {
        scene.server.connections() == 2
    });
    scene.server.unfreeze();
    silent.expect_closed();
    scene.end();
}

/// Time never runs backwards from turn to turn; the engine would panic. One thread freezes,
/// advances and unfreezes the clock while others cause turns, and each compares the times that it
/// sees.
#[test]
fn time_never_runs_backwards_while_frozen_advanced_and_unfrozen() {
    let server = running();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for number in 0..2 {
            let (server, done) = (&server, &done);
            scope.spawn(move || {
                let path = format!("/{number}");
                let (mut client, _) = Wire::open(server.addr(), 60_000);
                client.must(&wire::create(&path, b"", CreateMode::Persistent));
                let mut last = server.now().elapsed;
                while !done.load(Ordering::Relaxed) {
                    client.must(&wire::set(&path, b"x"));
                    let now = server.now().elapsed;
                    assert!(now >= last, "{now:?} after {last:?}");
                    last = now;
                }
            });
        }
        let mut last = server.now();
        for round in 0..3_000_u32 {
            match round % 3 {
                0 => assert!(server.freeze()),
                1 => server.advance(MS),
                _ => assert!(server.unfreeze()),
            }
            let now = server.now();
            assert!(now.elapsed >= last.elapsed, "{now:?} after {last:?}");
            last = now;
        }
        done.store(true, Ordering::Relaxed);
    });
    server.check().unwrap();
}

#[test]
fn concurrent_advances_add_up() {
    let scene = Scene::new();
    thread::scope(|scope_of_threads| {
        for _ in 0..4 {
            scope_of_threads.spawn(|| (0..100).for_each(|_| scene.server.advance(MS)));
        }
    });
    assert_eq!(scene.server.now().elapsed, 400 * MS);
    scene.end();
}

/// Opens an in-process client that owns an ephemeral.
async fn open_local(server: &AsyncServer, timeout_ms: i32) -> minikeeper::LocalStream {
    let mut client = server.local();
    let mut bytes = Vec::new();
    ConnectRequest::new(timeout_ms).encode(&mut bytes);
    wire::create("/e-", b"", CreateMode::EphemeralSequential).encode(Xid(1), &mut bytes);
    client.write_all(&bytes).await.unwrap();
    client
}

/// Returns the number of sessions and the elapsed time of the server.
fn seen(server: &AsyncServer) -> (usize, Duration) {
    (server.sessions().len(), server.now().elapsed)
}

/// Real time is the runtime's paused time: it advances when no task has work.
#[tokio::test(start_paused = true)]
async fn auto_advance_moves_an_idle_server_from_deadline_to_deadline() {
    let builder = AsyncServer::builder().manual_clock();
    let server = builder.start().await.unwrap();
    let mut first = open_local(&server, 10_000).await;
    let mut second = open_local(&server, 20_000).await;
    tokio::time::sleep(60 * SECOND).await;
    assert_eq!(seen(&server), (2, Duration::ZERO));
    // Connected sessions expire only if their pings are lost.
    let deaf = Fault::drop_request().on(OpCode::Ping).optional();
    server.inject(deaf).unwrap().keep();
    server.auto_advance(Some(100 * MS));
    tokio::time::sleep(99 * MS).await;
    assert_eq!(seen(&server), (2, Duration::ZERO));
    tokio::time::sleep(5 * MS).await;
    assert_eq!(seen(&server), (1, 10 * SECOND));
    // A request defers the jump, a ping does not.
    let (mut busy, mut ping) = (Vec::new(), Vec::new());
    wire::exists("/", false).encode(Xid(2), &mut busy);
    Request::Ping.encode(Xid::PING, &mut ping);
    for _ in 0..10 {
        tokio::time::sleep(60 * MS).await;
        second.write_all(&busy).await.unwrap();
    }
    assert_eq!(seen(&server), (1, 10 * SECOND));
    tokio::time::sleep(60 * MS).await;
    second.write_all(&ping).await.unwrap();
    tokio::time::sleep(60 * MS).await;
    assert_eq!(seen(&server), (0, 30 * SECOND));
    // Without a deadline, time does not advance.
    tokio::time::sleep(60 * SECOND).await;
    assert_eq!(seen(&server), (0, 30 * SECOND));
    // Nothing is advanced once auto advance is off, nor on a running clock.
    server.auto_advance(None);
    server.reset_faults();
    let third = open_local(&server, 10_000).await;
    tokio::time::sleep(60 * SECOND).await;
    assert_eq!(seen(&server), (1, 30 * SECOND));
    server.auto_advance(Some(100 * MS));
    server.unfreeze();
    tokio::time::sleep(5 * SECOND).await;
    assert_eq!(seen(&server), (1, 35 * SECOND));
    let mut rest = Vec::new();
    first.read_to_end(&mut rest).await.unwrap();
    drop(third);
    server.check().unwrap();
}

/// Auto advance gives a new connection one second of real time for its handshake.
#[tokio::test(start_paused = true)]
async fn auto_advance_waits_for_a_new_connections_handshake() {
    let builder = AsyncServer::builder().manual_clock();
    let server = builder.start().await.unwrap();
    server.auto_advance(Some(10 * MS));
    let late = server.local();
    tokio::time::sleep(900 * MS).await;
    assert_eq!(server.now().elapsed, Duration::ZERO);
    tokio::time::sleep(200 * MS).await;
    // Its handshake was the only deadline.
    assert_eq!(server.now().elapsed, 10 * SECOND);
    drop(late);
}

/// The save interval follows the server's clock: a jump past it causes a save.
#[test]
fn save_interval_follows_the_servers_clock() {
    let dir = std::env::temp_dir().join(format!("minikeeper-time-{}", std::process::id()));
    let config = Config {
        manual_clock: true,
        data_dir: Some(dir.clone()),
        save_interval: 3_600 * SECOND,
        ..Config::default()
    };
    let server = Server::start(config).unwrap();
    let (mut client, _) = Wire::open(server.addr(), TIMEOUT_MS);
    client.must(&wire::create("/kept", b"", CreateMode::Persistent));
    let zxid = client.call(&Request::Ping).zxid;
    // The session has expired by then, which takes a zxid.
    server.advance_strictly(3_600 * SECOND);
    let name = format!("version-2/snapshot.{:x}", zxid.0 + 1);
    wait_until("the state is saved", || dir.join(&name).exists());
    drop(server);
    std::fs::remove_dir_all(&dir).unwrap();
}

/// `advance` expires no connected session, since its client would have sent pings on the way.
/// Everything else happens at its own time.
#[test]
fn advance_expires_only_disconnected_and_silenced_sessions() {
    let scene = Scene::new();
    let leased = Znode::from("").time_to_live(60 * SECOND);
    scene.server.seed(&tree! { "/c" => leased }).unwrap();
    let (mut client, _) = scene.open_session();
    client.must(&wire::create("/mine", b"", CreateMode::Ephemeral));
    client.must(&wire::children("/", true));
    let (mut gone, gones) = scene.open_session();
    gone.must(&wire::create("/gone", b"", CreateMode::Ephemeral));
    drop(gone);
    wait_until("its connection is closed", || {
        scene.server.connections() == 2
    });
    let (mut paused, paused_session) = scene.open_session();
    paused.must(&wire::create("/paused", b"", CreateMode::Ephemeral));
    scene.server.silence(paused_session.session_id).unwrap();
    let (mut cut, _) = scene.open_session();
    cut.must(&wire::create("/cut", b"", CreateMode::Ephemeral));
    scene.server.disconnect("/cut").unwrap();
    let there = |path| scene.server.get(path).is_some();
    scene.server.advance(10 * SECOND - MS);
    assert!(there("/gone") && there("/paused") && there("/cut"));
    scene.server.advance(MS);
    assert!(!there("/gone") && !there("/paused") && !there("/cut"));
    assert!(scene.server.expire(gones.session_id).is_err());
    scene.server.advance(24 * 3_600 * SECOND);
    assert!(there("/mine"));
    assert!(!there("/c"), "its time to live ended on the way");
    assert_eq!(client.event().kind, EventKind::ChildrenChanged);
    client.must(&wire::get("/mine", false));
    // After the jump the session has its whole timeout left.
    scene.server.advance_strictly(10 * SECOND - MS);
    assert!(there("/mine"));
    scene.server.advance_strictly(MS);
    assert!(!there("/mine"));
    client.expect_closed();
}

/// The faults that drop or delay all pings of a connected session make a jump expire it.
#[test]
fn advance_expires_a_connected_session_whose_pings_are_lost() {
    let ping = || Fault::drop_request().on(OpCode::Ping).optional();
    let hour = 3_600 * SECOND;
    for (fault, survives) in [
        (ping(), false),
        (Fault::drop_request().optional(), false),
        (Fault::delay(10 * SECOND).optional(), false),
        (Fault::delay(9 * SECOND).optional(), true),
        (ping().times(5), true),
        (ping().with_probability(0.5, 1), true),
        (ping().skip(1), true),
        (ping().of(std::net::IpAddr::from([127, 0, 0, 2])), true),
        (ping().of(std::net::IpAddr::from([127, 0, 0, 1])), false),
        (Fault::drop_request().at("/x").optional(), true),
        (Fault::error(minikeeper::ErrorCode::NoAuth).optional(), true),
    ] {
        let server = Server::builder().manual_clock().start().unwrap();
        let (mut client, session) = Wire::open(server.addr(), TIMEOUT_MS);
        let guard = server.inject(fault.clone()).unwrap();
        server.advance(hour);
        let is_there = server.find_sessions(session.session_id).len() == 1;
        assert_eq!(is_there, survives, "{fault}");
        drop(guard);
        if survives {
            client.ping();
        } else {
            client.expect_closed();
        }
    }
}

/// A delayed request extends its session only when it is served.
#[test]
fn advance_expires_a_session_whose_request_is_delayed_beyond_its_timeout() {
    for (delay, survives) in [(9 * SECOND, true), (11 * SECOND, false)] {
        let server = Server::builder().manual_clock().start().unwrap();
        let (mut client, session) = Wire::open(server.addr(), TIMEOUT_MS);
        let fault = Fault::delay(delay).on(OpCode::Exists).once();
        let guard = server.inject(fault).unwrap();
        client.send(&wire::exists("/", false));
        server.until_hit(guard.id(), 1, 10 * SECOND).unwrap();
        server.advance(60 * SECOND);
        let is_there = server.find_sessions(session.session_id).len() == 1;
        assert_eq!(is_there, survives, "{delay:?}");
    }
}

/// Random sessions and jumps, also strict ones: a responsive session survives, any other one
/// expires exactly its timeout after its last request.
#[test]
fn random_jumps_expire_exactly_the_unresponsive_sessions() {
    let seed = minikeeper_test_kit::random::seed_or(1);
    println!("MINIKEEPER_SEED={seed}");
    let mut random = Random::new(seed);
    let mut below = |end: usize| random.below(end) as u64;
    for _ in 0..20 {
        let server = Server::builder().manual_clock().start().unwrap();
        let mut now_ms = 0;
        // The connection, id, timeout and last activity of each session, and whether it responds.
        let mut sessions = Vec::new();
        for _ in 0..40 {
            match below(6) {
                0 | 1 => {
                    let timeout_ms = 6_000 + below(50_000);
                    let (wire, session) =
                        Wire::open(server.addr(), i32::try_from(timeout_ms).unwrap());
                    sessions.push((Some(wire), session.session_id, timeout_ms, now_ms, true));
                }
                2 if !sessions.is_empty() => {
                    let index = usize::try_from(below(sessions.len())).unwrap();
                    let (wire, id, ..) = &mut sessions[index];
                    wire.take();
                    // The number of connections would not do: the connection of a session that
                    // expired in the last step may still be closing.
                    wait_until("the connection is closed", || {
                        server
                            .sessions()
                            .iter()
                            .any(|info| info.id == *id && !info.is_connected)
                    });
                    sessions[index].4 = false;
                }
                3 if !sessions.is_empty() => {
                    let index = usize::try_from(below(sessions.len())).unwrap();
                    server.silence(sessions[index].1).unwrap();
                    sessions[index].4 = false;
                }
                4 => {
                    let by_ms = below(30_000);
                    now_ms += by_ms;
                    server.advance_strictly(Duration::from_millis(by_ms));
                    sessions.retain(|(_, _, timeout, heard, _)| now_ms - heard < *timeout);
                }
                _ => {
                    let by_ms = below(200_000);
                    now_ms += by_ms;
                    server.advance(Duration::from_millis(by_ms));
                    for session in &mut sessions {
                        if session.4 {
                            session.3 = now_ms;
                        }
                    }
                    sessions.retain(|(_, _, timeout, heard, _)| now_ms - heard < *timeout);
                }
            }
            let found: Vec<_> = server.sessions().into_iter().map(|info| info.id).collect();
            let expected: Vec<_> = sessions.iter().map(|session| session.1).collect();
            assert_eq!(found, expected, "after {now_ms} ms");
            server.check().unwrap();
        }
    }
}

/// Auto advance expires no connected session either.
#[tokio::test(start_paused = true)]
async fn auto_advance_expires_no_connected_session() {
    let server = AsyncServer::builder().manual_clock().start().await.unwrap();
    let connected = open_local(&server, 10_000).await;
    let gone = open_local(&server, 20_000).await;
    drop(gone);
    server.auto_advance(Some(100 * MS));
    tokio::time::sleep(SECOND).await;
    assert_eq!(seen(&server), (1, 20 * SECOND));
    tokio::time::sleep(60 * SECOND).await;
    assert_eq!(seen(&server), (1, 20 * SECOND));
    // The silenced session has a deadline to advance to.
    let id = server.sessions()[0].id;
    server.silence(id).unwrap();
    tokio::time::sleep(SECOND).await;
    assert_eq!(seen(&server), (0, 30 * SECOND));
    drop(connected);
}
