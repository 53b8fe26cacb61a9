//! The clock: frozen, running, moved, and what falls due in between. Few tests wait for real time,
//! and then for a condition.

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

/// The test double's promise: a timeout of ten seconds is ten seconds, to the millisecond, from
/// when the session was last heard of (`docs/zookeeper-protocol.md` section 14.2), wherever ticks
/// are.
#[test]
fn silent_session_expires_exactly_its_timeout_after_it_was_heard_of() {
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

/// With a look for containers every millisecond, a year took an hour and a half.
#[test]
fn year_passes_at_once_though_a_container_is_looked_at_every_millisecond() {
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

/// `docs/zookeeper-protocol.md` section 14.1, with expiry at the tick as in ZooKeeper.
#[test]
fn session_of_a_server_that_rounds_expires_at_the_tick_past_its_timeout() {
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
fn frozen_clock_stands_still_at_its_fixed_time_and_moves_as_told() {
    let scene = Scene::new();
    let start = scene.server.now();
    let wall_ms = start.wall.duration_since(UNIX_EPOCH).unwrap().as_millis();
    assert_eq!((start.is_frozen, start.elapsed), (true, Duration::ZERO));
    assert_eq!(wall_ms, 1_704_067_200_000);
    assert!(!scene.server.freeze(), "it is frozen already");
    scene.server.advance(1_500 * MS);
    let moved = scene.server.now();
    assert_eq!(moved.elapsed, 1_500 * MS);
    assert_eq!(moved.wall, start.wall + 1_500 * MS);
    // Fractions of a millisecond are dropped.
    scene.server.advance(Duration::from_micros(999));
    assert_eq!(scene.server.now(), moved);
    scene.end();
}

/// On a running clock a jump is a jump: what is due on the way happens before it returns, in its
/// order, and time runs on from there.
#[test]
fn advance_of_a_running_clock_walks_the_deadlines_and_goes_on() {
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
    // The calendar is the system's, 50 s ahead; it may itself be set in between, but hardly back.
    assert!(after.wall >= before.wall + 49 * SECOND);
    for path in ["/first", "/second"] {
        let event = watcher.event();
        assert_eq!((event.kind, &*event.path), (EventKind::Deleted, path));
    }
    owners.iter_mut().for_each(Wire::expect_closed);
    // Znodes carry the moved time of day.
    watcher.must(&wire::create("/late", b"", CreateMode::Persistent));
    let ctime_ms = server.get("/late").unwrap().1.ctime_ms.unsigned_abs();
    assert!(UNIX_EPOCH + Duration::from_millis(ctime_ms) + SECOND >= after.wall);
    wait_until("time runs on", || server.now().elapsed > after.elapsed);
    server.check().unwrap();
}

/// The expiry task sleeps until a deadline in real time; time that was moved must wake it.
#[test]
fn session_of_a_running_clock_expires_by_itself_after_a_jump_close_to_its_deadline() {
    let server = running();
    let (mut client, _) = Wire::open(server.addr(), 60_000);
    client.must(&wire::create("/e", b"", CreateMode::Ephemeral));
    server.advance_strictly(60 * SECOND - 50 * MS);
    wait_until("the session expires by itself", || {
        server.sessions().is_empty()
    });
    client.expect_closed();
}

#[test]
fn session_does_not_expire_while_time_is_frozen_and_does_once_it_is_free() {
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
    // One millisecond later, by itself.
    assert!(server.unfreeze());
    assert!(!server.unfreeze());
    wait_until("the session expires by itself", || {
        server.sessions().is_empty()
    });
    client.expect_closed();
}

/// The clock of a server that started frozen runs like any other once it is set free.
#[test]
fn handshake_deadline_holds_on_a_clock_that_was_set_free() {
    let scene = Scene::with(|config| config.handshake_timeout = 50 * MS);
    let mut silent = scene.connect();
    wait_until("it is accepted", || scene.server.connections() == 2);
    scene.server.unfreeze();
    silent.expect_closed();
    scene.end();
}

/// Goal: time never runs backwards from turn to turn; the engine would panic. Method: one thread
/// freezes, moves and sets free while others make turns, and each compares the times that it sees.
#[test]
fn time_never_runs_backwards_while_it_is_frozen_moved_and_set_free() {
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
fn those_who_advance_at_the_same_time_move_time_by_all_of_it() {
    let scene = Scene::new();
    thread::scope(|scope_of_threads| {
        for _ in 0..4 {
            scope_of_threads.spawn(|| (0..100).for_each(|_| scene.server.advance(MS)));
        }
    });
    assert_eq!(scene.server.now().elapsed, 400 * MS);
    scene.end();
}

/// A client inside the process, which owns an ephemeral.
async fn open_local(server: &AsyncServer, timeout_ms: i32) -> minikeeper::LocalStream {
    let mut client = server.local();
    let mut bytes = Vec::new();
    ConnectRequest::new(timeout_ms).encode(&mut bytes);
    wire::create("/e-", b"", CreateMode::EphemeralSequential).encode(Xid(1), &mut bytes);
    client.write_all(&bytes).await.unwrap();
    client
}

/// How many sessions there are, and how old the server is.
fn seen(server: &AsyncServer) -> (usize, Duration) {
    (server.sessions().len(), server.now().elapsed)
}

/// Real time is the runtime's here, paused: it advances when no task has work.
#[tokio::test(start_paused = true)]
async fn idle_server_moves_frozen_time_from_deadline_to_deadline_by_itself() {
    let builder = AsyncServer::builder().manual_clock();
    let server = builder.start().await.unwrap();
    let mut first = open_local(&server, 10_000).await;
    let mut second = open_local(&server, 20_000).await;
    tokio::time::sleep(60 * SECOND).await;
    assert_eq!(seen(&server), (2, Duration::ZERO));
    // Connected sessions do not run into their timeouts, unless they are not heard.
    let deaf = Fault::drop_request().on(OpCode::Ping).optional();
    server.inject(deaf).unwrap().keep();
    server.auto_advance(Some(100 * MS));
    tokio::time::sleep(99 * MS).await;
    assert_eq!(seen(&server), (2, Duration::ZERO));
    tokio::time::sleep(5 * MS).await;
    assert_eq!(seen(&server), (1, 10 * SECOND));
    // A request defers it, a ping does not.
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
    // Where nothing is due, time stays.
    tokio::time::sleep(60 * SECOND).await;
    assert_eq!(seen(&server), (0, 30 * SECOND));
    // Switched off nothing is moved, nor on a clock that runs.
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

/// A client that takes its time between connecting and its handshake is not closed for that, as
/// long as it is not for ever.
#[tokio::test(start_paused = true)]
async fn time_that_moves_by_itself_waits_for_who_has_just_connected() {
    let builder = AsyncServer::builder().manual_clock();
    let server = builder.start().await.unwrap();
    server.auto_advance(Some(10 * MS));
    let late = server.local();
    tokio::time::sleep(900 * MS).await;
    assert_eq!(server.now().elapsed, Duration::ZERO);
    tokio::time::sleep(200 * MS).await;
    // It was the only one who had to do something by some time.
    assert_eq!(server.now().elapsed, 10 * SECOND);
    drop(late);
}

/// Intervals of saves follow the server's clock: none while it is frozen, one after a jump.
#[test]
fn interval_of_saves_is_that_of_the_servers_clock() {
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
    // By then the session has expired, which is a change too.
    server.advance_strictly(3_600 * SECOND);
    let name = format!("version-2/snapshot.{:x}", zxid.0 + 1);
    wait_until("the state is saved", || dir.join(&name).exists());
    drop(server);
    std::fs::remove_dir_all(&dir).unwrap();
}

/// A jump expires no connected session: its client would have sent pings on the way. Everything
/// else happens at its own time, as usual.
#[test]
fn connected_sessions_survive_a_jump_of_any_length_and_others_do_not() {
    let scene = Scene::new();
    let leased = Znode::from("").time_to_live(60 * SECOND);
    scene.server.seed(&tree! { "/c" => leased }).unwrap();
    let (mut client, _) = scene.open_session();
    client.must(&wire::create("/mine", b"", CreateMode::Ephemeral));
    client.must(&wire::children("/", true));
    let (mut gone, gones) = scene.open_session();
    gone.must(&wire::create("/gone", b"", CreateMode::Ephemeral));
    drop(gone);
    wait_until("its connection is gone", || scene.server.connections() == 2);
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
    assert!(!there("/c"), "its time to live has ended on the way");
    assert_eq!(client.event().kind, EventKind::ChildrenChanged);
    client.must(&wire::get("/mine", false));
    // From the end of the jump on it has its whole timeout.
    scene.server.advance_strictly(10 * SECOND - MS);
    assert!(there("/mine"));
    scene.server.advance_strictly(MS);
    assert!(!there("/mine"));
    client.expect_closed();
}

/// Which faults keep a connected session from being heard, so that a jump ends it.
#[test]
fn jump_ends_a_connected_session_whose_pings_are_lost() {
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

/// A session whose request is delayed is not heard of until that is served.
#[test]
fn jump_past_a_delayed_request_is_that_of_a_session_which_says_nothing_until_then() {
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

/// Sessions of any kind and jumps of any length, strict ones too: who answers lives on, and who
/// does not ends exactly its timeout after it was heard of last.
#[test]
fn jumps_end_exactly_the_sessions_that_are_not_heard() {
    let seed = minikeeper_test_kit::random::seed_or(1);
    println!("MINIKEEPER_SEED={seed}");
    let mut random = Random::new(seed);
    let mut below = |end: usize| random.below(end) as u64;
    for _ in 0..20 {
        let server = Server::builder().manual_clock().start().unwrap();
        let mut now_ms = 0;
        // Its connection, session, timeout, when it was heard of last, and whether it answers.
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
                    // Counting connections would not do: that of a session that expired in the
                    // last step may still be closing.
                    wait_until("it is closed", || {
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

/// The server's own way of moving time spares connected sessions too.
#[tokio::test(start_paused = true)]
async fn time_that_moves_by_itself_ends_no_connected_session() {
    let server = AsyncServer::builder().manual_clock().start().await.unwrap();
    let connected = open_local(&server, 10_000).await;
    let gone = open_local(&server, 20_000).await;
    drop(gone);
    server.auto_advance(Some(100 * MS));
    tokio::time::sleep(SECOND).await;
    assert_eq!(seen(&server), (1, 20 * SECOND));
    tokio::time::sleep(60 * SECOND).await;
    assert_eq!(seen(&server), (1, 20 * SECOND));
    // It sends nothing any more, so there is a deadline to advance to.
    let id = server.sessions()[0].id;
    server.silence(id).unwrap();
    tokio::time::sleep(SECOND).await;
    assert_eq!(seen(&server), (0, 30 * SECOND));
    drop(connected);
}
