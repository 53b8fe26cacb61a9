//! Tests that inspect the state, or are too long for the file that they test.

mod access;
mod access_bounds;
mod administration;
mod broken;
mod changes;
mod cleanups;
mod copying;
mod counters;
mod footprints;
mod hostile_images;
mod images;
mod limits;
mod listings;
mod past;
mod quotas;
mod records;
mod replays;
mod reports;
mod restarts;
mod rings;
mod undoing;
mod work;

use minikeeper_protocol::{
    AclList, ConnectRequest, ConnectResponse, Create, CreateMode, ErrorCode, EventKind, MultiOp,
    ReplyHeader, ReplyRef, Request, SessionId, Xid, Zxid,
};

use crate::{CloseReason, ConnId, Effects, Engine, Event, Input, Limit, Now, Settings};

/// The effects of one input.
#[derive(Default)]
struct Seen {
    session: Option<SessionId>,
    /// The header of the last reply.
    reply: Option<ReplyHeader>,
    /// The path in the last reply, if it has one.
    path: Option<String>,
    events: Vec<(u32, EventKind, String, Zxid)>,
    limits: Vec<(Limit, usize)>,
}

impl Effects for Seen {
    fn connected(&mut self, _: ConnId, response: &ConnectResponse) {
        self.session = Some(response.session_id);
    }

    fn reply(&mut self, _: ConnId, header: ReplyHeader, body: ReplyRef<'_>) {
        self.reply = Some(header);
        if let ReplyRef::PathStat(path, _) = body {
            self.path = Some(String::from_utf8(path.to_vec()).unwrap());
        }
    }

    fn event(&mut self, to: ConnId, event: &Event<'_>) {
        let path = String::from_utf8(event.path.to_vec()).unwrap();
        self.events.push((to.0, event.kind, path, event.zxid));
    }

    fn close(&mut self, _: ConnId, _: CloseReason) {}

    fn limit_hit(&mut self, limit: Limit, max: usize) {
        self.limits.push((limit, max));
    }
}

/// Creates an engine with this number of connected sessions.
fn engine(conns: u32, settings: Settings) -> Engine {
    let mut engine = Engine::new(settings);
    for conn in 0..conns {
        open(&mut engine, conn);
    }
    engine
}

fn open(engine: &mut Engine, conn: u32) -> Seen {
    let conn = ConnId(conn);
    let hello = ConnectRequest::new(10_000);
    apply(
        engine,
        &Input::Connect {
            conn,
            hello,
            is_read_only: false,
        },
    )
}

fn apply(engine: &mut Engine, input: &Input) -> Seen {
    let mut seen = Seen::default();
    engine.apply(Now::default(), input, &mut seen);
    engine.check().unwrap();
    seen
}

fn request(engine: &mut Engine, conn: u32, request: Request) -> Seen {
    let input = Input::Request {
        conn: ConnId(conn),
        xid: Xid(1),
        request,
    };
    apply(engine, &input)
}

/// Applies a request and returns the outcome in the reply's header.
fn outcome(engine: &mut Engine, conn: u32, asked: Request) -> Result<(), ErrorCode> {
    let header = request(engine, conn, asked).reply.expect("a reply");
    header.error.map_or(Ok(()), Err)
}

fn create(path: &str, mode: CreateMode) -> Request {
    Request::Create(Create::new(path, b"data", mode))
}

fn delete(path: &str) -> Request {
    let path = Some(path.into());
    Request::Delete { path, version: -1 }
}

fn set(path: &str, data: &'static [u8]) -> Request {
    Request::SetData {
        path: Some(path.into()),
        data: Some(data.into()),
        version: -1,
    }
}

fn get(path: &str) -> Request {
    let path = Some(path.into());
    Request::GetData { path, watch: true }
}

fn list(path: &str) -> Request {
    let path = Some(path.into());
    Request::GetChildren { path, watch: true }
}

fn add_watch(path: &str, mode: i32) -> Request {
    let path = Some(path.into());
    Request::AddWatch { path, mode }
}

fn create_op(path: &str, mode: CreateMode) -> MultiOp {
    MultiOp::Create(Create::new(path, b"data", mode))
}

fn create_with(path: &str, acl: AclList) -> Create {
    Create {
        acl,
        ..Create::new(path, b"", CreateMode::Persistent)
    }
}

fn delete_op(path: &str) -> MultiOp {
    let path = Some(path.into());
    MultiOp::Delete { path, version: -1 }
}

fn check_op(path: &str) -> MultiOp {
    let path = Some(path.into());
    MultiOp::Check { path, version: -1 }
}

/// Pseudorandom numbers, the same for the same seed.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .wrapping_add(0x1405_7b7e_f767_814f);
        (self.0 >> 33) % end
    }

    fn index(&mut self, end: usize) -> usize {
        usize::try_from(self.below(end as u64)).unwrap()
    }
}
