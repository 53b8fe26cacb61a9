//! A server that goes down and comes up on the same port: `docs/zookeeper-protocol.md` sections
//! 6.5, 6.8 and 14.7.

use std::{net::TcpStream, time::Duration};

use minikeeper::{Keep, RestartError, blocking};
use minikeeper_protocol::{ConnectResponse, CreateMode, SessionId, Zxid};
use minikeeper_test_kit::wire::{self, Wire};

use crate::kit::TIMEOUT_MS;

const SECOND: Duration = Duration::from_secs(1);

/// A server before the restart, and a client with a znode, an ephemeral and its last seen zxid.
struct Before {
    server: blocking::Server,
    client: Wire,
    session: ConnectResponse,
    seen: Zxid,
}

impl Before {
    fn new() -> Self {
        let server = blocking::Server::builder().manual_clock().start().unwrap();
        let (mut client, session) = Wire::open(server.addr(), TIMEOUT_MS);
        client.must(&wire::create("/data", b"d", CreateMode::Persistent));
        let created = client.call(&wire::create("/ephemeral", b"", CreateMode::Ephemeral));
        Self {
            server,
            client,
            session,
            seen: created.zxid,
        }
    }

    /// Reconnects and resumes the session, as clients do on their own.
    #[track_caller]
    fn reconnect(&self) -> (Wire, ConnectResponse) {
        let password = self.session.password.as_deref().expect("always sent");
        let mut wire = Wire::connect(self.server.addr());
        let response = wire.resume(self.session.session_id, password, self.seen, TIMEOUT_MS);
        (wire, response)
    }
}

#[test]
fn restart_keeping_everything_keeps_sessions_and_ephemerals() {
    let mut before = Before::new();
    let port = before.server.addr().port();
    before.server.restart(Keep::Everything).unwrap();
    assert_eq!(before.server.addr().port(), port);
    before.client.expect_closed();
    let (mut client, resumed) = before.reconnect();
    assert_eq!(resumed, before.session);
    client.must(&wire::get("/ephemeral", false));
    let next = client.call(&wire::create("/next", b"", CreateMode::Persistent));
    assert_eq!(next.zxid, Zxid(before.seen.0 + 1));
    before.server.check().unwrap();
}

#[test]
fn restart_keeping_data_expires_sessions() {
    let mut before = Before::new();
    before.server.restart(Keep::Data).unwrap();
    before.client.expect_closed();
    let (_, refused) = before.reconnect();
    assert_eq!(refused.session_id, SessionId::NONE);
    assert_eq!(before.server.children("/").unwrap(), ["zookeeper", "data"]);
    assert_eq!(before.server.sessions(), []);
    before.server.check().unwrap();
}

/// The client learns that its session has expired, and is not refused for having seen a later zxid.
#[test]
fn restart_keeping_nothing_serves_an_empty_tree_to_old_clients() {
    let mut before = Before::new();
    before.server.restart(Keep::Nothing).unwrap();
    before.client.expect_closed();
    let (_, refused) = before.reconnect();
    assert_eq!(refused.session_id, SessionId::NONE);
    assert_eq!(before.server.children("/").unwrap(), ["zookeeper"]);
    let mut client = Wire::connect(before.server.addr());
    let password = [0; 16];
    let opened = client.resume(SessionId::NONE, &password, before.seen, TIMEOUT_MS);
    assert!(opened.session_id > before.session.session_id);
    before.server.check().unwrap();
}

#[test]
fn server_that_is_down_refuses_connections_and_expires_no_session() {
    let mut before = Before::new();
    before.server.go_down();
    before.server.go_down();
    before.client.expect_closed();
    assert!(TcpStream::connect(before.server.addr()).is_err());
    assert_eq!(before.server.connections(), 0);
    assert!(before.server.get("/ephemeral").is_some());
    before.server.advance(60 * SECOND);
    assert_eq!(before.server.sessions().len(), 1);
    before.server.come_up(Keep::Everything).unwrap();
    // `come_up` has no effect on a server that is up.
    before.server.come_up(Keep::Nothing).unwrap();
    assert!(before.server.get("/data").is_some());
    // The session has its whole timeout left.
    let last = Duration::from_millis(1);
    before.server.advance(10 * SECOND - last);
    assert_eq!(before.server.sessions().len(), 1);
    before.server.advance(last);
    assert_eq!(before.server.sessions(), []);
    assert!(before.server.get("/ephemeral").is_none());
    before.server.check().unwrap();
}

#[test]
fn restart_drops_watches() {
    let mut before = Before::new();
    before.client.must(&wire::get("/data", true));
    before.server.restart(Keep::Everything).unwrap();
    let (mut client, _) = before.reconnect();
    client.must(&wire::set("/data", b"other"));
    // The next frame is the reply, not an event.
    client.must(&wire::get("/data", false));
    before.server.check().unwrap();
}

#[test]
fn repeated_restarts_keep_the_session() {
    let before = Before::new();
    for round in 0..20 {
        let (mut client, resumed) = before.reconnect();
        assert_eq!(resumed, before.session, "{round}");
        client.must(&wire::set("/data", b"again"));
        before.server.restart(Keep::Everything).unwrap();
        client.expect_closed();
    }
    let (_, stat) = before.server.get("/data").unwrap();
    assert_eq!(stat.version, 20);
    before.server.check().unwrap();
}

#[tokio::test]
async fn restart_closes_in_process_connections() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let server = minikeeper::Server::builder().start().await.unwrap();
    let mut old = server.local();
    server.restart(Keep::Everything).await.unwrap();
    let mut answer = Vec::new();
    old.read_to_end(&mut answer).await.unwrap();
    assert_eq!(answer, b"");
    let mut new = server.local();
    new.write_all(b"ruok").await.unwrap();
    new.read_to_end(&mut answer).await.unwrap();
    assert_eq!(answer, b"imok");
    server.go_down().await;
    let mut refused = server.local();
    answer.clear();
    refused.read_to_end(&mut answer).await.unwrap();
    assert_eq!(answer, b"");
}

#[tokio::test]
async fn server_that_cannot_come_up_reports_why_and_stays_down() {
    let server = minikeeper::Server::builder().start().await.unwrap();
    server.go_down().await;
    let taken = std::net::TcpListener::bind(server.addr()).unwrap();
    let error = server.come_up(Keep::Data).await.unwrap_err();
    assert!(matches!(error, RestartError::Start(_)), "{error}");
    drop(taken);
    server.come_up(Keep::Data).await.unwrap();
    let universe = server.universe().clone();
    server.shutdown().await.unwrap();
    let error = universe.restart(Keep::Data).await.unwrap_err();
    assert!(matches!(error, RestartError::Stopped), "{error}");
}

/// A state that is not kept must not come back from the disk either.
#[test]
fn restart_keeping_nothing_empties_the_data_directory() {
    let dir = std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("restarting");
    let _ = std::fs::remove_dir_all(&dir);
    let start = || {
        let builder = blocking::Server::builder().manual_clock().data_dir(&dir);
        builder.start().unwrap()
    };
    let server = start();
    let (mut client, _) = Wire::open(server.addr(), TIMEOUT_MS);
    client.must(&wire::create("/data", b"d", CreateMode::Persistent));
    server.save().unwrap();
    server.restart(Keep::Nothing).unwrap();
    server.shutdown().unwrap();
    let server = start();
    assert_eq!(server.children("/").unwrap(), ["zookeeper"]);
}
