//! The engine alone: one input from the call to the encoded reply, without decoding, lock or
//! socket.

use std::{hint::black_box, time::Duration};

use bytes::Bytes;
use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use minikeeper_benches::clock::now_ns;
use minikeeper_engine::{CloseReason, ConnId, Effects, Engine, Event, Input, Limit, Now, Settings};
use minikeeper_protocol::{
    ConnectRequest, ConnectResponse, Create, CreateMode, CreateOp, MultiOp, ReplyHeader, ReplyRef,
    Request, Xid, event,
};

/// Encodes into one buffer and does nothing else.
#[derive(Default)]
struct Encode(Vec<u8>);

impl Effects for Encode {
    fn connected(&mut self, _: ConnId, response: &ConnectResponse) {
        response.encode(&mut self.0);
    }

    fn reply(&mut self, _: ConnId, header: ReplyHeader, body: ReplyRef<'_>) {
        body.encode(header, &mut self.0, ReplyRef::BYTES_MAX)
            .expect("the reply is short");
    }

    fn event(&mut self, _: ConnId, event: &Event<'_>) {
        event::encode(event.kind, event.path, event.zxid, &mut self.0);
    }

    fn close(&mut self, _: ConnId, _: CloseReason) {}

    fn limit_hit(&mut self, _: Limit, _: usize) {}
}

/// An engine with one session, and the output for its replies.
struct Bench {
    engine: Engine,
    out: Encode,
}

const DATA: [u8; 100] = [b'd'; 100];

impl Bench {
    fn new() -> Self {
        let mut bench = Self {
            engine: Engine::new(Settings::default()),
            out: Encode::default(),
        };
        bench.connect(0);
        bench.apply(&create("/app", CreateMode::Persistent));
        bench
    }

    fn connect(&mut self, conn: u32) {
        let (conn, hello) = (ConnId(conn), ConnectRequest::new(10_000));
        self.apply(&Input::Connect {
            conn,
            hello,
            is_read_only: false,
        });
    }

    fn with_children(count: usize) -> Self {
        let mut bench = Self::new();
        for number in 0..count {
            bench.apply(&create(
                &format!("/app/child-{number:06}"),
                CreateMode::Persistent,
            ));
        }
        bench
    }

    fn apply(&mut self, input: &Input) {
        self.out.0.clear();
        self.engine.apply(Now::default(), input, &mut self.out);
        black_box(&self.out.0);
    }
}

fn request(conn: u32, request: Request) -> Input {
    Input::Request {
        conn: ConnId(conn),
        xid: Xid(1),
        request,
    }
}

fn create_of(path: &str, mode: CreateMode) -> Create {
    Create {
        op: CreateOp::Create,
        ..Create::new(path, &DATA, mode)
    }
}

fn create(path: &str, mode: CreateMode) -> Input {
    request(0, Request::Create(create_of(path, mode)))
}

fn delete(path: &str) -> Input {
    let path = Some(path.into());
    request(0, Request::Delete { path, version: -1 })
}

fn set_data() -> Input {
    request(
        0,
        Request::SetData {
            path: Some("/app".into()),
            data: Some(Bytes::from_static(&DATA)),
            version: -1,
        },
    )
}

fn reads_and_writes(c: &mut Criterion) {
    let mut bench = Bench::new();
    let path = Some("/app".into());
    let get = request(0, Request::GetData { path, watch: false });
    c.bench_function("engine/getData", |b| b.iter(|| bench.apply(&get)));
    let set = set_data();
    c.bench_function("engine/setData", |b| b.iter(|| bench.apply(&set)));
}

fn create_and_delete(c: &mut Criterion) {
    for siblings in [0, 10_000] {
        let mut bench = Bench::with_children(siblings);
        let (create, delete) = (create("/app/x", CreateMode::Persistent), delete("/app/x"));
        c.bench_function(&format!("engine/create+delete/{siblings} siblings"), |b| {
            b.iter(|| {
                bench.apply(&create);
                bench.apply(&delete);
            });
        });
    }
    // The cost of a lock: the name is known only after the server has assigned it.
    let mut bench = Bench::new();
    let create = create("/app/lock-", CreateMode::EphemeralSequential);
    let mut number = 0;
    c.bench_function("engine/ephemeral sequential create+delete", |b| {
        b.iter(|| {
            bench.apply(&create);
            bench.apply(&delete(&format!("/app/lock-{number:010}")));
            number += 1;
        });
    });
}

fn listings(c: &mut Criterion) {
    for children in [10, 1_000] {
        let mut bench = Bench::with_children(children);
        let path = Some("/app".into());
        let list = request(0, Request::GetChildren { path, watch: false });
        c.bench_function(&format!("engine/getChildren/{children}"), |b| {
            b.iter(|| bench.apply(&list));
        });
    }
}

/// One setData with N persistent watchers, and with N one-shot watches, which are registered again
/// before each change, outside the measurement.
fn fan_out(c: &mut Criterion) {
    for watchers in [1_u32, 1_000] {
        let mut bench = Bench::new();
        for conn in 1..=watchers {
            bench.connect(conn);
            let path = Some("/app".into());
            bench.apply(&request(conn, Request::AddWatch { path, mode: 0 }));
        }
        let set = set_data();
        c.bench_function(
            &format!("engine/setData/{watchers} persistent watchers"),
            |b| {
                b.iter(|| bench.apply(&set));
            },
        );
    }
    for watchers in [1_u32, 1_000] {
        let mut bench = Bench::new();
        for conn in 1..=watchers {
            bench.connect(conn);
        }
        let set = set_data();
        let bench = std::cell::RefCell::new(bench);
        c.bench_function(
            &format!("engine/setData/{watchers} one-shot watchers"),
            |b| {
                b.iter_batched(
                    || {
                        for conn in 1..=watchers {
                            let path = Some("/app".into());
                            let get = request(conn, Request::GetData { path, watch: true });
                            bench.borrow_mut().apply(&get);
                        }
                    },
                    |()| bench.borrow_mut().apply(&set),
                    BatchSize::PerIteration,
                );
            },
        );
    }
}

/// Like the release of a lock or the hand-over of leadership: check, set, create, delete.
fn multi(c: &mut Criterion) {
    let mut bench = Bench::new();
    let path = || Some("/app".into());
    let good = vec![
        MultiOp::Check {
            path: path(),
            version: -1,
        },
        MultiOp::SetData {
            path: path(),
            data: Some(Bytes::from_static(&DATA)),
            version: -1,
        },
        MultiOp::Create(create_of("/app/x", CreateMode::Ephemeral)),
        MultiOp::Delete {
            path: Some("/app/x".into()),
            version: -1,
        },
    ];
    let mut bad = good.clone();
    bad[3] = MultiOp::Check {
        path: Some("/missing".into()),
        version: -1,
    };
    for (name, ops) in [("done", good), ("rolled back", bad)] {
        let multi = request(0, Request::Multi(ops));
        c.bench_function(&format!("engine/multi of 4/{name}"), |b| {
            b.iter(|| bench.apply(&multi));
        });
    }
}

/// The cost of a test between snapshot and restore, in a large tree: 1,000 changes recorded and
/// undone. Then a full copy of that tree.
fn past(c: &mut Criterion) {
    const ZNODES: usize = 100_000;
    let mut bench = Bench::with_children(ZNODES);
    let set = set_data();
    let creates: Vec<_> = (0..500)
        .map(|number| create(&format!("/app/new-{number}"), CreateMode::Persistent))
        .collect();
    let change = |bench: &mut Bench| {
        for create in &creates {
            bench.apply(create);
            bench.apply(&set);
        }
    };
    c.bench_function("engine/1000 changes of 100000 znodes/rewind", |b| {
        b.iter_custom(|rounds| {
            let mut time = Duration::ZERO;
            for _ in 0..rounds {
                let start = now_ns();
                let mark = bench.engine.mark();
                time += Duration::from_nanos(now_ns() - start);
                change(&mut bench);
                let start = now_ns();
                assert!(
                    bench
                        .engine
                        .rewind(mark, Now::default(), &mut Encode::default())
                );
                bench.engine.forget_mark(mark);
                time += Duration::from_nanos(now_ns() - start);
            }
            time
        });
    });
    c.bench_function("engine/fork of 100000 znodes", |b| {
        b.iter_with_large_drop(|| bench.engine.fork(minikeeper_protocol::SessionId(1)));
    });
}

fn short() -> Criterion {
    Criterion::default()
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2))
}

criterion_group! {
    name = benches;
    config = short();
    targets = reads_and_writes, create_and_delete, listings, fan_out, multi, past
}
criterion_main!(benches);
