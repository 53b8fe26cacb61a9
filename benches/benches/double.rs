//! The cost of the test double: a universe, snapshot and restore, a fork.

use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use minikeeper::blocking::Server;
use minikeeper_benches::clock::now_ns;
use minikeeper_protocol::{Create, CreateMode, Request};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

const ZNODES: u32 = 100_000;
const CHANGES: u32 = 1_000;

/// A client inside the process that creates and deletes.
struct Writer {
    stream: minikeeper::LocalStream,
    runtime: tokio::runtime::Runtime,
    reply: Vec<u8>,
}

impl Writer {
    fn new(server: &Server) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .expect("a runtime without drivers");
        let mut writer = Self {
            stream: server.local(),
            runtime,
            reply: vec![0; 1 << 20],
        };
        let mut hello = Vec::new();
        minikeeper_protocol::ConnectRequest::new(30_000).encode(&mut hello);
        writer.send(&hello);
        writer
    }

    fn send(&mut self, frames: &[u8]) {
        let (stream, reply) = (&mut self.stream, &mut self.reply);
        self.runtime.block_on(async {
            stream.write_all(frames).await.expect("the server runs");
            let read = stream.read(reply).await.expect("the server runs");
            assert!(read > 0, "the server has closed the connection");
        });
    }

    fn create(&mut self, names: impl Iterator<Item = String>) {
        for name in names {
            let mut frame = Vec::new();
            let create = Create::new(&name, b"data", CreateMode::Persistent);
            Request::Create(create).encode(minikeeper_protocol::Xid(1), &mut frame);
            self.send(&frame);
        }
    }
}

fn universe(c: &mut Criterion) {
    let server = Server::builder().start().expect("a free port");
    c.bench_function("double/universe created and dropped", |b| {
        b.iter(|| server.new_universe().expect("a free name"));
    });
    c.bench_function("double/universe created", |b| {
        b.iter_with_large_drop(|| server.new_universe().expect("a free name"));
    });
}

fn large_tree(c: &mut Criterion) {
    let server = Server::builder().start().expect("a free port");
    let mut writer = Writer::new(&server);
    writer.create((0..ZNODES).map(|number| format!("/znode-{number:06}")));
    c.bench_function("double/restore of 1000 changes in 100000 znodes", |b| {
        b.iter_custom(|rounds| {
            let mut time = Duration::ZERO;
            for _ in 0..rounds {
                let start = now_ns();
                let snapshot = server.snapshot();
                time += Duration::from_nanos(now_ns() - start);
                writer.create((0..CHANGES).map(|number| format!("/new-{number}")));
                let start = now_ns();
                server.restore(&snapshot).expect("the snapshot exists");
                drop(snapshot);
                time += Duration::from_nanos(now_ns() - start);
            }
            time
        });
    });
    c.bench_function("double/fork of 100000 znodes", |b| {
        // One copy at a time, as in tests: hundreds of them would measure the system's memory.
        // There is a pause, because another thread frees the previous copy from the same heap.
        b.iter_custom(|rounds| {
            let mut time = Duration::ZERO;
            for _ in 0..rounds {
                let start = now_ns();
                let copy = server.fork("copy").expect("a free name");
                time += Duration::from_nanos(now_ns() - start);
                drop(copy);
                std::thread::park_timeout(Duration::from_millis(30));
            }
            time
        });
    });
}

fn short() -> Criterion {
    Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(2))
}

criterion_group! {
    name = benches;
    config = short();
    targets = universe, large_tree
}
criterion_main!(benches);
