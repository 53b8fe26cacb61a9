//! A server, its clients, and questions that tests of locks often ask.

use std::sync::Arc;

use minikeeper::Server;
use minikeeper_recipes::{InterProcessMutex, LockOptions};
pub(crate) use minikeeper_test_kit::servers::{
    SESSION_TIMEOUT, client, client_builder as builder, create, soon, spawn, start, until,
};

use crate::every_lock;

pub(crate) const PATH: &str = "/locks/a";

/// A contender for the mutex at [`PATH`], with its own session.
pub(crate) type Contender = every_lock::Contender<InterProcessMutex>;

pub(crate) async fn contender(server: &Arc<Server>, seed: u64) -> Contender {
    contender_with(server, seed, LockOptions::default()).await
}

pub(crate) async fn contender_with(
    server: &Arc<Server>,
    seed: u64,
    options: LockOptions,
) -> Contender {
    Contender::new(server, seed, &options).await
}

/// The options with all savings, and those that repeat Curator's requests.
pub(crate) fn both_ways() -> [LockOptions; 2] {
    [LockOptions::default(), LockOptions::curator_exact()]
}

/// Returns the names in the lock's directory.
pub(crate) fn queue(server: &Server) -> Vec<String> {
    server.children(PATH).unwrap_or_default()
}
