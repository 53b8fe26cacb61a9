//! Tests of the machine against a server that the test plays: no runtime, no socket, a manual
//! clock.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::Duration,
};

use bytes::Bytes;
use minikeeper_protocol::{
    ConnectRequest, ConnectResponse, ErrorCode, EventKind, OpCode, Reader, Reply, ReplyHeader,
    Request, SessionId, Stat, Ustring, WatcherType, Xid, Zxid, event, frame,
};

use super::{
    backoff::Chance,
    cleanup::Target,
    machine::{Core, Settings, Submission},
    outcome::{Cause, Change, Effects, Epoch, LostReason, Outcome, Time, WatchEnd},
    requests::IfAbandoned,
    sasl::{SaslError, SaslMechanism, SaslStart, SaslStep},
    watches::{WatchKind, WatchToken},
};

const SESSION_TIMEOUT: Duration = Duration::from_secs(60);
const BUDGET: Duration = Duration::from_secs(15);

#[derive(Default)]
struct Log {
    completed: Vec<(u32, Outcome)>,
    ended: Vec<(WatchToken, WatchEnd)>,
    changes: Vec<Change>,
}

impl Effects for Log {
    fn completed(&mut self, caller: u32, outcome: Outcome) {
        self.completed.push((caller, outcome));
    }

    fn watch_ended(&mut self, watch: WatchToken, end: WatchEnd) {
        self.ended.push((watch, end));
    }

    fn watch_fired(&mut self, _: WatchToken, _: EventKind, _: &Ustring, _: Zxid) {}

    fn watch_interrupted(&mut self, _: WatchToken) {}

    fn event(&mut self, _: EventKind, _: &Ustring, _: Zxid) {}

    fn changed(&mut self, change: Change) {
        self.changes.push(change);
    }

    fn stopped(&mut self) {}
}

struct Play {
    core: Core,
    log: Log,
    now: Time,
}

fn settings(hosts: usize) -> Settings {
    Settings {
        session_timeout: SESSION_TIMEOUT,
        hosts: (0..hosts)
            .map(|number| format!("zk{number}:2181"))
            .collect(),
        connect_timeout: None,
        connection_timeout: BUDGET,
        close_wait: Duration::from_secs(1),
        read_only: false,
        frame_bytes_max: 1 << 20,
        pending_bytes_max: 64 << 20,
        clean_ups_max: 100,
        seed: 1,
    }
}

const PASSWORD: &[u8] = &[7; 16];

fn connect_response(session: i64, timeout: Duration, read_only: bool) -> Vec<u8> {
    let mut out = Vec::new();
    let response = ConnectResponse {
        protocol_version: 0,
        timeout_ms: i32::try_from(timeout.as_millis()).unwrap(),
        session_id: SessionId(session),
        password: Some(Bytes::from_static(PASSWORD)),
        read_only: Some(read_only),
    };
    response.encode(&mut out);
    out
}

impl Play {
    fn new(hosts: usize) -> Self {
        Self {
            core: Core::new(settings(hosts)),
            log: Log::default(),
            now: Duration::from_secs(1),
        }
    }

    /// Returns a machine with a session and a connection.
    fn connected(hosts: usize) -> Self {
        let mut play = Self::new(hosts);
        play.link();
        play.welcome(7);
        play
    }

    /// Advances time until the machine wants to connect, then reports a connection. Returns the
    /// first message.
    fn link(&mut self) -> ConnectRequest {
        self.core.handle_timeout(self.now, &mut self.log);
        while self.core.connecting().is_none() {
            self.now = self
                .core
                .next_deadline()
                .expect("there is a next attempt")
                .max(self.now);
            self.core.handle_timeout(self.now, &mut self.log);
        }
        self.core.handle_connected(self.now);
        let out = Bytes::from(self.core.take_output(Vec::new()));
        let body = frame::next(&out, 1 << 20).unwrap().unwrap();
        ConnectRequest::decode(&mut Reader::window(&out, body)).unwrap()
    }

    fn welcome(&mut self, session: i64) {
        self.welcome_with(session, SESSION_TIMEOUT, false);
    }

    fn welcome_with(&mut self, session: i64, timeout: Duration, read_only: bool) {
        self.receive(connect_response(session, timeout, read_only));
    }

    fn receive(&mut self, bytes: Vec<u8>) {
        let batch = Bytes::from(bytes);
        let done = self
            .core
            .handle_read(self.now, &batch, &mut self.log)
            .unwrap();
        assert_eq!(done, batch.len());
    }

    fn unlink(&mut self) {
        self.core.handle_disconnected(self.now, &mut self.log);
    }

    fn submit(&mut self, request: &Request, submission: Submission) {
        self.core
            .submit(self.now, request, submission, &mut self.log);
    }

    /// Returns the requests sent since the last call.
    fn sent(&mut self) -> Vec<(Xid, Request)> {
        let out = Bytes::from(self.core.take_output(Vec::new()));
        let mut requests = Vec::new();
        let mut done = 0;
        while let Some(body) = frame::next(&out[done..], 1 << 20).unwrap() {
            let window = done + body.start..done + body.end;
            done = window.end;
            let mut reader = Reader::window(&out, window);
            let (xid, op) = (reader.int().unwrap(), reader.int().unwrap());
            let op = OpCode::from_code(op).unwrap();
            requests.push((Xid(xid), Request::decode(op, &mut reader).unwrap()));
        }
        requests
    }

    fn reply(&mut self, xid: Xid, zxid: i64, result: Result<&Reply, ErrorCode>) {
        let mut out = Vec::new();
        let header = ReplyHeader {
            xid,
            zxid: Zxid(zxid),
            error: result.err(),
        };
        result
            .unwrap_or(&Reply::Empty)
            .encode(header, &mut out, usize::MAX)
            .unwrap();
        self.receive(out);
    }

    fn event(&mut self, kind: EventKind, path: &str, zxid: i64) {
        let mut out = Vec::new();
        event::encode(kind, path.as_bytes(), Zxid(zxid), &mut out);
        self.receive(out);
    }

    /// Registers a watch; the server accepts it.
    fn watch(&mut self, path: &str, token: u32, zxid: i64) {
        let request = Request::Exists {
            path: Some(path.into()),
            watch: true,
        };
        let submission = Submission {
            caller: Some(token),
            watch: Some((WatchKind::Data, WatchToken(token))),
            ..Submission::default()
        };
        self.submit(&request, submission);
        let (xid, _) = self.sent().pop().unwrap();
        self.reply(xid, zxid, Ok(&Reply::Stat(Stat::default())));
    }

    /// Returns the zxids from which the new connection requests missed events.
    fn relative_zxids(&mut self) -> Vec<i64> {
        let sent = self.sent();
        let relative = sent.iter().filter_map(|(_, request)| match request {
            Request::SetWatches { relative_zxid, .. } => Some(relative_zxid.0),
            _ => None,
        });
        relative.collect()
    }
}

#[test]
fn events_do_not_advance_the_last_seen_zxid() {
    // The zxid in an event's header counted as seen. After a connection that was cut between two
    // events of one transaction, the next one reported the zxid as seen, and the second watch never
    // fired.
    let mut play = Play::connected(1);
    play.watch("/a", 1, 10);
    play.watch("/b", 2, 10);
    play.event(EventKind::Deleted, "/a", 11);
    play.unlink();
    let hello = play.link();
    assert_eq!(hello.last_zxid_seen, Zxid(10));
    play.welcome(7);
    assert_eq!(play.relative_zxids(), [10]);
    play.event(EventKind::Deleted, "/b", 0);
    assert_eq!(play.log.ended.len(), 2);
}

#[test]
fn last_seen_zxid_does_not_advance_until_all_watches_are_registered_again() {
    // Watches are registered in several messages. The reply to the first message advanced the zxid
    // for the watches of the second too, although it says nothing about them.
    let mut play = Play::connected(1);
    let long = "x".repeat(100_000);
    for token in 1..=3 {
        play.watch(&format!("/{token}{long}"), token, 10);
    }
    play.unlink();
    play.link();
    play.welcome(7);
    let messages = play.relative_zxids();
    assert_eq!(messages, [10, 10, 10]);
    play.reply(Xid::SET_WATCHES, 20, Ok(&Reply::Empty));
    play.unlink();
    play.link();
    play.welcome(7);
    assert_eq!(play.relative_zxids(), [10, 10, 10]);
    for _ in 0..3 {
        play.reply(Xid::SET_WATCHES, 20, Ok(&Reply::Empty));
    }
    play.unlink();
    play.link();
    play.welcome(7);
    assert_eq!(play.relative_zxids(), [20, 20, 20]);
}

#[test]
fn refused_registration_of_watches_ends_the_connection() {
    // A throttled setWatches left the client without its watches, and no caller was notified.
    let mut play = Play::connected(1);
    play.watch("/a", 1, 10);
    play.unlink();
    play.link();
    play.welcome(7);
    play.sent();
    play.reply(Xid::SET_WATCHES, 20, Err(ErrorCode::ThrottledOp));
    assert!(!play.core.is_linked());
    play.link();
    play.welcome(7);
    assert_eq!(play.relative_zxids(), [10]);
}

#[test]
fn reply_that_the_session_has_expired_does_not_revive_a_closed_client() {
    let mut play = Play::connected(1);
    let sync = Request::Sync {
        path: Some("/".into()),
    };
    play.submit(&sync, Submission::default());
    play.core.close(play.now, &mut play.log);
    let sent = play.sent();
    assert_eq!(sent.len(), 2);
    play.reply(sent[0].0, 1, Err(ErrorCode::SessionExpired));
    assert!(play.core.is_stopped());
    assert_eq!(play.log.changes.last(), Some(&Change::Closed));
}

/// A server that keeps watches, and refuses some requests.
#[derive(Default)]
struct WatchServer {
    /// Tables and paths.
    watches: BTreeSet<(i32, Ustring)>,
    /// Requests without a reply.
    requests: VecDeque<(Xid, Request)>,
}

impl WatchServer {
    /// Answers the next request, with the error in `refusal` if there is one.
    fn answer(&mut self, play: &mut Play, refusal: Option<ErrorCode>, is_there: bool) {
        self.requests.extend(play.sent());
        let Some((xid, request)) = self.requests.pop_front() else {
            return;
        };
        if let (Some(code), false) = (refusal, xid.0 < 0) {
            return play.reply(xid, 1, Err(code));
        }
        let mut keep = |table: WatcherType, path: &Option<Ustring>| {
            self.watches.insert((table.code(), path.clone().unwrap()));
        };
        let reply = match &request {
            Request::Exists { path, .. } => {
                keep(WatcherType::Data, path);
                is_there.then_some(Reply::Stat(Stat::default()))
            }
            Request::GetData { path, .. } if is_there => {
                keep(WatcherType::Data, path);
                Some(Reply::Data(Some(Bytes::new()), Stat::default()))
            }
            Request::GetChildren { path, .. } if is_there => {
                keep(WatcherType::Children, path);
                Some(Reply::Children(Vec::new()))
            }
            Request::RemoveWatches { path, kind } => {
                let is_kept = self.watches.remove(&(*kind, path.clone().unwrap()));
                return match is_kept {
                    true => play.reply(xid, 1, Ok(&Reply::Empty)),
                    false => play.reply(xid, 1, Err(ErrorCode::NoWatcher)),
                };
            }
            Request::SetWatches {
                data, exist, child, ..
            } => {
                for path in data.iter().chain(exist) {
                    keep(WatcherType::Data, &Some(path.clone()));
                }
                for path in child {
                    keep(WatcherType::Children, &Some(path.clone()));
                }
                Some(Reply::Empty)
            }
            Request::Ping => Some(Reply::Empty),
            Request::GetData { .. } | Request::GetChildren { .. } => None,
            other => panic!("{other:?}"),
        };
        play.reply(xid, 1, reply.as_ref().ok_or(ErrorCode::NoNode));
    }

    fn fire(&mut self, play: &mut Play, path: &str, kind: EventKind) {
        let table = match kind {
            EventKind::ChildrenChanged => WatcherType::Children,
            _ => WatcherType::Data,
        };
        if self.watches.remove(&(table.code(), path.into())) {
            play.event(kind, path, 1);
        }
    }
}

/// Registers and drops watches at random while requests are refused, connections are cut and
/// watches fire; then answers everything, and compares the server's watches with the waiters.
fn play_watches(seed: u64) {
    const PATHS: [&str; 2] = ["/a", "/b"];
    const REFUSALS: [ErrorCode; 3] = [
        ErrorCode::ThrottledOp,
        ErrorCode::ConnectionLoss,
        ErrorCode::OperationTimeout,
    ];
    let mut chance = Chance::new(seed);
    let mut play = Play::connected(1);
    let mut server = WatchServer::default();
    // Watches by number: kind, path, and whether `exists` registers it.
    let mut live: BTreeMap<u32, (WatchKind, Ustring, bool)> = BTreeMap::new();
    for token in 0..60 {
        let path = PATHS[usize::from(chance.below(2) == 0)];
        match chance.below(12) {
            0..4 => {
                let (to_path, watch) = (Some(Ustring::from(path)), true);
                let (kind, request) = match chance.below(3) {
                    0 => (
                        WatchKind::Data,
                        Request::Exists {
                            path: to_path,
                            watch,
                        },
                    ),
                    1 => (
                        WatchKind::Data,
                        Request::GetData {
                            path: to_path,
                            watch,
                        },
                    ),
                    _ => (
                        WatchKind::Child,
                        Request::GetChildren {
                            path: to_path,
                            watch,
                        },
                    ),
                };
                let of_exists = matches!(request, Request::Exists { .. });
                live.insert(token, (kind, path.into(), of_exists));
                let submission = Submission {
                    caller: Some(token),
                    watch: Some((kind, WatchToken(token))),
                    ..Submission::default()
                };
                play.submit(&request, submission);
            }
            4..6 => {
                let count = live.len() as u64;
                let nth = usize::try_from(chance.below(count.max(1))).unwrap();
                if let Some(token) = live.keys().copied().nth(nth) {
                    let (kind, path, _) = live.remove(&token).unwrap();
                    let watch = WatchToken(token);
                    play.core.abandon(play.now, token);
                    play.core.abandon_watch(play.now, kind, &path, watch);
                }
            }
            6..10 => {
                let at = usize::try_from(chance.below(8)).unwrap();
                server.answer(&mut play, REFUSALS.get(at).copied(), chance.below(2) == 0);
            }
            10 => {
                let kinds = [EventKind::ChildrenChanged, EventKind::DataChanged];
                server.fire(&mut play, path, kinds[usize::from(chance.below(2) == 0)]);
            }
            _ if chance.below(4) == 0 => {
                play.unlink();
                server = WatchServer::default();
                play.link();
                play.welcome(7);
            }
            _ => {}
        }
        play.now += Duration::from_millis(chance.below(50));
        play.core.handle_timeout(play.now, &mut play.log);
    }
    // This is longer than any pause and shorter than the silence that ends a connection.
    for _ in 0..2 {
        play.now += Duration::from_secs(6);
        play.core.handle_timeout(play.now, &mut play.log);
        for _ in 0..100 {
            server.answer(&mut play, None, true);
        }
    }
    for (caller, outcome) in &play.log.completed {
        let Outcome::Answered { result, .. } = outcome else {
            live.remove(caller);
            continue;
        };
        let of_exists = live.get(caller).is_some_and(|it| it.2);
        match result {
            Ok(_) => {}
            // The watch waits for the creation.
            Err(ErrorCode::NoNode) if of_exists => {}
            Err(_) => {
                live.remove(caller);
            }
        }
    }
    for (WatchToken(token), _) in &play.log.ended {
        live.remove(token);
    }
    let wanted = live
        .values()
        .map(|(kind, path, _)| (kind.watcher_type().code(), path.clone()));
    assert_eq!(
        wanted.collect::<BTreeSet<_>>(),
        server.watches,
        "seed {seed}"
    );
}

#[test]
fn server_keeps_only_the_watches_that_have_waiters() {
    for seed in 0..2_000 {
        play_watches(seed);
    }
}

#[test]
fn refused_removal_of_a_watch_is_sent_again() {
    // The client forgot a removal that a throttling server refused: the watch stayed as long as the
    // connection.
    let mut play = Play::connected(1);
    play.watch("/a", 1, 10);
    let kind = WatchKind::Data;
    play.core
        .abandon_watch(play.now, kind, &"/a".into(), WatchToken(1));
    for _ in 0..3 {
        let sent = play.sent();
        assert!(
            matches!(sent[..], [(_, Request::RemoveWatches { .. })]),
            "{sent:?}"
        );
        play.reply(sent[0].0, 11, Err(ErrorCode::ThrottledOp));
        assert!(play.sent().is_empty(), "not before a pause");
        play.now = play.core.next_deadline().unwrap();
        play.core.handle_timeout(play.now, &mut play.log);
    }
}

/// Returns how many connections the client makes in a minute to a server that treats each with
/// `serve`.
fn connects(hosts: usize, mut serve: impl FnMut(&mut Play, u32)) -> u32 {
    let mut play = Play::new(hosts);
    let end = play.now + Duration::from_secs(60);
    let mut count = 0;
    while play.now < end && count < 100_000 {
        play.link();
        count += 1;
        serve(&mut play, count);
        if play.core.is_linked() {
            play.unlink();
        }
    }
    count
}

#[test]
fn short_lived_connections_are_made_at_a_bounded_rate() {
    // A successful handshake reset the backoff: the client made 3,100 connections a second to three
    // hosts.
    type Serve = fn(&mut Play, u32);
    let cases: [(&str, Serve); 6] = [
        ("cut before the handshake", |_, _| {}),
        ("cut after a successful handshake", |play, _| {
            play.welcome(7);
        }),
        ("session refused every other time", |play, count| {
            match count % 2 {
                1 => play.welcome(7),
                _ => play.welcome_with(0, Duration::ZERO, false),
            }
        }),
        ("another session each time", |play, count| {
            play.welcome(count.into());
        }),
        ("session expires with the first request", |play, _| {
            play.welcome(7);
            let sync = Request::Sync {
                path: Some("/".into()),
            };
            play.submit(&sync, Submission::default());
            if let Some((xid, _)) = play.sent().pop() {
                play.reply(xid, 1, Err(ErrorCode::SessionExpired));
            }
        }),
        ("session of one millisecond", |play, _| {
            play.welcome_with(7, Duration::from_millis(1), false);
            while play.core.is_linked() {
                play.now = play.core.next_deadline().unwrap().max(play.now);
                play.core.handle_timeout(play.now, &mut play.log);
            }
        }),
    ];
    for hosts in [1, 3] {
        for (what, serve) in cases {
            let count = connects(hosts, serve);
            // At most one round over the servers a second once the pauses have grown, and some more
            // before.
            let most = 60 * 2 * u32::try_from(hosts).unwrap() + 40;
            assert!(count <= most, "{what}, {hosts} hosts: {count} a minute");
            assert!(count > 20, "{what}, {hosts} hosts: {count} a minute");
        }
    }
}

#[test]
fn connection_that_lasted_is_replaced_at_once() {
    for hosts in [1, 3] {
        let mut play = Play::connected(hosts);
        play.now += Duration::from_secs(5);
        let lost_at = play.now;
        play.unlink();
        play.link();
        assert_eq!(play.now, lost_at);
    }
}

#[test]
fn session_that_lasted_is_replaced_at_once() {
    let mut play = Play::connected(1);
    play.now += Duration::from_secs(5);
    play.unlink();
    for _ in 0..6 {
        play.link();
        play.unlink();
    }
    play.link();
    let expired_at = play.now;
    play.welcome_with(0, Duration::ZERO, false);
    play.link();
    assert_eq!(play.now, expired_at);
}

#[test]
fn every_server_has_its_share_of_the_time_to_connect() {
    // With the defaults, a server that drops packets was given a third of the session timeout, 20
    // s, although a client must connect within 15 s.
    let mut play = Play::new(3);
    play.core.handle_timeout(play.now, &mut play.log);
    let begun_at = play.now;
    for _ in 0..2 {
        play.now = play.core.next_deadline().unwrap();
        play.core.handle_timeout(play.now, &mut play.log);
    }
    assert!(play.core.connecting().is_some());
    assert!(
        play.now - begun_at <= BUDGET * 2 / 3,
        "{:?}",
        play.now - begun_at
    );
}

#[test]
fn granted_session_timeout_limits_the_time_for_each_server() {
    // The requested timeout did, so the session was lost if a server had granted less.
    let mut play = Play::new(3);
    play.link();
    let granted = Duration::from_secs(6);
    play.welcome_with(7, granted, false);
    play.now += Duration::from_secs(1);
    play.unlink();
    let lost_at = play.now;
    play.core.handle_timeout(play.now, &mut play.log);
    play.now = play.core.next_deadline().unwrap();
    assert_eq!(play.now - lost_at, granted / 3);
}

#[test]
fn closing_is_reported_before_the_session_is_released() {
    // A guard reported its lock as held until the server had confirmed the end of the session.
    let mut play = Play::connected(1);
    play.core.close(play.now, &mut play.log);
    assert_eq!(play.log.changes.last(), Some(&Change::Closed));
    let changes = play.log.changes.len();
    let (xid, request) = play.sent().pop().unwrap();
    assert_eq!(request, Request::CloseSession);
    play.reply(xid, 1, Ok(&Reply::Empty));
    assert!(play.core.is_stopped());
    assert_eq!(play.log.changes.len(), changes, "reported once");
}

/// A server that held a request back said that it was there, and the client closed the connection.
#[test]
fn reply_to_a_ping_that_was_not_sent_is_ignored() {
    let mut play = Play::connected(1);
    let sync = Request::Sync {
        path: Some("/".into()),
    };
    play.submit(&sync, Submission::default());
    let (xid, _) = play.sent().pop().unwrap();
    let until = play.core.next_deadline();
    play.reply(Xid::PING, 1, Ok(&Reply::Empty));
    // It proves nothing: the session is presumed lost as early as without it.
    assert_eq!(play.core.next_deadline(), until);
    play.reply(xid, 1, Ok(&Reply::Path(Some("/".into()))));
    let is_lost =
        |change: &Change| matches!(change, Change::Suspended { .. } | Change::Lost { .. });
    assert!(
        !play.log.changes.iter().any(is_lost),
        "{:?}",
        play.log.changes
    );
}

#[test]
fn closed_client_reports_no_later_change() {
    let mut play = Play::connected(1);
    play.unlink();
    play.core.close(play.now, &mut play.log);
    play.link();
    play.welcome(7);
    play.unlink();
    assert_eq!(play.log.changes.last(), Some(&Change::Closed));
    let closed = play.log.changes.iter().filter(|it| **it == Change::Closed);
    assert_eq!(closed.count(), 1);
}

#[test]
fn read_only_server_does_not_prolong_a_session() {
    // Its replies counted as those of a server that keeps the session alive.
    let mut play = Play::connected(1);
    let safe_until = play.core.safe_until().unwrap();
    play.now += Duration::from_secs(30);
    play.unlink();
    play.link();
    play.welcome_with(7, SESSION_TIMEOUT, true);
    play.watch("/a", 1, 10);
    assert_eq!(play.core.safe_until(), Some(safe_until));
    // In the end the session is presumed lost, although there is a connection.
    while play.core.safe_until().is_some() {
        play.now = play.core.next_deadline().unwrap().max(play.now);
        play.core.handle_timeout(play.now, &mut play.log);
        for (xid, _) in play.sent() {
            play.reply(xid, 10, Ok(&Reply::Empty));
        }
    }
    assert_eq!(play.now, safe_until);
    let reason = LostReason::Presumed;
    assert!(play.log.changes.contains(&Change::Lost {
        epoch: Epoch(1),
        reason
    }));
}

#[test]
fn session_created_by_a_read_only_server_is_not_resumed() {
    let mut play = Play::new(1);
    play.link();
    play.welcome_with(7, SESSION_TIMEOUT, true);
    assert_eq!(play.core.safe_until(), None);
    play.unlink();
    let hello = play.link();
    assert_eq!(hello.session_id, SessionId::NONE);
    play.welcome(7);
    assert!(play.core.safe_until().is_some());
    assert_eq!(play.core.epoch(), Epoch(2));
}

#[test]
fn session_that_visits_a_read_only_server_is_safe_longer_only_after_it_is_back() {
    let mut play = Play::connected(1);
    let first = play.core.safe_until().unwrap();
    let connected = |resumed, read_only| Change::Connected {
        epoch: Epoch(1),
        session: SessionId(7),
        resumed,
        read_only,
    };
    let suspended = |until| Change::Suspended {
        epoch: Epoch(1),
        until,
    };
    let minute = |play: &mut Play, read_only| {
        play.now += Duration::from_secs(10);
        play.unlink();
        assert_eq!(play.link().session_id, SessionId(7));
        play.welcome_with(7, SESSION_TIMEOUT, read_only);
        // A request that was made for this session is sent on either server.
        let in_session = Submission {
            epoch: Some(Epoch(1)),
            ..Submission::default()
        };
        play.submit(&sync("/"), in_session);
        for (xid, _) in play.sent() {
            play.reply(xid, 10, Err(ErrorCode::NotReadOnly));
        }
        play.core.safe_until().unwrap()
    };
    assert_eq!(minute(&mut play, true), first);
    assert_eq!(minute(&mut play, true), first);
    let last = minute(&mut play, false);
    assert_eq!(last, first + Duration::from_secs(30));
    assert_eq!(
        play.log.changes,
        [
            connected(false, false),
            suspended(first),
            connected(true, true),
            suspended(first),
            connected(true, true),
            suspended(first),
            connected(true, false),
        ]
    );
}

/// The client stayed at a read-only server until its session was over, although another server would
/// have kept it alive.
#[test]
fn session_at_a_read_only_server_looks_for_another_one() {
    let mut play = Play::connected(3);
    play.unlink();
    let mut visited = BTreeSet::new();
    for _ in 0..3 {
        play.link();
        visited.insert(play.core.hosts.current());
        play.welcome_with(7, SESSION_TIMEOUT, true);
        let up_at = play.now;
        assert!(play.core.is_linked());
        while play.core.is_linked() {
            play.now = play.core.next_deadline().unwrap();
            play.core.handle_timeout(play.now, &mut play.log);
        }
        assert_eq!(play.now - up_at, Duration::from_secs(1));
    }
    assert_eq!(visited.len(), 3, "each is tried");
    play.link();
    play.welcome(7);
    assert!(play.core.safe_until().unwrap() > play.now + SESSION_TIMEOUT / 2);
    assert!(play.core.next_deadline().unwrap() > play.now + Duration::from_secs(1));

    // A session that a read-only server created cannot be saved, and one server is all there is.
    for (hosts, is_created_there) in [(3, true), (1, false)] {
        let mut play = Play::new(hosts);
        play.link();
        play.welcome_with(7, SESSION_TIMEOUT, is_created_there);
        if !is_created_there {
            play.unlink();
            play.link();
            play.welcome_with(7, SESSION_TIMEOUT, true);
        }
        assert!(play.core.next_deadline().unwrap() > play.now + Duration::from_secs(1));
    }
}

#[test]
fn session_of_a_read_only_server_ends_with_its_connection_also_during_sasl() {
    for is_complete in [false, true] {
        let mut play = Play::with_sasl();
        play.link();
        play.welcome_with(7, SESSION_TIMEOUT, true);
        if is_complete {
            play.authenticate();
        }
        let call = Submission {
            caller: Some(3),
            epoch: Some(Epoch(1)),
            ..Submission::default()
        };
        if !is_complete {
            play.submit(&sync("/"), call);
        }
        play.unlink();
        let lost = Change::Lost {
            epoch: Epoch(1),
            reason: LostReason::ReadOnly,
        };
        assert_eq!(play.log.changes.last(), Some(&lost));
        if !is_complete {
            let [(3, Outcome::NotSent(Cause::SessionLost))] = play.log.completed[..] else {
                panic!("{:?}", play.log.completed);
            };
        }
        assert_eq!(play.link().session_id, SessionId::NONE);
    }
}

#[test]
fn pending_requests_are_limited_by_their_size() {
    // Requests made without a connection were kept without a limit.
    let mut play = Play::new(1);
    play.core.settings.pending_bytes_max = 10_000;
    let set = Request::SetData {
        path: Some("/a".into()),
        data: Some(Bytes::from_static(&[0; 1000])),
        version: -1,
    };
    for is_connected in [false, true] {
        if is_connected {
            play.link();
            play.welcome(7);
            play.sent();
            play.unlink();
            play.link();
            play.welcome(7);
        }
        for caller in 0..20 {
            let submission = Submission {
                caller: Some(caller),
                payload_bytes: 1002,
                ..Submission::default()
            };
            play.submit(&set, submission);
        }
        let refused = std::mem::take(&mut play.log.completed);
        let is_refused = |outcome: &Outcome| {
            let bytes_max = 10_000;
            matches!(outcome, Outcome::NotSent(Cause::TooManyPending { bytes_max: it, .. })
                if *it == bytes_max)
        };
        let refused = refused.iter().filter(|(_, outcome)| is_refused(outcome));
        assert!((12..=14).contains(&refused.count()));
    }
}

#[test]
fn too_many_refused_watch_removals_end_the_connection() {
    // A server that refused every removal made the client remember a path for each watch that it
    // dropped.
    let mut play = Play::connected(1);
    for token in 0..=100 {
        let path = format!("/{token}");
        play.watch(&path, token, 10);
        let watch = WatchToken(token);
        play.core
            .abandon_watch(play.now, WatchKind::Data, &path.as_str().into(), watch);
        let (xid, _) = play.sent().pop().unwrap();
        play.reply(xid, 10, Err(ErrorCode::ThrottledOp));
        assert!(play.core.is_linked());
    }
    assert_eq!(play.core.next_deadline(), Some(Time::ZERO));
    play.core.handle_timeout(play.now, &mut play.log);
    assert!(!play.core.is_linked());
    assert_ne!(play.core.next_deadline(), Some(Time::ZERO), "no busy wait");
    // The session continues, and the server has no watch to remove.
    assert_eq!(play.link().session_id, SessionId(7));
    play.welcome(7);
    assert!(play.sent().is_empty());
    let removal_due = play.now + Duration::from_secs(10);
    play.core.handle_timeout(removal_due, &mut play.log);
    assert!(play.sent().is_empty(), "nothing to remove");
}

#[test]
fn too_many_clean_ups_end_the_session() {
    let mut play = Play::connected(1);
    play.unlink();
    for number in 0..=100 {
        let target = Target::Named(format!("/{number}").as_str().into());
        play.core.clean_up(play.now, Epoch(1), target);
    }
    play.core.handle_timeout(play.now, &mut play.log);
    let (epoch, reason) = (Epoch(1), LostReason::TooManyCleanUps);
    assert_eq!(
        play.log.changes.last(),
        Some(&Change::Lost { epoch, reason })
    );
    assert_eq!(play.core.clean_ups_pending(), 0);
    assert_eq!(play.link().session_id, SessionId::NONE);
}

/// Sends an empty token, then `response`, and is satisfied with `proof`.
struct TwoSteps;

impl SaslMechanism for TwoSteps {
    fn name(&self) -> &str {
        "TWO-STEPS"
    }

    fn start(&mut self, at: SaslStart<'_>) -> Result<Vec<u8>, SaslError> {
        assert_eq!(at.server, "zk0:2181");
        Ok(Vec::new())
    }

    fn respond(&mut self, token: &[u8]) -> Result<SaslStep, SaslError> {
        match token {
            b"challenge" => Ok(SaslStep::Reply(b"response".to_vec())),
            b"proof" => Ok(SaslStep::Done),
            b"" => Err(SaslError::NotOffered),
            b"wait" => Err(SaslError::NotReady("no ticket")),
            _ => Err(SaslError::NotProven),
        }
    }
}

impl Play {
    fn with_sasl() -> Self {
        let mut play = Self::new(1);
        play.core.know_sasl(Box::new(TwoSteps));
        play
    }

    /// Returns the xid of the only request that was sent, a SASL token.
    fn sasl_token(&mut self, expected: &[u8]) -> Xid {
        match &self.sent()[..] {
            [(xid, Request::Sasl { token: Some(token) })] => {
                assert_eq!(token, expected);
                *xid
            }
            other => panic!("{other:?}"),
        }
    }

    fn reply_token(&mut self, xid: Xid, token: &'static [u8]) {
        self.reply(xid, 0, Ok(&Reply::Token(Some(Bytes::from_static(token)))));
    }

    /// Completes an exchange; fails if anything else is sent before its end.
    fn authenticate(&mut self) {
        let xid = self.sasl_token(b"");
        self.reply_token(xid, b"challenge");
        let xid = self.sasl_token(b"response");
        self.reply_token(xid, b"proof");
    }
}

fn sync(path: &str) -> Request {
    Request::Sync {
        path: Some(path.into()),
    }
}

#[test]
fn nothing_is_sent_before_sasl_is_complete() {
    let mut play = Play::with_sasl();
    for name in ["ann", "bob"] {
        play.core
            .register_identity("digest".into(), Bytes::from(name));
    }
    play.submit(&sync("/kept"), Submission::default());
    let schemes = |sent: &[(Xid, Request)]| {
        let label = |(_, request): &(Xid, Request)| match request {
            Request::Auth {
                data: Some(data), ..
            } => String::from_utf8(data.to_vec()).unwrap(),
            other => other.op().name().to_owned(),
        };
        sent.iter().map(label).collect::<Vec<_>>()
    };
    // The first session, the same on another connection, the next session.
    for (round, session) in [(1, 7), (2, 7), (3, 8)] {
        let resumed = round == 2;
        play.link();
        play.welcome(session);
        play.submit(&sync("/meanwhile"), Submission::default());
        assert!(!matches!(
            play.log.changes.last(),
            Some(Change::Connected { .. })
        ));
        play.authenticate();
        let sent = play.sent();
        let expected = match round {
            1 => &["ann", "bob", "sync", "sync"][..],
            2 => &["ann", "bob", "setWatches", "sync"],
            _ => &["ann", "bob", "sync"],
        };
        assert_eq!(schemes(&sent), expected, "round {round}");
        assert_eq!(
            play.log.changes.last(),
            Some(&Change::Connected {
                epoch: Epoch(if round == 3 { 2 } else { 1 }),
                session: SessionId(session),
                resumed,
                read_only: false,
            })
        );
        if round == 1 {
            for (xid, request) in sent {
                let path = Reply::Path(Some("/".into()));
                let reply = if matches!(request, Request::Auth { .. }) {
                    &Reply::Empty
                } else {
                    &path
                };
                play.reply(xid, 0, Ok(reply));
            }
            play.watch("/watched", 1, 5);
        }
        play.unlink();
    }
}

#[test]
fn refused_sasl_ends_the_client_with_the_reason() {
    let refused = |code| (Err(code), SaslError::Refused(code));
    for (reply, error) in [
        refused(ErrorCode::AuthFailed),
        refused(ErrorCode::SessionClosedRequireSaslAuth),
        (Ok(Reply::Token(None)), SaslError::NotOffered),
        (
            Ok(Reply::Token(Some(Bytes::from_static(b"wrong")))),
            SaslError::NotProven,
        ),
    ] {
        let mut play = Play::with_sasl();
        play.link();
        play.welcome(7);
        play.submit(
            &sync("/"),
            Submission {
                caller: Some(3),
                ..Submission::default()
            },
        );
        let xid = play.sasl_token(b"");
        play.reply(xid, 0, reply.as_ref().map_err(|code| *code));
        let reason = LostReason::Sasl(error);
        let lost = Change::Lost {
            epoch: Epoch(1),
            reason,
        };
        assert_eq!(play.log.changes, [lost, Change::Closed]);
        assert!(play.core.is_stopped());
        assert_eq!(play.core.ended_for(), error.to_string());
        assert_eq!(play.core.auth_failure().unwrap().1, reason);
        assert!(matches!(
            play.log.completed[..],
            [(3, Outcome::NotSent(Cause::Closed))]
        ));
    }
}

#[test]
fn interrupted_sasl_begins_again_on_the_next_connection() {
    type Interrupt = fn(&mut Play, Xid);
    let interrupts: [Interrupt; 5] = [
        |play, xid| {
            play.reply_token(xid, b"wait");
            assert_eq!(play.core.ended_for(), "SASL: not ready: no ticket");
        },
        |play, _| play.unlink(),
        // A passing refusal does not concern the token.
        |play, xid| play.reply(xid, 0, Err(ErrorCode::ThrottledOp)),
        |play, xid| {
            // The response was not written when the connection ended.
            play.reply_token(xid, b"challenge");
            play.unlink();
        },
        |play, _| {
            let late = play.core.next_deadline().unwrap();
            play.now = late;
            play.core.handle_timeout(late, &mut play.log);
            assert_eq!(play.core.ended_for(), "no reply to SASL in time");
        },
    ];
    for interrupt in interrupts {
        let mut play = Play::with_sasl();
        play.link();
        play.welcome(7);
        let xid = play.sasl_token(b"");
        interrupt(&mut play, xid);
        assert_eq!(play.log.changes, [], "no caller has seen the session");
        assert_eq!(play.link().session_id, SessionId(7));
        play.welcome(7);
        play.authenticate();
        assert!(play.sent().is_empty());
        let (epoch, session) = (Epoch(1), SessionId(7));
        let connected = Change::Connected {
            epoch,
            session,
            resumed: false,
            read_only: false,
        };
        assert_eq!(play.log.changes, [connected]);
    }
}

#[test]
fn closing_during_sasl_closes_the_session_afterwards() {
    let mut play = Play::with_sasl();
    play.link();
    play.welcome(7);
    play.core.close(play.now, &mut play.log);
    play.authenticate();
    let (xid, request) = play.sent().pop().unwrap();
    assert_eq!(request.op(), OpCode::CloseSession);
    play.reply(xid, 0, Ok(&Reply::Empty));
    assert!(play.core.is_stopped());
}

/// A reply to an identity counted as contact, and sending one delayed the next ping. Servers do not
/// prolong the session for it: `docs/zookeeper-protocol.md` section 7.1.
#[test]
fn identities_and_sasl_do_not_prolong_the_session() {
    let mut play = Play::with_sasl();
    play.link();
    play.welcome(7);
    let safe_until = play.core.safe_until();
    let ping_at = play.now + SESSION_TIMEOUT / 3;
    play.now += Duration::from_secs(5);
    play.authenticate();
    play.core
        .add_identity(play.now, "digest".into(), Bytes::new(), 1, &mut play.log);
    let (xid, _) = play.sent().pop().unwrap();
    play.reply(xid, 0, Ok(&Reply::Empty));
    assert_eq!(play.core.safe_until(), safe_until);
    assert_eq!(play.core.next_deadline(), Some(ping_at));
}

fn strings(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

#[test]
fn change_of_the_servers_keeps_the_session_and_moves_the_connection_if_it_must() {
    let mut play = Play::connected(1);
    let change = |play: &mut Play, servers: &[&str]| {
        let servers = strings(servers);
        play.core.update_servers(play.now, &servers, &mut play.log);
    };
    play.submit(
        &sync("/"),
        Submission {
            caller: Some(3),
            ..Submission::default()
        },
    );
    let _ = play.sent();
    change(&mut play, &["zk0:2181"]);
    assert!(play.core.is_linked());
    change(&mut play, &["new:2181"]);
    assert!(!play.core.is_linked());
    assert!(matches!(
        play.log.completed[..],
        [(3, Outcome::Unknown(Cause::ConnectionLost))]
    ));
    assert_eq!(play.core.next_deadline(), Some(play.now), "at once");
    assert_eq!(play.link().session_id, SessionId(7));
    assert_eq!(&*play.core.hosts.current(), "new:2181");
    // Also during the handshake, and before the connection is made.
    change(&mut play, &["newer:2181"]);
    play.core.handle_timeout(play.now, &mut play.log);
    let attempt = play.core.connecting().unwrap();
    assert_eq!(&*attempt.host, "newer:2181");
    change(&mut play, &["newest:2181"]);
    assert!(!play.core.is_current(&attempt));
    assert_eq!(play.link().session_id, SessionId(7));
    assert_eq!(&*play.core.hosts.current(), "newest:2181");
    play.welcome(7);
    assert!(
        !play
            .log
            .changes
            .iter()
            .any(|it| matches!(it, Change::Lost { .. }))
    );
}

// Damaged replies.

/// A request of each kind of reply, and the reply.
fn exchanges() -> Vec<(Request, Reply)> {
    let stat = Stat {
        czxid: Zxid(9),
        mzxid: Zxid(9),
        data_length: 3,
        ..Stat::default()
    };
    let path = || Some(Ustring::from("/l/_c_1-lock-"));
    let created = Ustring::from("/l/_c_1-lock-0000000007");
    let create = minikeeper_protocol::Create::new(
        "/l/_c_1-lock-",
        b"",
        minikeeper_protocol::CreateMode::EphemeralSequential,
    );
    let names = || vec!["a".into(), "bc".into()];
    let acl = minikeeper_protocol::AclList::world_all();
    let data = Some(Bytes::from_static(b"abc"));
    let set = Request::SetData {
        path: path(),
        data: data.clone(),
        version: -1,
    };
    vec![
        (
            Request::Create(create),
            Reply::PathStat(created.clone(), stat),
        ),
        (
            Request::Delete {
                path: path(),
                version: -1,
            },
            Reply::Empty,
        ),
        (
            Request::Exists {
                path: path(),
                watch: false,
            },
            Reply::Stat(stat),
        ),
        (
            Request::GetData {
                path: path(),
                watch: false,
            },
            Reply::Data(data, stat),
        ),
        (set.clone(), Reply::Stat(stat)),
        (Request::GetAcl { path: path() }, Reply::Acl(acl, stat)),
        (
            Request::GetChildren {
                path: path(),
                watch: false,
            },
            Reply::Children(names()),
        ),
        (
            Request::GetChildren2 {
                path: path(),
                watch: false,
            },
            Reply::Children2(names(), stat),
        ),
        (sync("/l"), Reply::Path(Some("/l".into()))),
        (
            Request::Multi(vec![minikeeper_protocol::MultiOp::Check {
                path: path(),
                version: 0,
            }]),
            Reply::Multi(vec![minikeeper_protocol::MultiResult::Check]),
        ),
        (
            Request::GetEphemerals { prefix: path() },
            Reply::Ephemerals(vec![created]),
        ),
        (
            Request::GetAllChildrenNumber { path: path() },
            Reply::Count(3),
        ),
        (
            Request::AddWatch {
                path: path(),
                mode: 0,
            },
            Reply::WatchAdded,
        ),
        (
            Request::RemoveWatches {
                path: path(),
                kind: 1,
            },
            Reply::Empty,
        ),
        (
            Request::WhoAmI,
            Reply::ClientInfos(vec![minikeeper_protocol::ClientInfo {
                scheme: "ip".into(),
                user: "127.0.0.1".into(),
            }]),
        ),
    ]
}

fn frame_of(xid: Xid, result: Result<&Reply, ErrorCode>) -> Vec<u8> {
    let mut out = Vec::new();
    let header = ReplyHeader {
        xid,
        zxid: Zxid(9),
        error: result.err(),
    };
    let reply = result.unwrap_or(&Reply::Empty);
    reply.encode(header, &mut out, usize::MAX).unwrap();
    out
}

impl Play {
    /// Passes bytes as the driver does: what is left is kept for the next read, and an unreadable
    /// message ends the connection.
    fn receive_raw(&mut self, buffer: &mut Vec<u8>, bytes: &[u8]) {
        buffer.extend_from_slice(bytes);
        let batch = Bytes::from(buffer.clone());
        match self.core.handle_read(self.now, &batch, &mut self.log) {
            Ok(done) => drop(buffer.drain(..done)),
            Err(_) => self.unlink(),
        }
    }

    /// Lets time pass until `until`, and answers pings behind what is in `buffer`.
    fn wait_until(&mut self, until: Time, buffer: &mut Vec<u8>) {
        while let Some(next) = self.core.next_deadline().filter(|next| *next <= until) {
            self.now = next.max(self.now);
            self.core.handle_timeout(self.now, &mut self.log);
            if self.core.connecting().is_some() {
                return;
            }
            for (xid, request) in self.sent() {
                if request == Request::Ping {
                    self.receive_raw(buffer, &frame_of(xid, Ok(&Reply::Empty)));
                }
            }
        }
        self.now = until;
    }
}

/// Returns the damages of a byte: each bit, and some more; with `MINIKEEPER_SWEEP=full` every value.
fn swept_xors() -> Vec<u8> {
    let is_full = std::env::var("MINIKEEPER_SWEEP").is_ok_and(|sweep| sweep == "full");
    let is_swept = |xor: &u8| is_full || xor.is_power_of_two() || [0x0a, 0x15, 0xff].contains(xor);
    (1..=u8::MAX).filter(is_swept).collect()
}

/// How damage to a reply ended.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Ending {
    /// The connection ended, and the outcome is unknown.
    Unknown,
    /// A result that a server could have sent: the damage cannot be seen.
    Unseen,
    /// The call ended at its limit or with the silent connection.
    Waited,
}

/// Damages one byte of the reply to a call. Without a limit of its own, a call ends with the
/// connection at the latest.
fn damage(exchange: &(Request, Reply), at: usize, xor: u8, limit: Option<Duration>) -> Ending {
    const CALLER: u32 = 3;
    let mut play = Play::connected(1);
    play.core.handle_timeout(play.now, &mut play.log);
    play.sent();
    let begun_at = play.now;
    let submission = |caller| Submission {
        caller: Some(caller),
        deadline: limit.map(|limit| begun_at + limit),
        ..Submission::default()
    };
    play.submit(&exchange.0, submission(CALLER));
    let (xid, _) = play.sent().pop().unwrap();
    let mut bytes = frame_of(xid, Ok(&exchange.1));
    bytes[at] ^= xor;
    let mut buffer = Vec::new();
    play.receive_raw(&mut buffer, &bytes);
    let is_immediate = !play.log.completed.is_empty();
    if !is_immediate {
        let last = limit.unwrap_or(SESSION_TIMEOUT);
        play.wait_until(begun_at + last, &mut buffer);
    }
    let what = format!("{:?}, byte {at} ^ {xor:#x}", exchange.0.op());
    let [(CALLER, outcome)] = &play.log.completed[..] else {
        panic!("{what}: {:?}", play.log.completed);
    };
    match outcome {
        Outcome::Unknown(cause) if is_immediate => {
            assert!(!play.core.is_linked(), "{what}");
            // A damaged length passed for a long reply, so that a creation was not retried.
            let is_change = matches!(exchange.1, Reply::PathStat(..) | Reply::Empty);
            let is_too_large = matches!(cause, Cause::ReplyTooLarge { .. });
            assert!(!(is_change && is_too_large), "{what}");
            Ending::Unknown
        }
        Outcome::Unknown(_) => Ending::Waited,
        Outcome::Answered { .. } => Ending::Unseen,
        Outcome::NotSent(cause) => panic!("{what}: {cause}"),
    }
}

/// A reply that could not be decoded lost its call: its entry and its deadline were removed, and
/// the caller waited without an end.
#[test]
fn every_call_ends_whatever_byte_of_its_reply_is_damaged() {
    let xors = swept_xors();
    let mut all = 0;
    for exchange in exchanges() {
        let length = frame_of(Xid(1), Ok(&exchange.1)).len();
        let mut counts = BTreeMap::<Ending, u32>::new();
        for at in 0..length {
            for &xor in &xors {
                let limit = Some(Duration::from_secs(2));
                *counts.entry(damage(&exchange, at, xor, limit)).or_default() += 1;
                if [1, 0x80, 0xff].contains(&xor) {
                    damage(&exchange, at, xor, None);
                }
            }
        }
        all += counts.values().sum::<u32>();
        println!("{}, {length} bytes: {counts:?}", exchange.0.op().name());
        // The success of a change whose reply has a body never passes for its refusal.
        if length > 20 {
            for at in 16..20 {
                for &xor in &xors {
                    let limit = Some(Duration::from_secs(2));
                    assert_eq!(damage(&exchange, at, xor, limit), Ending::Unknown);
                }
            }
        }
    }
    println!("{all} damaged replies");
}

/// Damages one byte of the reply to a handshake, after which the connection is silent. The server knows
/// session 7.
fn damage_handshake(asked: Duration, resumes: bool, at: usize, xor: u8) {
    const LIMIT: Duration = Duration::from_secs(2);
    let what = format!("byte {at} ^ {xor:#x}, asked {asked:?}, resumes {resumes}");
    let completed = |play: &Play, wanted: u32| {
        let callers = play.log.completed.iter().map(|(caller, _)| *caller);
        callers.filter(|caller| *caller == wanted).count()
    };
    let mut play = Play::new(1);
    play.core.settings.session_timeout = asked;
    if resumes {
        play.link();
        play.welcome_with(7, asked, false);
        play.unlink();
    }
    play.link();
    let begun_at = play.now;
    for (caller, deadline) in [(1, Some(begun_at + LIMIT)), (2, None)] {
        let submission = Submission {
            caller: Some(caller),
            deadline,
            ..Submission::default()
        };
        play.submit(&sync("/"), submission);
    }
    let mut bytes = connect_response(7, asked, false);
    bytes[at] ^= xor;
    play.receive_raw(&mut Vec::new(), &bytes);
    let longest = begun_at + asked.max(Duration::from_secs(60));
    let mut steps = 0;
    while play.core.is_linked() {
        let safe_until = play.core.safe_until();
        assert!(safe_until.is_none_or(|until| until <= longest), "{what}");
        play.now = play.core.next_deadline().expect(&what).max(play.now);
        assert!(play.now <= longest, "{what}: the connection is kept");
        play.core.handle_timeout(play.now, &mut play.log);
        steps += 1;
        assert!(steps < 1_000, "{what}: a busy wait");
        let is_late = play.now >= begun_at + LIMIT;
        assert!(!is_late || completed(&play, 1) == 1, "{what}: no limit");
    }
    // Every later connection is sound.
    for _ in 0..3 {
        let hello = play.link();
        match hello.session_id {
            SessionId::NONE => play.welcome_with(8, asked, false),
            SessionId(7) if hello.password.as_deref() == Some(PASSWORD) => {
                play.welcome_with(7, asked, false);
            }
            _ => play.welcome_with(0, Duration::ZERO, false),
        }
        if play.core.is_linked() {
            break;
        }
    }
    for (xid, request) in play.sent() {
        match request {
            Request::Sync { path } => play.reply(xid, 1, Ok(&Reply::Path(path))),
            _ => play.reply(xid, 1, Ok(&Reply::Empty)),
        }
    }
    assert_eq!((completed(&play, 1), completed(&play, 2)), (1, 1), "{what}");
    let until = play.core.safe_until().expect(&what);
    assert!(until > play.now, "{what}");
}

/// A damaged timeout kept a dead connection, and the locks, for up to 24 days.
#[test]
fn handshake_ends_whatever_byte_of_its_reply_is_damaged() {
    for (seconds, resumes) in [(10, false), (10, true), (90, false), (90, true)] {
        let asked = Duration::from_secs(seconds);
        for at in 0..connect_response(7, asked, false).len() {
            for xor in swept_xors() {
                damage_handshake(asked, resumes, at, xor);
            }
        }
    }
}

/// The caller compared the paths when it polled the call, which ended the connection of that time: a
/// later one that was sound.
#[test]
fn reply_with_the_path_of_another_znode_ends_the_connection_that_brought_it() {
    let create = |path: &str| {
        let mode = minikeeper_protocol::CreateMode::EphemeralSequential;
        minikeeper_protocol::Create::new(path, b"", mode)
    };
    let multi = |path: &str| {
        let create = minikeeper_protocol::MultiOp::Create(create(path));
        let check = minikeeper_protocol::MultiOp::Check {
            path: Some("/l".into()),
            version: 0,
        };
        Request::Multi(vec![create, check])
    };
    let created = |path: &str| minikeeper_protocol::MultiResult::Create2 {
        path: path.into(),
        stat: Stat::default(),
    };
    let check = minikeeper_protocol::MultiResult::Check;
    let single = |path: &str| Reply::PathStat(path.into(), Stat::default());
    let cases = [
        (single("/l/a0000000007"), single("/l/b0000000007")),
        (single("/l/a0000000007"), single("/l/a7")),
        (
            Reply::Multi(vec![created("/l/a0000000007"), check.clone()]),
            Reply::Multi(vec![created("/l/b0000000007"), check.clone()]),
        ),
        (
            Reply::Multi(vec![created("/l/a0000000007"), check]),
            Reply::Multi(vec![created("/l/a0000000007")]),
        ),
    ];
    for (right, wrong) in cases {
        let mut play = Play::connected(1);
        let request = match right {
            Reply::Multi(_) => multi("/l/a"),
            _ => Request::Create(create("/l/a")),
        };
        for reply in [right, wrong] {
            let submission = Submission {
                caller: Some(3),
                ..Submission::default()
            };
            play.submit(&request, submission);
            let (xid, _) = play.sent().pop().unwrap();
            play.receive_raw(&mut Vec::new(), &frame_of(xid, Ok(&reply)));
        }
        assert!(!play.core.is_linked());
        assert!(
            matches!(
                play.log.completed[..],
                [
                    (3, Outcome::Answered { .. }),
                    (3, Outcome::Unknown(Cause::ReplyUnreadable))
                ]
            ),
            "{:?}",
            play.log.completed
        );
    }
}

/// A creation that its caller has dropped, and whose reply is damaged, must be looked for.
#[test]
fn dropped_creation_with_a_damaged_reply_is_cleaned_up() {
    let exchange = &exchanges()[0];
    let length = frame_of(Xid(1), Ok(&exchange.1)).len();
    let own = Ustring::from("/l/_c_1-lock-0000000007");
    for (at, xor) in (0..length).flat_map(|at| [1, 0x10, 0x80, 0xff].map(|xor| (at, xor))) {
        let mut play = Play::connected(1);
        play.core.handle_timeout(play.now, &mut play.log);
        play.sent();
        let submission = Submission {
            caller: Some(3),
            if_abandoned: Some(Box::new(IfAbandoned::DeleteCreated {
                parent: "/l".into(),
                prefix: "_c_1-lock-".into(),
            })),
            ..Submission::default()
        };
        play.submit(&exchange.0, submission);
        let (xid, _) = play.sent().pop().unwrap();
        play.core.abandon(play.now, 3);
        let mut bytes = frame_of(xid, Ok(&exchange.1));
        bytes[at] ^= xor;
        let mut buffer = Vec::new();
        play.receive_raw(&mut buffer, &bytes);
        let mut is_there = true;
        for _ in 0..20 {
            if !play.core.is_linked() {
                buffer.clear();
                play.link();
                play.welcome(7);
            }
            for (xid, request) in play.sent() {
                let result = match request {
                    Request::Ping => Ok(Reply::Empty),
                    Request::Sync { path } => Ok(Reply::Path(path)),
                    Request::GetChildren { .. } => {
                        Ok(Reply::Children(vec!["_c_1-lock-0000000007".into()]))
                    }
                    Request::Delete { path, .. } if path == Some(own.clone()) => {
                        is_there = false;
                        Ok(Reply::Empty)
                    }
                    Request::Delete { .. } => Err(ErrorCode::NoNode),
                    other => panic!("{other:?}"),
                };
                let frame = frame_of(xid, result.as_ref().map_err(|code| *code));
                play.receive_raw(&mut buffer, &frame);
            }
            let next = play.core.next_deadline().unwrap();
            play.now = next.max(play.now);
            play.core.handle_timeout(play.now, &mut play.log);
        }
        // The number of the connection's reply, its zxid and its stat do not tell the znode.
        assert!(!is_there, "byte {at} ^ {xor:#x}: the znode stays");
        assert_eq!(play.core.clean_ups_pending(), 0, "byte {at} ^ {xor:#x}");
    }
}

// Clean-ups.

/// Serves the clean-ups of one connection: lists of children are too long, lists of ephemeral
/// znodes are served if the server has them. Returns whether the connection has ended.
fn serve_clean_ups(play: &mut Play, has_ephemerals: bool, there: &mut BTreeSet<Ustring>) -> bool {
    for (xid, request) in play.sent() {
        let result = match request {
            Request::Ping => Ok(Reply::Empty),
            Request::Sync { path } => Ok(Reply::Path(path)),
            Request::GetChildren { .. } => {
                let mut head = frame_of(xid, Ok(&Reply::Empty));
                head[..4].copy_from_slice(&(2_u32 << 20).to_be_bytes());
                play.receive_raw(&mut Vec::new(), &head);
                return true;
            }
            Request::GetEphemerals { prefix } if has_ephemerals => {
                let prefix = prefix.unwrap();
                let mut found: Vec<_> = there.iter().cloned().collect();
                found.retain(|path| path.as_bytes().starts_with(prefix.as_bytes()));
                Ok(Reply::Ephemerals(found))
            }
            Request::GetEphemerals { .. } => {
                let frame = frame_of(xid, Err(ErrorCode::Unimplemented));
                play.receive_raw(&mut Vec::new(), &frame);
                play.unlink();
                return true;
            }
            Request::Delete { path, .. } if there.remove(&path.clone().unwrap()) => {
                Ok(Reply::Empty)
            }
            Request::Delete { .. } => Err(ErrorCode::NoNode),
            Request::CloseSession => Ok(Reply::Empty),
            other => panic!("{other:?}"),
        };
        let frame = frame_of(xid, result.as_ref().map_err(|code| *code));
        play.receive_raw(&mut Vec::new(), &frame);
    }
    false
}

/// The reply to the client's own list of a large directory ended every connection: the list was
/// sent again at once on each new one.
#[test]
fn list_that_is_too_long_for_a_clean_up_ends_one_connection() {
    let mut play = Play::connected(1);
    play.sent();
    let mut there = BTreeSet::new();
    for parent in ["/l", "/m", "/l"] {
        let prefix = format!("_c_{}-lock-", there.len());
        there.insert(Ustring::from(&*format!("{parent}/{prefix}0000000007")));
        let target = Target::Prefixed {
            parent: parent.into(),
            prefix: prefix.as_str().into(),
        };
        play.core.clean_up(play.now, Epoch(1), target);
    }
    // A persistent znode without a number is found by its whole name.
    there.insert("/l/whole".into());
    let target = Target::Prefixed {
        parent: "/l".into(),
        prefix: "whole".into(),
    };
    play.core.clean_up(play.now, Epoch(1), target);
    let ended = serve_until_clean(&mut play, true, &mut there);
    assert_eq!(ended, 1);
    assert!(there.is_empty(), "{there:?}");
}

fn serve_until_clean(
    play: &mut Play,
    has_ephemerals: bool,
    there: &mut BTreeSet<Ustring>,
) -> usize {
    let mut ended = 0;
    let until = play.now + Duration::from_secs(100);
    while play.now < until && play.core.clean_ups_pending() > 0 {
        if !play.core.is_linked() {
            play.link();
            play.welcome(7);
        }
        ended += usize::from(serve_clean_ups(play, has_ephemerals, there));
        play.now = play.core.next_deadline().unwrap().max(play.now);
        play.core.handle_timeout(play.now, &mut play.log);
    }
    ended
}

#[test]
fn server_without_lists_of_ephemerals_keeps_its_connections() {
    let mut play = Play::connected(1);
    play.sent();
    let target = Target::Prefixed {
        parent: "/l".into(),
        prefix: "x".into(),
    };
    play.core.clean_up(play.now, Epoch(1), target);
    assert_eq!(serve_until_clean(&mut play, false, &mut BTreeSet::new()), 2);
    assert_eq!(play.core.clean_ups_pending(), 1, "until the session ends");
    // The next session begins anew.
    play.unlink();
    play.link();
    play.welcome(8);
    play.now += Duration::from_secs(6);
    play.core.handle_timeout(play.now, &mut play.log);
    assert_eq!(play.core.clean_ups_pending(), 0);
}

/// closeSession was not sent while a clean-up was pending: the next contender waited for the
/// session timeout.
#[test]
fn session_is_closed_by_the_close_limit_whatever_is_pending() {
    for wait in [Duration::ZERO, Duration::from_secs(1), Duration::MAX] {
        for refusal in [
            Some(ErrorCode::NotEmpty),
            Some(ErrorCode::ThrottledOp),
            None,
        ] {
            let mut play = Play::connected(1);
            play.core.settings.close_wait = wait;
            play.sent();
            play.core
                .clean_up(play.now, Epoch(1), Target::Named("/a".into()));
            let begun_at = play.now;
            play.core.close(play.now, &mut play.log);
            let limit = begun_at
                .saturating_add(wait)
                .min(begun_at + SESSION_TIMEOUT);
            let mut is_closed = false;
            while !is_closed {
                for (xid, request) in play.sent() {
                    match (request, refusal) {
                        (Request::CloseSession, _) => {
                            is_closed = true;
                            break;
                        }
                        (Request::Ping, Some(_)) => play.reply(xid, 1, Ok(&Reply::Empty)),
                        (_, Some(code)) if !play.core.is_stopped() => {
                            play.reply(xid, 1, Err(code));
                        }
                        _ => {}
                    }
                }
                let Some(next) = play.core.next_deadline().filter(|next| *next <= limit) else {
                    break;
                };
                play.now = next.max(play.now);
                play.core.handle_timeout(play.now, &mut play.log);
            }
            let is_endless = wait == Duration::MAX && refusal != Some(ErrorCode::NotEmpty);
            assert!(is_closed || is_endless, "{wait:?}, {refusal:?}");
        }
    }
}

#[test]
fn deletion_of_a_znode_with_children_is_given_up() {
    // It was tried every five seconds, as long as the session lived.
    let mut play = Play::connected(1);
    play.sent();
    play.core
        .clean_up(play.now, Epoch(1), Target::Named("/a".into()));
    let mut count = 0;
    while play.core.clean_ups_pending() > 0 {
        for (xid, request) in play.sent() {
            match request {
                Request::Delete { .. } => {
                    count += 1;
                    play.reply(xid, 1, Err(ErrorCode::NotEmpty));
                }
                _ => play.reply(xid, 1, Ok(&Reply::Empty)),
            }
        }
        play.now = play.core.next_deadline().unwrap();
        play.core.handle_timeout(play.now, &mut play.log);
        assert!(count < 20);
    }
    assert_eq!(play.core.clean_ups_forbidden(), 1);
}

#[test]
fn cost_of_a_clean_up_does_not_depend_on_how_many_are_pending() {
    // Each request and each look at the next deadline went through all of them: 16,000 guards that
    // were dropped together took four seconds.
    const COUNT: u32 = 60_000;
    let mut play = Play::connected(1);
    play.core.settings.clean_ups_max = COUNT as usize;
    play.sent();
    for number in 0..COUNT {
        let target = Target::Named(format!("/{number}").as_str().into());
        play.core.clean_up(play.now, Epoch(1), target);
        assert!(play.core.next_deadline().is_some());
    }
    for (number, (xid, _)) in play.sent().into_iter().enumerate() {
        let code = [None, Some(ErrorCode::ThrottledOp)][number % 2];
        play.reply(xid, 1, code.map_or(Ok(&Reply::Empty), Err));
        assert!(play.core.next_deadline().is_some());
    }
    assert_eq!(play.core.clean_ups_pending(), COUNT as usize / 2);
    while play.core.clean_ups_pending() > 0 {
        play.now = play.core.next_deadline().unwrap();
        play.core.handle_timeout(play.now, &mut play.log);
        for (xid, _) in play.sent() {
            play.reply(xid, 1, Ok(&Reply::Empty));
        }
    }
}

// Liveness.

#[test]
fn bytes_that_trickle_in_do_not_keep_a_dead_connection() {
    // Every byte counted as a sign of life: the state was still connected when the session was over.
    let mut play = Play::connected(1);
    let begun_at = play.now;
    let mut buffer = Vec::new();
    play.receive_raw(&mut buffer, &(1_000_000_u32).to_be_bytes());
    while play.core.is_linked() {
        play.now += Duration::from_millis(500);
        play.receive_raw(&mut buffer, b"x");
        play.core.handle_timeout(play.now, &mut play.log);
    }
    // There is time to resume the session.
    assert_eq!(play.now, begun_at + SESSION_TIMEOUT * 2 / 3);
    assert!(play.core.safe_until().unwrap() > play.now);
}

#[test]
fn events_without_replies_do_not_keep_a_session() {
    // Events showed that the connection lived; that the server hears this client, they do not.
    let mut play = Play::connected(1);
    let add = Request::AddWatch {
        path: Some("/a".into()),
        mode: 0,
    };
    let submission = Submission {
        watch: Some((WatchKind::Persistent, WatchToken(1))),
        ..Submission::default()
    };
    play.submit(&add, submission);
    let (xid, _) = play.sent().pop().unwrap();
    play.reply(xid, 1, Ok(&Reply::WatchAdded));
    let safe_until = play.core.safe_until().unwrap();
    while play.core.is_linked() {
        assert!(play.now < safe_until, "it is connected, and not safe");
        play.now += Duration::from_millis(500);
        play.event(EventKind::Created, "/a", 1);
        play.core.handle_timeout(play.now, &mut play.log);
    }
    let (epoch, reason) = (Epoch(1), LostReason::Presumed);
    assert!(play.log.changes.contains(&Change::Lost { epoch, reason }));
}

#[test]
fn shorter_timeout_that_a_lost_reply_may_have_granted_counts_from_the_end_of_the_connection() {
    // A server that grants the timeout which the client requests, or one that it granted before,
    // resumed the session, and its reply was lost: the client kept the longer timeout of the server
    // before, and held its locks longer than the server.
    let at = Duration::from_secs;
    let until = |play: &Play| play.core.safe_until().unwrap();
    let suspend = |play: &mut Play| {
        play.unlink();
        let suspended_at = play.now;
        let Some(Change::Suspended { until: told, .. }) = play.log.changes.last() else {
            panic!("{:?}", play.log.changes);
        };
        assert_eq!(*told, until(play));
        suspended_at
    };
    // The first server grants more than the client has requested.
    let mut play = Play::new(1);
    play.core.settings.session_timeout = at(10);
    play.link();
    play.welcome_with(7, at(40), false);
    assert!(until(&play) > play.now + at(38));
    play.now += at(1);
    let suspended_at = suspend(&mut play);
    play.link();
    // The reply is lost.
    play.unlink();
    assert!(until(&play) <= suspended_at + at(10));
    // A server has granted less than the client has requested, before another one granted all.
    let mut play = Play::new(1);
    play.link();
    play.welcome_with(7, at(60), false);
    for timeout in [10, 60] {
        suspend(&mut play);
        play.link();
        play.welcome_with(7, at(timeout), false);
    }
    play.now += at(1);
    let suspended_at = suspend(&mut play);
    assert!(until(&play) <= suspended_at + at(10));
}

/// A server that was paused carried out an attempt that the client had given up, or a ping, after
/// another server had resumed the session: its shorter timeout counted for the servers, and not for the
/// client.
#[test]
fn paused_server_with_a_shorter_timeout_makes_no_second_holder() {
    let at = Duration::from_secs;
    for (asked, first, second, is_lost) in
        [(10, 40, 40, true), (60, 10, 60, true), (60, 10, 60, false)]
    {
        let mut play = Play::new(2);
        play.core.settings.session_timeout = at(asked);
        // Both servers have granted their timeouts before.
        for timeout in [second, first] {
            play.link();
            play.welcome_with(7, at(timeout), false);
            play.unlink();
        }
        // The first is paused, perhaps with an attempt.
        if is_lost {
            play.link();
            play.unlink();
        }
        play.link();
        play.welcome_with(7, at(second), false);
        for _ in 0..10 {
            // The connection lasts.
            let sent = play.sent();
            for (xid, request) in sent {
                assert_eq!(request, Request::Ping);
                play.reply(xid, 1, Ok(&Reply::Empty));
            }
            play.now = play.core.next_deadline().unwrap();
            play.core.handle_timeout(play.now, &mut play.log);
            assert!(play.core.is_linked());
        }
        // Now the first carries it out, and the second hears no more. The servers end the session when
        // the timeout of the first has passed.
        let ended_at = play.now + at(asked.min(first));
        while let Some(until) = play.core.safe_until() {
            assert!(
                until <= ended_at,
                "asked {asked}, granted {first}, {second}"
            );
            play.sent();
            play.now = play.core.next_deadline().unwrap().max(play.now);
            if play.core.connecting().is_some() {
                play.link();
            }
            play.core.handle_timeout(play.now, &mut play.log);
        }
        assert!(play.now <= ended_at);
    }
}

#[test]
fn same_identity_is_sent_once_on_a_new_connection() {
    let mut play = Play::connected(1);
    for caller in 0..3_000 {
        let (scheme, data) = ("digest".into(), Bytes::from_static(b"ann:1"));
        play.core
            .add_identity(play.now, scheme, data, caller, &mut play.log);
        for (xid, _) in play.sent() {
            play.reply(xid, 1, Ok(&Reply::Empty));
        }
    }
    play.unlink();
    play.link();
    play.welcome(7);
    assert_eq!(play.sent().len(), 1);
}

#[test]
fn longest_durations_are_limits_that_do_not_pass() {
    // The sums overflowed, and the client's task panicked.
    let mut play = Play::new(3);
    play.core.settings.session_timeout = Duration::MAX;
    play.core.settings.connection_timeout = Duration::MAX;
    play.core.settings.connect_timeout = Some(Duration::MAX);
    play.core.settings.close_wait = Duration::MAX;
    play.link();
    play.welcome(7);
    let endless = Submission {
        caller: Some(3),
        deadline: Some(Duration::MAX),
        ..Submission::default()
    };
    play.submit(&sync("/"), endless);
    play.core.close(play.now, &mut play.log);
    assert!(play.core.next_deadline().is_some());
}

#[test]
fn event_of_a_znode_without_a_watch_ends_one_connection() {
    // The path of an event was damaged: the watch never fired, because the server had removed it.
    let mut play = Play::connected(1);
    play.watch("/a", 1, 10);
    let event = |path: &str| {
        let mut out = Vec::new();
        event::encode(EventKind::Deleted, path.as_bytes(), Zxid(11), &mut out);
        out
    };
    play.receive_raw(&mut Vec::new(), &event("/b"));
    assert!(!play.core.is_linked());
    play.link();
    play.welcome(7);
    assert_eq!(play.relative_zxids(), [10]);
    // A server that sends such events keeps the next connection.
    play.receive_raw(&mut Vec::new(), &event("/b"));
    assert!(play.core.is_linked());
    play.receive_raw(&mut Vec::new(), &event("/a"));
    assert_eq!(play.log.ended.len(), 1);
}

#[test]
fn event_without_a_zxid_ends_no_connection() {
    // setWatches sends two for a deleted path with both kinds of watches, and a server before 3.9, which may
    // refuse to remove a watch, sends no others.
    let mut play = Play::connected(1);
    let mut out = Vec::new();
    event::encode(EventKind::Deleted, b"/gone", Zxid(-1), &mut out);
    play.receive_raw(&mut Vec::new(), &out);
    assert!(play.core.is_linked());
}

#[test]
fn session_with_a_backlog_of_requests_lives_while_replies_come() {
    // Replies to requests of one moment came for longer than the session timeout, and the session was
    // presumed lost although the server had heard from the client.
    let mut play = Play::connected(1);
    let exists = Request::Exists {
        path: Some("/a".into()),
        watch: false,
    };
    for _ in 0..200 {
        play.submit(&exists, Submission::default());
    }
    let sent = play.sent();
    let until = play.core.safe_until().unwrap() + SESSION_TIMEOUT;
    for (xid, _) in sent {
        play.now += SESSION_TIMEOUT / 50;
        play.core.handle_timeout(play.now, &mut play.log);
        assert!(play.core.is_linked());
        play.reply(xid, 1, Err(ErrorCode::NoNode));
    }
    assert!(play.now > until);
}
