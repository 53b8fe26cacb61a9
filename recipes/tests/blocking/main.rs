//! The blocking API, from threads without a runtime, against a server in the same process.
//!
//! | module | contents |
//! | --- | --- |
//! | `sessions` | the client's thread, the end of its session, calls inside a runtime |
//! | `locks` | the mutex among threads and beside the async API; interrupts, loss, closing |
//! | `recipes` | the other recipes |

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests are not tests to the lint"
)]

mod locks;
mod recipes;
mod sessions;

use std::{
    sync::mpsc::{Receiver, sync_channel},
    thread,
    time::Duration,
};

use minikeeper::blocking::Server;
use minikeeper_recipes::blocking::Client;

const PATH: &str = "/locks/a";

/// How long a test waits for something that must happen.
const PATIENCE: Duration = Duration::from_secs(30);

fn server() -> Server {
    Server::builder().start().unwrap()
}

fn client(server: &Server) -> Client {
    Client::connect(&server.connect_string()).unwrap()
}

/// Calls a function on a thread of its own. Its result arrives in the channel.
fn on_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Receiver<T> {
    let (done, result) = sync_channel(1);
    thread::spawn(move || done.send(work()));
    result
}

/// Returns the result of [`on_thread`]; panics after [`PATIENCE`].
fn soon<T>(result: &Receiver<T>) -> T {
    result.recv_timeout(PATIENCE).expect("it ends in time")
}
