//! Several trees on one port.

use std::{thread, time::Duration};

use minikeeper::{UniverseError, blocking};
use minikeeper_protocol::{
    CreateMode, ErrorCode, EventKind, MultiOp, MultiResult, OpCode, Reply, Request, Zxid,
};
use minikeeper_test_kit::wire::{self, PATIENCE, Wire};

use crate::kit::{TIMEOUT_MS, resume, start, wait_until};

/// Every path in requests, replies and events has the universe's prefix.
#[test]
fn clients_see_only_their_universe_under_its_prefix() {
    let server = start();
    let mine = server.create_universe("mine").unwrap();
    assert_eq!(mine.connect_string(), format!("{}/mine", server.addr()));
    assert_eq!(mine.name(), "mine");
    let (mut client, _) = Wire::open(server.addr(), TIMEOUT_MS);
    let (mut root, _) = Wire::open(server.addr(), TIMEOUT_MS);
    root.must(&wire::get("/", false));
    let created = client.must(&wire::create("/mine/a", b"1", CreateMode::Persistent));
    assert_eq!(created, Reply::Path(Some("/mine/a".into())));
    let created = client.must(&wire::create(
        "/mine/e-",
        b"",
        CreateMode::EphemeralSequential,
    ));
    let ephemeral = "/mine/e-0000000001";
    assert_eq!(created, Reply::Path(Some(ephemeral.into())));
    client.must(&wire::get("/mine/a", true));
    client.send(&wire::set("/mine/a", b"2"));
    let event = client.event();
    client.answer(OpCode::SetData).outcome.unwrap();
    assert_eq!(
        (event.kind, &*event.path),
        (EventKind::DataChanged, "/mine/a")
    );
    let ephemerals = client.must(&Request::GetEphemerals {
        prefix: Some("/mine".into()),
    });
    assert_eq!(ephemerals, Reply::Ephemerals(vec![ephemeral.into()]));
    let sync = Request::Sync {
        path: Some("/mine/a".into()),
    };
    assert_eq!(client.must(&sync), Reply::Path(Some("/mine/a".into())));
    let Reply::Multi(results) = client.must(&Request::Multi(vec![MultiOp::Create(
        minikeeper_protocol::Create::new("/mine/m", b"", CreateMode::Persistent),
    )])) else {
        panic!("the reply to a multi is a multi")
    };
    assert!(matches!(&results[..], [MultiResult::Create2 { path, .. }] if *path == "/mine/m"));
    // The prefix alone is the root of the universe.
    let children = client.must(&wire::children("/mine", false));
    assert!(
        format!("{children:?}").contains("e-0000000001"),
        "{children:?}"
    );
    // The server's own universe has none of its znodes, nor the other way round.
    assert_eq!(server.children("/").unwrap(), ["zookeeper"]);
    assert_eq!(
        root.refused(&wire::get("/mine/a", false)),
        ErrorCode::NoNode
    );
    assert_eq!(
        client.refused(&wire::get("/zookeeper", false)),
        ErrorCode::NoNode
    );
    assert_eq!(
        client.refused(&wire::get("/minecraft", false)),
        ErrorCode::NoNode
    );
    assert_eq!((mine.sessions().len(), server.sessions().len()), (1, 1));
    mine.check().unwrap();
    server.check().unwrap();
}

/// A session belongs to the universe of its first path. Requests before that one, and in the same
/// batch, are served in order.
#[test]
fn session_is_bound_to_a_universe_by_its_first_path() {
    let server = start();
    let mine = server.create_universe("mine").unwrap();
    let (mut client, session) = Wire::open(server.addr(), TIMEOUT_MS);
    client.ping();
    client.must(&Request::Auth {
        kind: 0,
        scheme: Some("digest".into()),
        data: Some(b"alice:secret"[..].into()),
    });
    assert_eq!((mine.sessions().len(), server.sessions().len()), (1, 1));
    assert!(mine.sessions()[0].is_unbound && server.sessions()[0].is_unbound);
    client.send(&wire::create("/mine/a", b"", CreateMode::Ephemeral));
    client.send(&wire::get("/mine/a", false));
    client.answer(OpCode::Create).outcome.unwrap();
    client.answer(OpCode::GetData).outcome.unwrap();
    let who = client.must(&Request::WhoAmI);
    assert!(format!("{who:?}").contains("alice"), "{who:?}");
    assert_eq!((mine.sessions().len(), server.sessions().len()), (1, 0));
    assert_eq!(mine.sessions()[0].id, session.session_id);
    assert!(!mine.sessions()[0].is_unbound);
    server.check().unwrap();
    // Another connection finds the session by its id.
    drop(client);
    wait_until("the connection is closed", || mine.connections() == 0);
    let (mut client, resumed) = resume(&server, &session);
    assert_eq!(resumed.session_id, session.session_id);
    client.must(&wire::get("/mine/a", false));
    assert!(mine.get("/a").is_some());
    mine.check().unwrap();
}

/// Curator first reads the configuration, with a watch and without its chroot.
/// Source: Curator, EnsembleTracker; ZooKeeper 3.9, ZooKeeper.getConfig.
#[test]
fn read_of_the_config_does_not_bind_a_session() {
    let server = start();
    let mine = server.create_universe("mine").unwrap();
    let (mut client, session) = Wire::open(server.addr(), TIMEOUT_MS);
    let config = wire::get("/zookeeper/config", true);
    client.must(&config);
    client.must(&wire::create("/mine/a", b"", CreateMode::Ephemeral));
    assert_eq!(mine.children("/").unwrap(), ["zookeeper", "a"]);
    client.must(&config);
    drop(client);
    let (mut client, _) = resume(&server, &session);
    client.must(&config);
    client.must(&wire::get("/mine/a", false));
}

#[test]
fn universes_have_separate_clocks_sessions_and_zxids() {
    let server = start();
    let (one, two) = (
        server.create_universe("one").unwrap(),
        server.create_universe("two").unwrap(),
    );
    let open = |path: &str| {
        let (mut client, _) = Wire::open(server.addr(), TIMEOUT_MS);
        client.must(&wire::create(path, b"", CreateMode::Ephemeral));
        client
    };
    let (mut first, mut second) = (open("/one/e"), open("/two/e"));
    one.advance_strictly(Duration::from_secs(60));
    first.expect_closed();
    second.ping();
    assert!(one.get("/e").is_none() && two.get("/e").is_some());
    // Each universe has its own zxids.
    assert_eq!(two.get("/e").unwrap().1.czxid, Zxid(2));
}

#[test]
fn universe_is_dropped_with_its_guard() {
    let server = start();
    let mine = server.create_universe("mine").unwrap();
    let (mut client, session) = Wire::open(server.addr(), TIMEOUT_MS);
    client.must(&wire::create("/mine/a", b"", CreateMode::Persistent));
    drop(mine);
    client.expect_closed();
    let (_, refused) = resume(&server, &session);
    assert_eq!(refused.timeout_ms, 0);
    assert_eq!(server.universes(), [""; 0]);
    // The name is free, and the next universe with it starts empty.
    let mine = server.create_universe("mine").unwrap().keep();
    assert!(mine.get("/a").is_none());
    assert_eq!(server.universes(), ["mine"]);
    assert!(server.drop_universe("mine"));
    assert!(!server.drop_universe("mine"));
}

#[test]
fn invalid_and_taken_universe_names_are_refused() {
    let server = start();
    for name in ["", "a/b", "/a", ".", "..", "a\0b"] {
        let refused = server.create_universe(name).unwrap_err();
        let name = name.to_owned();
        assert_eq!(refused, UniverseError::InvalidName { name });
    }
    let (mut client, _) = Wire::open(server.addr(), TIMEOUT_MS);
    client.must(&wire::create("/taken", b"", CreateMode::Persistent));
    let _first = server.create_universe("first").unwrap();
    for name in ["zookeeper", "taken", "first"] {
        let refused = server.create_universe(name).unwrap_err();
        let name = name.to_owned();
        assert_eq!(refused, UniverseError::Taken { name });
    }
    let names = [(); 3].map(|()| server.new_universe().unwrap().keep().name());
    assert_eq!(names.len(), 3);
    assert!(names[0] != names[1] && names[1] != names[2]);
}

/// A fork changes independently of its origin, and clients reach it by its name.
#[test]
fn fork_is_an_independent_universe() {
    let server = start();
    let (mut client, _) = Wire::open(server.addr(), TIMEOUT_MS);
    client.must(&wire::create("/a", b"1", CreateMode::Persistent));
    client.must(&wire::create("/e", b"", CreateMode::Ephemeral));
    server.advance(Duration::from_secs(5));
    let copy = server.fork("copy").unwrap();
    client.must(&wire::set("/a", b"2"));
    let data = |universe: &minikeeper::Universe| universe.get("/a").unwrap().0;
    assert_eq!(data(&copy), Some(b"1".to_vec()));
    assert_eq!(data(&server), Some(b"2".to_vec()));
    let (mut other, _) = Wire::open(server.addr(), TIMEOUT_MS);
    other.must(&wire::set("/copy/a", b"3"));
    assert_eq!(data(&server), Some(b"2".to_vec()));
    // In the copy, the owner's session has no client and expires.
    copy.advance(Duration::from_secs(60));
    assert!(copy.get("/e").is_none() && server.get("/e").is_some());
    let second = copy.fork("second").unwrap();
    assert_eq!(data(&second), Some(b"3".to_vec()));
    for universe in [&copy, &second] {
        universe.check().unwrap();
    }
}

/// On the system clock, a session of a universe expires without `advance`.
#[test]
fn sessions_of_a_universe_expire_on_the_system_clock() {
    let server = blocking::Server::builder()
        .tick_time(Duration::from_millis(10))
        .configure(|config| config.session_timeout_min_ms = Some(20))
        .start()
        .unwrap();
    let mine = server.new_universe().unwrap();
    let (mut client, _) = Wire::open(server.addr(), 20);
    let path = format!("/{}/e", mine.name());
    client.must(&wire::create(&path, b"", CreateMode::Ephemeral));
    wait_until("the session expires", || mine.get("/e").is_none());
    // A fork of a server with a running clock is consistent too.
    let copy = server.fork("copy").unwrap();
    copy.check().unwrap();
}

/// Until its client has sent a path, a session is unbound: it may belong to any universe. Every
/// universe finds it by an unambiguous selector. If there is only one universe besides the server's
/// own, that one finds it by any selector.
#[test]
fn unbound_session_is_found_from_every_universe() {
    let server = start();
    let mine = server.create_universe("mine").unwrap();
    let (mut client, session) = Wire::open(server.addr(), TIMEOUT_MS);
    let id = session.session_id;
    for universe in [&*mine, server.universe()] {
        let sessions = universe.sessions();
        assert_eq!(sessions.len(), 1);
        assert!(sessions[0].is_unbound && sessions[0].id == id);
        for who in ["127.0.0.1", "ip:127.0.0.1"] {
            assert_eq!(universe.find_sessions(who), [id]);
        }
    }
    // With a third universe, the client may be that one's.
    let other = server.create_universe("other").unwrap();
    for universe in [&*mine, &*other] {
        assert!(universe.sessions().is_empty());
        assert_eq!(universe.find_sessions(id), [id]);
        assert_eq!(universe.find_sessions(client.local_address()), [id]);
        for vague in ["127.0.0.1", "ip:127.0.0.1"] {
            let vague = universe.expire(vague).unwrap_err().to_string();
            assert!(
                vague.contains("select one by id or by address and port"),
                "{vague}"
            );
        }
    }
    assert_eq!(server.find_sessions("127.0.0.1"), [id]);
    assert!(server.sessions()[0].is_unbound);
    // The session is disconnected and resumed.
    assert_eq!(mine.disconnect(id), Ok(1));
    client.expect_closed();
    wait_until("the connection is closed", || server.connections() == 0);
    assert!(!server.sessions()[0].is_unbound);
    let (mut client, _) = resume(&server, &session);
    // It can be silenced while unbound.
    assert_eq!(mine.silence(id), Ok(1));
    assert!(server.faults().len() == 1 && mine.faults().len() == 1);
    client.send(&Request::Ping);
    wait_until("the ping is dropped", || server.faults()[0].hits == 1);
    assert_eq!(mine.unsilence(id), Ok(1));
    assert!(server.faults().is_empty() && mine.faults().is_empty());
    client.ping();
    // Bound to one universe, it is unknown to the others.
    client.must(&wire::create("/mine/a", b"", CreateMode::Ephemeral));
    assert!(!mine.sessions()[0].is_unbound);
    assert!(other.sessions().is_empty() && server.sessions().is_empty());
    assert!(other.expire(id).is_err() && server.expire(id).is_err());
    assert_eq!(mine.expire(id), Ok(1));
    client.expect_closed();
    // A session can be expired before it has sent a request.
    let (mut client, session) = Wire::open(server.addr(), TIMEOUT_MS);
    assert_eq!(mine.expire(session.session_id), Ok(1));
    client.expect_closed();
}

/// `until_sessions` counts the sessions that `sessions` lists.
#[test]
fn until_sessions_waits_for_the_sessions_of_a_universe() {
    let server = start();
    let mine = server.create_universe("mine").unwrap();
    let (first, second) = thread::scope(|scope| {
        let waiting = scope.spawn(|| server.until_sessions(2, PATIENCE));
        let (first, _) = Wire::open(server.addr(), TIMEOUT_MS);
        let (mut second, _) = Wire::open(server.addr(), TIMEOUT_MS);
        waiting.join().unwrap().unwrap();
        second.must(&wire::create("/mine/a", b"", CreateMode::Persistent));
        (first, second)
    });
    server.until_sessions(1, PATIENCE).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        mine.until_sessions(2, PATIENCE).await.unwrap();
        drop(first);
        mine.until_sessions(1, PATIENCE).await.unwrap();
        let none = mine.until_sessions(0, Duration::from_millis(1)).await;
        let error = none.unwrap_err().to_string();
        assert!(error.starts_with("0 sessions exist: not within 1ms; there is 1 session: 0x"));
        mine.expire_and_flush(second.local_address()).await.unwrap();
        mine.until_sessions(0, PATIENCE).await.unwrap();
    });
}
