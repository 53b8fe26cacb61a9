//! Every recipe: acquire and release of a free lock, and a hand-over between two sessions, over an
//! in-process connection and over loopback; and a change with many watchers.
//!
//! In process, server and contenders share a thread; over loopback the server has its own.

use std::{hint::black_box, sync::Arc, time::Duration};

use criterion::{Criterion, criterion_group, criterion_main};
use minikeeper::Server;
use minikeeper_bench::{
    contest::Contest,
    embedded::Embedded,
    figures,
    holds::holds,
    peers::{
        Access, Kind, LockUnderTest as _,
        recipes::{Algorithm, Reach, Recipe},
    },
    process::Pin,
    report::Workload,
};
use tokio::runtime::Runtime;

/// The number of watchers of the changed znode.
const WATCHERS: usize = 1_000;

const ALL: [(&str, Algorithm); 9] = [
    ("mutex", Algorithm::Mutex),
    ("mutex, curator_exact", Algorithm::CuratorExact),
    ("write lock", Algorithm::ReadWrite),
    ("semaphore of 1", Algorithm::Semaphore(1)),
    ("semaphore mutex", Algorithm::SemaphoreMutex),
    ("multi-lock of 3", Algorithm::MultiLock),
    ("simple, sequential", Algorithm::Sequential),
    ("simple, herd", Algorithm::Herd),
    ("simple, polling", Algorithm::Polling),
];

/// The ways to the server, with their names in the figures.
fn places(runtime: &Runtime) -> (Embedded, [(&'static str, Reach); 2]) {
    let local = runtime.block_on(Server::builder().start());
    let local = Arc::new(local.expect("a free port"));
    let embedded = Embedded::minikeeper(Pin::None).expect("a free port");
    let loopback = Reach::Tcp(embedded.addr);
    let places = [
        ("in process", Reach::InProcess(local)),
        ("loopback", loopback),
    ];
    (embedded, places)
}

fn recipe(algorithm: Algorithm, reach: &Reach) -> Recipe {
    Recipe {
        server: "minikeeper".into(),
        durability: "nothing",
        algorithm,
        reach: reach.clone(),
        session_timeout: Duration::from_secs(30),
    }
}

fn cycle(c: &mut Criterion) {
    let runtime = runtime();
    let (_server, places) = places(&runtime);
    for (place, reach) in &places {
        for (name, algorithm) in ALL {
            let resource = format!("cycle-{name}");
            let lock = recipe(algorithm, reach);
            let contender = runtime.block_on(lock.contender(&resource));
            let mut contender = contender.expect("a session");
            let mut once = |access| {
                runtime.block_on(async {
                    black_box(
                        contender
                            .acquire(access)
                            .await
                            .expect("there is no other contender"),
                    );
                    contender.release().await.expect("it is held");
                });
            };
            c.bench_function(&format!("acquire+release/{name}/{place}"), |b| {
                b.iter(|| once(Access::Exclusive));
            });
            if lock.kind() == Kind::ReadWrite {
                c.bench_function(&format!("acquire+release/read lock/{place}"), |b| {
                    b.iter(|| once(Access::Shared));
                });
            }
        }
    }
}

fn hand_over(c: &mut Criterion) {
    let runtime = runtime();
    let (_server, places) = places(&runtime);
    for (place, reach) in &places {
        // A polling contender does not wait for its predecessor.
        for (name, algorithm) in &ALL[..ALL.len() - 1] {
            let lock = recipe(*algorithm, reach);
            let mut number = 0;
            c.bench_function(&format!("hand-over/{name}/{place}"), |b| {
                b.iter_custom(|times| {
                    number += 1;
                    let resource = format!("hand-over-{name}-{number}");
                    hand_overs(&runtime, &lock, times, &resource)
                });
            });
        }
    }
}

/// Returns the time of N hand-overs between two contenders, from the median of those with a waiter.
fn hand_overs(runtime: &Runtime, lock: &Recipe, times: u64, resource: &str) -> Duration {
    let grants = u32::try_from(times).unwrap_or(u32::MAX).max(20);
    let contest = Contest {
        contenders: 2,
        readers: 0,
        in_turn: false,
        hold: Duration::from_micros(200),
        warmup: 4,
        grants,
        limit: Duration::from_secs(60),
    };
    let contested = runtime
        .block_on(contest.run(lock, resource))
        .expect("two sessions");
    let holds = holds(&contested.history).expect("a history that makes sense");
    let found = figures::times(Workload::HandOver(2), &holds, &contested.timed);
    assert!(!found.is_empty(), "no contender waited for {resource}");
    Duration::from_nanos(found.value_at_quantile(0.5))
        .mul_f64(minikeeper_bench::stats::as_f64(times))
}

/// One change: the time until every watcher has its event and watches again.
fn fan_out(c: &mut Criterion) {
    let runtime = runtime();
    let (_server, places) = places(&runtime);
    for (place, reach) in &places {
        let lock = recipe(Algorithm::Mutex, reach);
        let clients = runtime.block_on(async {
            let mut clients = Vec::new();
            for _ in 0..=WATCHERS {
                clients.push(lock.client().await.expect("a session"));
            }
            let mode = minikeeper_client::CreateMode::Persistent;
            let made = clients[0].create("/watched", b"", mode).await;
            made.expect("it did not exist before");
            clients
        });
        c.bench_function(&format!("fan-out/{WATCHERS} watchers/{place}"), |b| {
            b.iter(|| {
                runtime.block_on(async {
                    let watching: Vec<_> = clients[1..]
                        .iter()
                        .map(|client| client.exists_and_watch("/watched"))
                        .collect();
                    let mut watches = Vec::new();
                    for watch in watching {
                        watches.push(watch.await.expect("it is there").1);
                    }
                    let changed = clients[0].set_data("/watched", b"", None).await;
                    changed.expect("it is there");
                    for watch in watches {
                        black_box(watch.await);
                    }
                });
            });
        });
    }
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("the system has threads and sockets")
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
    targets = cycle, hand_over, fan_out
}
criterion_main!(benches);
