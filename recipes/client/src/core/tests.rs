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
        let mut out = Vec::new();
        let response = ConnectResponse {
            protocol_version: 0,
            timeout_ms: i32::try_from(timeout.as_millis()).unwrap(),
            session_id: SessionId(session),
            password: Some(Bytes::from_static(&[7; 16])),
            read_only: Some(read_only),
        };
        response.encode(&mut out);
        self.receive(out);
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
        play.core.know_identity("digest".into(), Bytes::from(name));
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
