//! Tests of file formats and directories. Source: `docs/zookeeper-protocol.md` section 22.

mod damage;
mod dir;
mod format;
mod import;
mod logs;

use minikeeper_engine::{CloseReason, ConnId, Effects, Engine, Event, Input, Limit, Now, Settings};
use minikeeper_protocol::{
    ConnectRequest, ConnectResponse, Create, CreateMode, ReplyHeader, ReplyRef, Request, Xid,
};

struct Ignored;

impl Effects for Ignored {
    fn connected(&mut self, _: ConnId, _: &ConnectResponse) {}
    fn reply(&mut self, _: ConnId, _: ReplyHeader, _: ReplyRef<'_>) {}
    fn event(&mut self, _: ConnId, _: &Event<'_>) {}
    fn close(&mut self, _: ConnId, _: CloseReason) {}
    fn limit_hit(&mut self, _: Limit, _: usize) {}
}

/// Returns an engine with a disconnected session and a few znodes.
fn engine() -> Engine {
    let mut engine = Engine::new(Settings::default());
    let conn = ConnId(0);
    let hello = ConnectRequest::new(10_000);
    engine.apply(
        Now::default(),
        &Input::Connect {
            conn,
            hello,
            is_read_only: false,
        },
        &mut Ignored,
    );
    for (path, mode) in [
        ("/a", CreateMode::Persistent),
        ("/a/b", CreateMode::Persistent),
        ("/a/n", CreateMode::EphemeralSequential),
        ("/c", CreateMode::Container),
    ] {
        create(&mut engine, path, mode);
    }
    engine.apply(Now::default(), &Input::Disconnect { conn }, &mut Ignored);
    engine
}

fn create(engine: &mut Engine, path: &str, mode: CreateMode) {
    let input = Input::Request {
        conn: ConnId(0),
        xid: Xid(1),
        request: Request::Create(Create::new(path, b"data", mode)),
    };
    engine.apply(Now::default(), &input, &mut Ignored);
}
