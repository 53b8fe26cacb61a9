//! Several trees behind one port.

use std::{thread, time::Duration};

use minikeeper::{UniverseError, blocking};
use minikeeper_protocol::{
    CreateMode, ErrorCode, EventKind, MultiOp, MultiResult, OpCode, Reply, Request, Zxid,
};
use minikeeper_test_kit::wire::{self, PATIENCE, Wire};

use crate::kit::{TIMEOUT_MS, resume, start, wait_until};

/// Everything that carries a path carries the universe's prefix, both ways.
#[test]
fn clients_see_their_chroot_and_nothing_else() {
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
        panic!("a multi is answered as one")
    };
    assert!(matches!(&results[..], [MultiResult::Create2 { path, .. }] if *path == "/mine/m"));
    // The root of the universe is what the prefix alone names.
    let children = client.must(&wire::children("/mine", false));
    assert!(
        format!("{children:?}").contains("e-0000000001"),
        "{children:?}"
    );
    // Nothing of it is in the server's own universe, nor the other way round.
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

/// The first path decides; what comes before it, and in one batch with it, is served in order.
#[test]
fn session_moves_with_its_first_path() {
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
    // Over another connection it is known by its id.
    drop(client);
    wait_until("the connection is gone", || mine.connections() == 0);
    let (mut client, resumed) = resume(&server, &session);
    assert_eq!(resumed.session_id, session.session_id);
    client.must(&wire::get("/mine/a", false));
    assert!(mine.get("/a").is_some());
    mine.check().unwrap();
}

/// Curator asks for the configuration before anything else, with a watch, and without its chroot.
/// Source: Curator, EnsembleTracker; ZooKeeper 3.9, ZooKeeper.getConfig.
#[test]
fn config_is_answered_everywhere_and_says_nothing_about_the_universe() {
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
fn each_has_its_time_and_its_sessions() {
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
    // Each counts its changes itself.
    assert_eq!(two.get("/e").unwrap().1.czxid, Zxid(2));
}

#[test]
fn universe_is_gone_with_its_guard() {
    let server = start();
    let mine = server.create_universe("mine").unwrap();
    let (mut client, session) = Wire::open(server.addr(), TIMEOUT_MS);
    client.must(&wire::create("/mine/a", b"", CreateMode::Persistent));
    drop(mine);
    client.expect_closed();
    let (_, refused) = resume(&server, &session);
    assert_eq!(refused.timeout_ms, 0);
    assert_eq!(server.universes(), [""; 0]);
    // The name is free, and the next one begins with nothing.
    let mine = server.create_universe("mine").unwrap().keep();
    assert!(mine.get("/a").is_none());
    assert_eq!(server.universes(), ["mine"]);
    assert!(server.drop_universe("mine"));
    assert!(!server.drop_universe("mine"));
}

#[test]
fn names_that_cannot_be_are_refused() {
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

/// A copy goes on by itself, and a client that names it goes on in it.
#[test]
fn fork_is_a_universe_of_its_own() {
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
    // The session that owned it here does not live on there.
    copy.advance(Duration::from_secs(60));
    assert!(copy.get("/e").is_none() && server.get("/e").is_some());
    let second = copy.fork("second").unwrap();
    assert_eq!(data(&second), Some(b"3".to_vec()));
    for universe in [&copy, &second] {
        universe.check().unwrap();
    }
}

/// Real time, a server without a clock of its own making, and a client of ours.
#[test]
fn sessions_of_a_universe_expire_by_themselves() {
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
    // A copy of a server whose time runs: its time goes on too.
    let copy = server.fork("copy").unwrap();
    copy.check().unwrap();
}

/// Until its client has sent a path, a session may belong to any universe. Each finds it where it is
/// named beyond doubt, and the only one beside the server's own in any way.
#[test]
fn session_of_no_universe_yet_is_found_from_each() {
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
    // With a third one it may be that one's client.
    let other = server.create_universe("other").unwrap();
    for universe in [&*mine, &*other] {
        assert!(universe.sessions().is_empty());
        assert_eq!(universe.find_sessions(id), [id]);
        assert_eq!(universe.find_sessions(client.local_address()), [id]);
        for vague in ["127.0.0.1", "ip:127.0.0.1"] {
            let vague = universe.expire(vague).unwrap_err().to_string();
            assert!(
                vague.contains("name one by id or by address and port"),
                "{vague}"
            );
        }
    }
    assert_eq!(server.find_sessions("127.0.0.1"), [id]);
    assert!(server.sessions()[0].is_unbound);
    // It is cut, and comes back.
    assert_eq!(mine.disconnect(id), Ok(1));
    client.expect_closed();
    wait_until("the connection is gone", || server.connections() == 0);
    assert!(!server.sessions()[0].is_unbound);
    let (mut client, _) = resume(&server, &session);
    // Not heard, wherever it goes.
    assert_eq!(mine.silence(id), Ok(1));
    assert!(server.faults().len() == 1 && mine.faults().len() == 1);
    client.send(&Request::Ping);
    wait_until("it is lost", || server.faults()[0].hits == 1);
    assert_eq!(mine.unsilence(id), Ok(1));
    assert!(server.faults().is_empty() && mine.faults().is_empty());
    client.ping();
    // It belongs to one, and to no other.
    client.must(&wire::create("/mine/a", b"", CreateMode::Ephemeral));
    assert!(!mine.sessions()[0].is_unbound);
    assert!(other.sessions().is_empty() && server.sessions().is_empty());
    assert!(other.expire(id).is_err() && server.expire(id).is_err());
    assert_eq!(mine.expire(id), Ok(1));
    client.expect_closed();
    // One that is ended before it has said a word.
    let (mut client, session) = Wire::open(server.addr(), TIMEOUT_MS);
    assert_eq!(mine.expire(session.session_id), Ok(1));
    client.expect_closed();
}

/// What a universe lists is what its waits count.
#[test]
fn sessions_are_waited_for() {
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
        assert!(error.starts_with("0 sessions are there: not within 1ms; there is 1 session: 0x"));
        mine.expire_told(second.local_address()).await.unwrap();
        mine.until_sessions(0, PATIENCE).await.unwrap();
    });
}
