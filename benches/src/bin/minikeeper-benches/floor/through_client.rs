//! The client, and a lock without other contenders.

use std::net::SocketAddr;

use minikeeper_benches::Error;
use minikeeper_client::Client;
use minikeeper_recipes::{InterProcessMutex, LockOptions};

use super::measure::{Measure, Part, Timer};
use crate::text;

pub(crate) async fn connect(addr: SocketAddr) -> Result<Client, Error> {
    let builder = Client::builder(&addr.to_string()).map_err(text)?;
    builder.connect().await.map_err(text)
}

pub(crate) fn lock(client: &Client, options: LockOptions) -> Result<InterProcessMutex, Error> {
    InterProcessMutex::with_options(client.clone(), "/bench/lock", options).map_err(text)
}

/// Acquires and releases a free lock.
pub(crate) async fn uncontended(
    lock: &InterProcessMutex,
    part: Part,
    count: u32,
) -> Result<Measure, Error> {
    let mut timer = Timer::start(count)?;
    for _ in 0..count {
        timer.begin();
        let guard = lock.acquire().await.map_err(text)?;
        if matches!(part, Part::Acquire) {
            timer.end();
        }
        guard.release().await.map_err(text)?;
        if matches!(part, Part::Cycle) {
            timer.end();
        }
    }
    timer.measure()
}
