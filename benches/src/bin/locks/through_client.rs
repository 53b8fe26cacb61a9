//! The client, and a lock nobody else wants.

use std::net::SocketAddr;

use minikeeper_benches::Error;
use minikeeper_client::Client;
use minikeeper_recipes::{InterProcessMutex, LockOptions};

use crate::{
    bare::DEPTH,
    measure::{Measure, Timer},
};

pub(crate) async fn connect(addr: SocketAddr) -> Result<Client, Error> {
    let builder = Client::builder(&addr.to_string()).map_err(text)?;
    builder.connect().await.map_err(text)
}

/// One request after the other.
pub(crate) async fn one_by_one(client: &Client, count: u32) -> Result<Measure, Error> {
    let mut timer = Timer::start(count)?;
    for _ in 0..count {
        timer.begin();
        client.exists("/").await.map_err(text)?;
        timer.end();
    }
    timer.measure()
}

/// Many at a time. The time is that of one request's share.
pub(crate) async fn pipelined(client: &Client, count: u32) -> Result<Measure, Error> {
    let mut timer = Timer::start(count * DEPTH)?;
    for _ in 0..count {
        timer.begin();
        let calls: Vec<_> = (0..DEPTH).map(|_| client.exists("/")).collect();
        for call in calls {
            call.await.map_err(text)?;
        }
        timer.end_of(u64::from(DEPTH));
    }
    timer.measure()
}

/// What of a lock is timed.
#[derive(Clone, Copy)]
pub(crate) enum Part {
    /// Until it is got.
    Acquire,
    /// Until it is given back, and the server has said so.
    Cycle,
}

pub(crate) fn lock(
    client: &Client,
    options: LockOptions,
) -> Result<InterProcessMutex<Client>, Error> {
    InterProcessMutex::with_options(client.clone(), "/bench/lock", options).map_err(text)
}

/// A free lock, taken and given back.
pub(crate) async fn uncontended(
    lock: &InterProcessMutex<Client>,
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

pub(crate) fn text(error: impl std::error::Error) -> Error {
    Error::Unexpected(error.to_string())
}
