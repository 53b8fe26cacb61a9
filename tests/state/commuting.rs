//! Pairs of requests that are said to commute are served in both orders: replies, events and state are
//! equal.

use bytes::Bytes;
use minikeeper_engine::{CloseReason, ConnId, Effects, Engine, Event, Input, Limit, Now, Settings};
use minikeeper_protocol::{
    AddWatchMode, ConnectRequest, ConnectResponse, Create, CreateMode, MultiResult, OpCode, Reader,
    Reply, ReplyHeader, ReplyRef, Request, Stat, Xid, Zxid,
};
use minikeeper_test_kit::{
    random::Random,
    requests::{KINDS, Requests},
};

use crate::{effort, seed};

/// The connections, each with a session. The two that send the pair come first.
const CONNS: u32 = 4;

/// What the connections are sent, each in its order, without zxids and the order of listings.
#[derive(Debug, Default, PartialEq, Eq)]
struct Sent([Vec<String>; CONNS as usize]);

/// The effects of a request.
struct Sending<'a> {
    sent: &'a mut Sent,
    op: OpCode,
}

impl Sending<'_> {
    fn to(&mut self, conn: ConnId, text: String) {
        self.sent.0[conn.0 as usize].push(text);
    }
}

impl Effects for Sending<'_> {
    fn connected(&mut self, _: ConnId, _: &ConnectResponse) {}

    fn reply(&mut self, conn: ConnId, header: ReplyHeader, body: ReplyRef<'_>) {
        let mut frame = Vec::new();
        body.encode(header, &mut frame, ReplyRef::BYTES_MAX)
            .expect("a reply fits a frame");
        // Behind the length and the header.
        let body = Bytes::from(frame).slice(4 + 16..);
        let body = match header.error {
            None => Reply::decode(self.op, &mut Reader::new(&body)).map(comparable),
            Some(_) => Ok(Reply::Empty),
        };
        self.to(conn, format!("{:?} {body:?}", header.error));
    }

    fn event(&mut self, conn: ConnId, event: &Event<'_>) {
        self.to(
            conn,
            format!("{:?} {}", event.kind, event.path.escape_ascii()),
        );
    }

    fn close(&mut self, conn: ConnId, reason: CloseReason) {
        self.to(conn, format!("{reason:?}"));
    }

    fn limit_hit(&mut self, _: Limit, _: usize) {}
}

fn comparable(mut reply: Reply) -> Reply {
    match &mut reply {
        Reply::PathStat(_, stat)
        | Reply::Stat(stat)
        | Reply::Data(_, stat)
        | Reply::Acl(_, stat) => {
            without_zxids(stat);
        }
        Reply::Children2(names, stat) => {
            without_zxids(stat);
            names.sort_unstable_by(|one, other| one.as_bytes().cmp(other.as_bytes()));
        }
        Reply::Children(names) | Reply::Ephemerals(names) => {
            names.sort_unstable_by(|one, other| one.as_bytes().cmp(other.as_bytes()));
        }
        Reply::Multi(results) => results.iter_mut().for_each(|result| match result {
            MultiResult::Create2 { stat, .. }
            | MultiResult::SetData { stat }
            | MultiResult::GetData { stat, .. } => without_zxids(stat),
            MultiResult::GetChildren { names } => {
                names.sort_unstable_by(|one, other| one.as_bytes().cmp(other.as_bytes()));
            }
            _ => {}
        }),
        _ => {}
    }
    reply
}

const fn without_zxids(stat: &mut Stat) {
    stat.czxid = Zxid::NONE;
    stat.mzxid = Zxid::NONE;
    stat.pzxid = Zxid::NONE;
}

/// Returns the state as text, without the zxids of znodes.
fn dump(engine: &Engine) -> String {
    let mut out = String::new();
    for line in engine.dump().lines() {
        let mut words = line.split(' ').peekable();
        while let Some(word) = words.next() {
            if matches!(word, "czxid" | "mzxid" | "pzxid") {
                words.next();
            } else {
                out += word;
                out.push(' ');
            }
        }
        out.push('\n');
    }
    out
}

fn request(conn: u32, request: Request) -> Input {
    Input::Request {
        conn: ConnId(conn),
        xid: Xid(1),
        request,
    }
}

fn serve(engine: &mut Engine, input: &Input, sent: &mut Sent) {
    let op = match input {
        Input::Request { request, .. } => request.op(),
        _ => OpCode::Ping,
    };
    engine.apply(Now::default(), input, &mut Sending { sent, op });
}

fn engine(history: &[Input]) -> (Engine, Sent) {
    let mut engine = Engine::new(Settings::default());
    let mut sent = Sent::default();
    for conn in 0..CONNS {
        let hello = Input::Connect {
            conn: ConnId(conn),
            hello: ConnectRequest::new(10_000),
            is_read_only: false,
        };
        serve(&mut engine, &hello, &mut sent);
    }
    for input in history {
        serve(&mut engine, input, &mut sent);
    }
    (engine, sent)
}

/// Returns what everybody was sent, and the state.
fn served(history: &[Input], pair: [&Input; 2]) -> (Sent, String) {
    let (mut engine, mut sent) = engine(history);
    for input in pair {
        serve(&mut engine, input, &mut sent);
    }
    (sent, dump(&engine))
}

/// A tree on which many requests succeed, with ephemerals of two sessions.
fn furnished() -> Vec<Input> {
    let create = |conn, path, mode| request(conn, Request::Create(Create::new(path, b"", mode)));
    vec![
        create(3, "/a", CreateMode::Persistent),
        create(3, "/b", CreateMode::Persistent),
        create(3, "/a/b", CreateMode::Persistent),
        create(1, "/a/c", CreateMode::Ephemeral),
        create(2, "/b/c", CreateMode::Ephemeral),
    ]
}

/// A request that watches.
fn watch(number: u8) -> Request {
    let path = |path: &str| Some(path.into());
    let watch = true;
    match number % 8 {
        0 => Request::GetChildren {
            path: path("/a"),
            watch,
        },
        1 => Request::GetChildren2 {
            path: path("/b"),
            watch,
        },
        2 => Request::GetData {
            path: path("/a"),
            watch,
        },
        3 => Request::Exists {
            path: path("/a/b"),
            watch,
        },
        4 => Request::Exists {
            path: path("/a/s0000000002"),
            watch,
        },
        5 => Request::Exists {
            path: path("/b/c"),
            watch,
        },
        6 => Request::AddWatch {
            path: path("/a"),
            mode: AddWatchMode::PersistentRecursive.code(),
        },
        _ => Request::AddWatch {
            path: path("/b"),
            mode: AddWatchMode::Persistent.code(),
        },
    }
}

#[test]
fn requests_that_commute_give_the_same_in_both_orders() {
    let pairs = 5_000 * effort();
    let seed = seed();
    let mut random = Random::new(seed);
    let (mut commuting, mut needless, mut changes) = (0, 0, 0);
    for round in 0..pairs {
        let watches = [(); CONNS as usize].map(|()| random.byte());
        let mut requests = Requests::new(|| random.byte());
        let mut random_request = || {
            let kind = requests.byte() % KINDS;
            requests.request(kind)
        };
        let mut history = furnished();
        let watches = (0..CONNS).zip(watches);
        history.extend(watches.map(|(conn, number)| request(conn, watch(number))));
        for number in 0..6 {
            // The sessions stay.
            let asked = match random_request() {
                Request::CloseSession => Request::Ping,
                other => other,
            };
            history.push(request(number % CONNS, asked));
        }
        let (one, other) = (random_request(), random_request());
        let (state, _) = engine(&history);
        let footprints = [
            state.footprint(ConnId(0), &one),
            state.footprint(ConnId(1), &other),
        ];
        let pair = [request(0, one), request(1, other)];
        let first = served(&history, [&pair[0], &pair[1]]);
        let second = served(&history, [&pair[1], &pair[0]]);
        if footprints[0].commutes_with(&footprints[1]) {
            commuting += 1;
            changes += usize::from(first.1 != dump(&state));
            assert_eq!(
                first, second,
                "seed {seed}, round {round}: {history:#?}\n{pair:#?}\n{footprints:#?}"
            );
        } else {
            needless += usize::from(first == second);
        }
        assert_eq!(
            footprints[0].commutes_with(&footprints[1]),
            footprints[1].commutes_with(&footprints[0])
        );
    }
    println!(
        "of {pairs} pairs {commuting} commute, {changes} of them with a change; {needless} more are equal"
    );
    assert!(commuting > pairs as usize / 10, "{commuting}");
    assert!(changes > pairs as usize / 50, "{changes}");
}
