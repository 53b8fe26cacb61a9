//! What a client and its calls take of the process: by themselves, since both are counted for the
//! whole of it.
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

/// A server on a thread of its own, so that what it allocates is not counted here.
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

/// One test, since threads and allocations of another would be counted too.
#[test]
fn e4_and_e12_client_brings_no_thread_and_calls_allocate_little() {
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
    // The first ones make room that is kept.
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
    // There, 11.
    assert!(
        per_watch <= 5,
        "{per_watch} allocations a watch that is dropped"
    );
}
