//! Bounds on the work for one request: the length of its reply, and the number of entries visited.

use minikeeper_protocol::{MultiReadOp, Ustring, event};

use super::*;
use crate::work::visits;

/// The number of bytes sent, and the outcome of the last request.
#[derive(Default)]
struct Sent {
    reply_bytes: usize,
    event_bytes: usize,
    error: Option<ErrorCode>,
    limits: Vec<Limit>,
}

impl Effects for Sent {
    fn connected(&mut self, _: ConnId, _: &ConnectResponse) {}

    fn reply(&mut self, _: ConnId, header: ReplyHeader, body: ReplyRef<'_>) {
        let mut out = Vec::new();
        self.error = header.error;
        // The server does the same with a reply that is too long when it is encoded.
        if body.encode(header, &mut out, REPLY_BYTES_MAX).is_err() {
            self.error = Some(ErrorCode::MarshallingError);
            self.limits.push(Limit::ReplyBytes);
        }
        self.reply_bytes += out.len();
    }

    fn event(&mut self, _: ConnId, event: &Event<'_>) {
        let mut out = Vec::new();
        event::encode(event.kind, event.path, event.zxid, &mut out);
        self.event_bytes += out.len();
    }

    fn close(&mut self, _: ConnId, _: CloseReason) {}

    fn limit_hit(&mut self, limit: Limit, max: usize) {
        assert!(max == REPLY_BYTES_MAX || max == OPERATIONS_MAX);
        self.limits.push(limit);
    }
}

const REPLY_BYTES_MAX: usize = 100_000;
const OPERATIONS_MAX: usize = 5_000;

fn settings() -> Settings {
    Settings {
        reply_bytes_max: REPLY_BYTES_MAX,
        multi_operations_max: OPERATIONS_MAX,
        ..Settings::default()
    }
}

fn send(engine: &mut Engine, conn: u32, request: Request) -> (Sent, usize) {
    let mut sent = Sent::default();
    let input = Input::Request {
        conn: ConnId(conn),
        xid: Xid(1),
        request,
    };
    let visits = visits(|| engine.apply(Now::default(), &input, &mut sent));
    (sent, visits)
}

fn create_of(path: &str, data: &[u8], mode: CreateMode) -> Request {
    Request::Create(Create::new(path, data, mode))
}

fn read(path: &str) -> MultiReadOp {
    let path = Some(path.into());
    let watch = false;
    MultiReadOp::GetData { path, watch }
}

fn list_of(path: &str) -> MultiReadOp {
    let path = Some(path.into());
    let watch = false;
    MultiReadOp::GetChildren { path, watch }
}

fn refused(limit: Limit, sent: &Sent) {
    assert_eq!(sent.error, Some(ErrorCode::MarshallingError));
    assert_eq!(sent.reply_bytes, 4 + ReplyHeader::BYTES);
    assert_eq!(sent.limits, [limit]);
}

/// A request of 39 KB that read a znode of 1 MB 2,200 times made the server copy 4.2 GB. Then the
/// length did not fit into the frame, and the server panicked.
#[test]
fn multi_read_beyond_reply_bytes_max_is_refused_before_anything_is_copied() {
    let mut engine = engine(1, settings());
    request(
        &mut engine,
        0,
        create_of("/big", &[7; 40_000], CreateMode::Persistent),
    );
    for count in 0..500 {
        let path = format!("/kids-{count:0100}");
        request(
            &mut engine,
            0,
            create_of(&path, b"", CreateMode::Persistent),
        );
    }
    let (sent, _) = send(&mut engine, 0, Request::MultiRead(vec![read("/big"); 2]));
    assert_eq!((sent.error, sent.limits), (None, vec![]));
    assert!(sent.reply_bytes > 80_000);
    for ops in [vec![read("/big"); 2_200], vec![list_of("/"); 2_200]] {
        let (sent, visits) = send(&mut engine, 0, Request::MultiRead(ops));
        refused(Limit::ReplyBytes, &sent);
        assert_eq!(visits, 0);
    }
    // Errors are results too.
    let (sent, _) = send(
        &mut engine,
        0,
        Request::MultiRead(vec![read("/none"); 5_000]),
    );
    assert_eq!(sent.error, None);
}

/// The limit applies to the whole message, to the byte.
#[test]
fn reply_of_exactly_reply_bytes_max_is_sent() {
    let mut engine = engine(1, settings());
    let (header, stat) = (ReplyHeader::BYTES, minikeeper_protocol::Stat::BYTES);
    let most = REPLY_BYTES_MAX - header - 4 - stat;
    for (length, error) in [(most, None), (most + 1, Some(ErrorCode::MarshallingError))] {
        let path = format!("/data{length}");
        request(
            &mut engine,
            0,
            create_of(&path, &vec![7; length], CreateMode::Persistent),
        );
        assert_eq!(send(&mut engine, 0, get(&path)).0.error, error);
        let most = length - 9 - 9;
        let path = format!("/read{most}");
        request(
            &mut engine,
            0,
            create_of(&path, &vec![7; most], CreateMode::Persistent),
        );
        let read = Request::MultiRead(vec![read(&path)]);
        assert_eq!(send(&mut engine, 0, read).0.error, error);
    }
    // Two names, a count and two lengths.
    for (length, error) in [
        (most - 8, None),
        (most - 7, Some(ErrorCode::MarshallingError)),
    ] {
        let parent = format!("/list{length}");
        request(
            &mut engine,
            0,
            create_of(&parent, b"", CreateMode::Persistent),
        );
        for name in ["a".to_owned(), "b".repeat(length - 1)] {
            let path = format!("{parent}/{name}");
            request(
                &mut engine,
                0,
                create_of(&path, b"", CreateMode::Persistent),
            );
        }
        let path = Some(parent.as_str().into());
        let watch = false;
        let list = Request::GetChildren2 { path, watch };
        assert_eq!(send(&mut engine, 0, list).0.error, error, "{length}");
    }
}

/// A read that is refused because of its long reply must not leave a watch behind.
#[test]
fn read_beyond_reply_bytes_max_leaves_no_watch() {
    let mut engine = engine(1, settings());
    request(
        &mut engine,
        0,
        create_of("/big", &[7; REPLY_BYTES_MAX], CreateMode::Ephemeral),
    );
    for count in 0..3 {
        let path = format!("/e{count}{}", "x".repeat(REPLY_BYTES_MAX / 2));
        request(&mut engine, 0, create_of(&path, b"", CreateMode::Ephemeral));
    }
    let ephemerals = Request::GetEphemerals { prefix: None };
    for asked in [get("/big"), list("/"), ephemerals] {
        let (sent, _) = send(&mut engine, 0, asked);
        refused(Limit::ReplyBytes, &sent);
    }
    assert_eq!(engine.counts().watches, 0);
    // Shorter reads are still served.
    assert_eq!(outcome(&mut engine, 0, delete("/big")), Ok(()));
    assert_eq!(outcome(&mut engine, 0, get("/")), Ok(()));
    engine.check().unwrap();
}

#[test]
fn multi_beyond_multi_operations_max_is_refused_whole() {
    let mut engine = engine(1, settings());
    let zxid = engine.zxid();
    let mut ops = vec![check_op("/"); OPERATIONS_MAX];
    ops[0] = create_op("/made", CreateMode::Persistent);
    let (sent, _) = send(&mut engine, 0, Request::Multi(ops.clone()));
    assert_eq!(sent.error, None);
    ops.push(delete_op("/made"));
    let (sent, _) = send(&mut engine, 0, Request::Multi(ops));
    refused(Limit::MultiOperations, &sent);
    assert_eq!(engine.children("/").unwrap(), ["zookeeper", "made"]);
    // It takes a zxid, like a multi that cannot be decoded.
    assert_eq!(engine.zxid(), Zxid(zxid.0 + 2));
    let reads = Request::MultiRead(vec![read("/none"); OPERATIONS_MAX + 1]);
    refused(Limit::MultiOperations, &send(&mut engine, 0, reads).0);
    engine.check().unwrap();
}

const CHILDREN: usize = 3_000;
const EPHEMERALS: usize = 1_000;
const WATCHERS: u32 = 50;

/// The bound: a request visits no more entries than it and its reply have bytes, plus one visit to
/// each znode, ephemeral and watch of the state. Extend this for a new operation, or for another
/// way to make one expensive.
#[test]
fn no_request_visits_more_entries_than_its_bound() {
    let mut engine = engine(WATCHERS, settings());
    request(
        &mut engine,
        0,
        create_of("/kids", b"", CreateMode::Persistent),
    );
    let many = |name: &str, count: usize, mode| {
        let ops = (0..count).map(|number| create_op(&format!("{name}{number}"), mode));
        Request::Multi(ops.collect())
    };
    for asked in [
        many("/kids/", CHILDREN, CreateMode::Persistent),
        many("/ephemeral-", EPHEMERALS, CreateMode::Ephemeral),
        create_of("/big", &[7; 50_000], CreateMode::Persistent),
    ] {
        assert_eq!(outcome(&mut engine, 0, asked), Ok(()));
    }
    for conn in 0..WATCHERS {
        for asked in [
            get("/kids"),
            list("/kids"),
            add_watch("/kids", 0),
            add_watch("/", 1),
        ] {
            send(&mut engine, conn, asked);
        }
    }
    let path = |path: &str| Some(path.into());
    let paths: Vec<Ustring> = vec!["/kids".into(); 5_000];
    let requests = [
        Request::MultiRead(vec![list_of("/kids"); 5_000]),
        Request::MultiRead(vec![read("/big"); 5_000]),
        Request::MultiRead(vec![read("/big"), list_of("/kids"), list_of("/kids")]),
        Request::Multi(vec![check_op("/kids"); 5_000]),
        Request::Multi(vec![delete_op("/none"); 5_000]),
        Request::SetWatches {
            relative_zxid: Zxid(1 << 40),
            data: paths.clone(),
            exist: Vec::new(),
            child: paths,
        },
        list("/kids"),
        list("/"),
        get("/big"),
        set("/kids", b"x"),
        delete("/kids"),
        delete("/kids/1"),
        create("/kids/more", CreateMode::Persistent),
        Request::GetAllChildrenNumber { path: path("/") },
        Request::GetEphemerals { prefix: path("/") },
        Request::GetEphemerals {
            prefix: path("/ephemeral-99"),
        },
        Request::GetAcl {
            path: path("/kids"),
        },
        Request::Sync {
            path: path("/kids"),
        },
        Request::RemoveWatches {
            path: path("/kids"),
            kind: 3,
        },
        Request::CheckWatches {
            path: path("/kids"),
            kind: 3,
        },
        Request::WhoAmI,
        Request::Ping,
        Request::CloseSession,
    ];
    for request in requests {
        let mut frame = Vec::new();
        request.encode(Xid(1), &mut frame);
        let op = request.op().name();
        let counts = engine.counts();
        let (sent, visits) = send(&mut engine, 0, request);
        let bytes = frame.len() + sent.reply_bytes + sent.event_bytes;
        let bound = bytes + counts.znodes + counts.ephemerals + counts.watches;
        assert!(
            visits <= bound,
            "{op}: {visits} entries visited, the bound is {bound}"
        );
        assert!(sent.reply_bytes <= 4 + REPLY_BYTES_MAX, "{op}");
        engine.check().unwrap();
    }
}

/// A client that left with six million watches held the lock for 17 s, until all were removed.
#[test]
fn connection_that_ends_leaves_its_watches_to_be_removed_in_pieces() {
    const WATCHES: usize = 5_000;
    const PIECE: usize = 1_000;
    let settings = Settings {
        watches_max: WATCHES + 2,
        ..settings()
    };
    let mut engine = engine(2, settings);
    let path = |number: usize| format!("/{number:04}");
    // Half of the watched paths exist, one of them with a watch in both tables.
    let creates = (0..WATCHES / 2).map(|number| create_op(&path(number), CreateMode::Persistent));
    assert_eq!(
        outcome(&mut engine, 1, Request::Multi(creates.collect())),
        Ok(())
    );
    for number in 0..WATCHES {
        let path = Some(path(number).as_str().into());
        send(&mut engine, 0, Request::Exists { path, watch: true });
    }
    send(&mut engine, 0, list("/0001"));
    send(&mut engine, 0, add_watch("/", 1));
    send(&mut engine, 1, get("/0001"));
    engine.check().unwrap();
    assert_eq!(engine.counts().watches, WATCHES + 2);
    let disconnect = Input::Disconnect { conn: ConnId(0) };
    let visits_of = |engine: &mut Engine, input: &Input| {
        visits(|| engine.apply(Now::default(), input, &mut Sent::default()))
    };
    assert!(visits_of(&mut engine, &disconnect) <= PIECE);
    engine.check().unwrap();
    // They are gone for everyone.
    assert_eq!(
        (engine.counts().watches, engine.watches_in_tables()),
        (1, 1)
    );
    assert!(!engine.is_watched("/4000") && engine.is_watched("/0001"));
    assert_eq!(engine.watched_paths(10).len(), 1);
    assert_eq!(engine.next_tick_ms(), Some(0));
    // A later connection of the same number gets none of their events.
    open(&mut engine, 0);
    assert_eq!(request(&mut engine, 1, set("/0000", b"x")).events, []);
    assert_eq!(request(&mut engine, 1, set("/0001", b"x")).events.len(), 1);
    assert_eq!(
        request(&mut engine, 1, create("/4000", CreateMode::Persistent)).events,
        []
    );
    assert_eq!(request(&mut engine, 1, delete("/0002")).events, []);
    // Watches that are not removed yet do not count against the limit.
    for number in 0..WATCHES / 2 {
        let (sent, visits) = send(&mut engine, 0, get(&path(number)));
        assert!(
            sent.limits.is_empty() && visits <= PIECE + 1,
            "{visits} visits"
        );
    }
    engine.check().unwrap();
    let mut ticks = 0;
    while engine.next_tick_ms() == Some(0) {
        assert!(visits_of(&mut engine, &Input::Tick) <= PIECE);
        ticks += 1;
    }
    assert!(ticks <= WATCHES / PIECE, "{ticks} ticks");
    // One of the znodes was deleted.
    assert_eq!(engine.counts().watches, WATCHES / 2 - 1);
    assert_eq!(request(&mut engine, 1, set("/0000", b"x")).events.len(), 1);
}

/// What is undone restores the watches of a session whose connection has ended since.
#[test]
fn watches_left_by_a_connection_are_restored_to_its_session() {
    let mut engine = engine(2, settings());
    let creates = (0..3_000).map(|number| create_op(&format!("/{number}"), CreateMode::Persistent));
    request(&mut engine, 0, Request::Multi(creates.collect()));
    for number in 0..3_000 {
        send(&mut engine, 0, get(&format!("/{number}")));
    }
    let session = engine.session_of(ConnId(0)).unwrap().0;
    let mark = engine.mark();
    // All 3,000 were copied in the turn in which the connection ended.
    let in_pieces = |engine: &mut Engine, input: Input| {
        let visits = visits(|| engine.apply(Now::default(), &input, &mut Sent::default()));
        assert!(visits <= 2_000, "{visits} visits");
    };
    in_pieces(&mut engine, Input::Disconnect { conn: ConnId(0) });
    let since = engine.mark();
    in_pieces(&mut engine, Input::Tick);
    let hello = ConnectRequest {
        session_id: session,
        password: Some(crate::state::sessions::password(session).to_vec().into()),
        ..ConnectRequest::new(10_000)
    };
    let input = Input::Connect {
        conn: ConnId(5),
        hello,
        is_read_only: false,
    };
    apply(&mut engine, &input);
    assert_eq!(engine.counts().watches, 0);
    // At the later mark there were none any more.
    assert!(engine.rewind(since, Now::default(), &mut Sent::default()));
    assert_eq!(engine.counts().watches, 0);
    // A third of them is still in the table.
    assert!(engine.rewind(mark, Now::default(), &mut Sent::default()));
    engine.check().unwrap();
    assert_eq!(engine.counts().watches, 3_000);
    in_pieces(&mut engine, Input::Tick);
    in_pieces(&mut engine, Input::Tick);
    assert_ne!(engine.next_tick_ms(), Some(0));
    assert_eq!(engine.counts().watches, 3_000);
    // What is kept is freed with the mark, before or after all watches are removed.
    for (conn, ticks) in [(6, 0), (7, 1), (8, 5)] {
        open(&mut engine, conn);
        for number in 0..2_500 {
            send(&mut engine, conn, get(&format!("/{number}")));
        }
        let mark = engine.mark();
        let conn = ConnId(conn);
        in_pieces(&mut engine, Input::Disconnect { conn });
        (0..ticks).for_each(|_| in_pieces(&mut engine, Input::Tick));
        engine.check().unwrap();
        assert!(engine.forget_mark(mark));
    }
    assert!(engine.forget_mark(mark));
    while engine.next_tick_ms() == Some(0) {
        in_pieces(&mut engine, Input::Tick);
    }
    engine.check().unwrap();
    assert_eq!(engine.state.undo.bytes(), 0);
    assert_eq!(engine.state.watches.stored(), engine.counts().watches);
}

/// To drop a snapshot took as long as its changes were many, all of it in one turn.
#[test]
fn changes_of_a_removed_mark_are_dropped_in_pieces() {
    let mut engine = engine(1, settings());
    request(&mut engine, 0, create("/x", CreateMode::Persistent));
    let full = engine.counts();
    let marks = [engine.mark(), engine.mark()];
    for number in 0..2_000 {
        let data: &'static [u8] = if number == 1_999 { b"1999" } else { b"some" };
        send(&mut engine, 0, set("/x", data));
    }
    let last = engine.mark();
    request(&mut engine, 0, set("/x", b"last"));
    let visits_of = |during: &mut dyn FnMut()| {
        let visits = visits(during);
        assert!(visits <= 1_000, "{visits} visits");
    };
    for mark in marks {
        visits_of(&mut || assert!(engine.forget_mark(mark)));
        engine.check().unwrap();
    }
    // They are gone at once, and what is left of them neither keeps the other nor is restored.
    assert!(!engine.has_mark(marks[0]) && engine.has_mark(last));
    assert_eq!(engine.next_tick_ms(), Some(0));
    assert_eq!(engine.changes_since(last).unwrap().len(), 1);
    assert!(engine.rewind(last, Now::default(), &mut Sent::default()));
    assert_eq!(engine.get("/x").unwrap().0, Some(&b"1999"[..]));
    assert!(engine.forget_mark(last));
    // A multi that fails meanwhile is undone, and no more.
    let ops = ["/y", "/x"].map(|path| create_op(path, CreateMode::Persistent));
    request(&mut engine, 0, Request::Multi(ops.to_vec()));
    assert!(engine.get("/y").is_none());
    let mut ticks = 0;
    while engine.next_tick_ms() == Some(0) {
        visits_of(&mut || engine.apply(Now::default(), &Input::Tick, &mut Sent::default()));
        engine.check().unwrap();
        ticks += 1;
    }
    assert!(ticks <= 3, "{ticks} ticks");
    assert!(engine.state.undo.is_clear());
    assert_eq!(engine.counts(), full);
}

/// A client that ended and watched absent paths left no room for changes until all of them were removed.
#[test]
fn change_at_the_limit_of_the_tree_first_removes_watches_of_ended_connections() {
    let settings = Settings {
        tree_bytes_max: engine(0, Settings::default()).counts().tree_bytes + 500_000,
        ..settings()
    };
    let mut engine = engine(2, settings);
    let path = |number: usize| format!("/absent-{number:0100}");
    for number in 0..2_850 {
        let (sent, _) = send(&mut engine, 0, add_watch(&path(number), 0));
        assert_eq!(sent.error, None);
    }
    let data = vec![7; 80_000];
    let large = create_of("/large", &data, CreateMode::Persistent);
    let refused = Err(ErrorCode::QuotaExceeded);
    assert_eq!(outcome(&mut engine, 1, large), refused);
    apply(&mut engine, &Input::Disconnect { conn: ConnId(0) });
    // The first 1,000 are removed with the connection.
    for path in ["/a", "/b", "/c"] {
        let create = create_of(path, &data, CreateMode::Persistent);
        assert_eq!(outcome(&mut engine, 1, create), Ok(()));
    }
    engine.check().unwrap();
}
