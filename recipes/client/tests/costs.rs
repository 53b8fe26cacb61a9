//! The threads and allocations of a client and its calls. They have their own test binary, because
//! both are counted for the whole process.
//!
//! Source: `docs/client.md` section 2, E4 and E12.

#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests are not tests to the lint"
)]

use std::sync::mpsc;

use minikeeper_client::Client;
use tokio::runtime::{Builder, Runtime};

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

/// Starts a server on its own thread, whose allocations are not counted.
fn server() -> String {
    let (send, receive) = mpsc::sync_channel(1);
    std::thread::spawn(move || {
        runtime().block_on(async {
            let server = minikeeper::Server::builder().start().await.unwrap();
            send.send(server.connect_string()).unwrap();
            std::future::pending::<()>().await;
        });
    });
    receive.recv().unwrap()
}

fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").unwrap().count()
}

/// A single test, because the threads and allocations of another one would be counted too.
#[test]
fn e4_and_e12_client_starts_no_thread_and_calls_allocate_little() {
    let address = server();
    let runtime = runtime();
    let before = threads();
    let client = runtime.block_on(Client::connect(&address)).unwrap();
    assert_eq!(threads(), before, "threads");

    let count = |calls: u64| {
        let info = allocation_counter::measure(|| {
            runtime.block_on(async {
                for _ in 0..calls {
                    client.exists("/").await.unwrap();
                }
            });
        });
        info.count_total
    };
    // The first calls allocate buffers that are kept.
    count(100);
    let per_call = (count(1_100) - count(100)) / 1_000;
    // The crate zookeeper-client makes 6.
    assert!(per_call <= 3, "{per_call} allocations a call");

    let watched = |calls: u64| {
        let info = allocation_counter::measure(|| {
            runtime.block_on(async {
                for _ in 0..calls {
                    let (_, watch) = client.exists_and_watch("/").await.unwrap();
                    drop(watch);
                }
            });
        });
        info.count_total
    };
    watched(100);
    let per_watch = (watched(1_100) - watched(100)) / 1_000;
    // The crate zookeeper-client makes 11.
    assert!(
        per_watch <= 5,
        "{per_watch} allocations a watch that is dropped"
    );
}
