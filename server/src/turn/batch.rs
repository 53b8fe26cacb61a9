//! What a turn is asked to serve for its connection, and what it leaves behind.

use minikeeper_engine::Input;

use crate::{faults::aftermath::Aftermath, turn::outbox::Close};

/// What a connection has read and wants served.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Batch<'a> {
    pub(crate) inputs: &'a [Input],
    /// Where each of them ends among the bytes read.
    pub(crate) ends: &'a [usize],
    /// Where the first begins.
    pub(crate) start: usize,
    /// When an earlier turn began to serve what came with the same read, in milliseconds since
    /// the start.
    pub(crate) arrived_ms: Option<u64>,
    /// What becomes of the output, where that is not the connection's own business.
    pub(crate) aftermath: Option<&'a Aftermath>,
}

/// What a turn leaves behind for its connection.
#[derive(Debug, Default)]
pub(crate) struct Leftover {
    /// How many of the inputs were applied; fewer than given if there was too much to write.
    pub(crate) applied: usize,
    /// Why the connection must close once everything is written.
    pub(crate) close: Option<Close>,
    /// When the turn began, in milliseconds since the start.
    pub(crate) began_ms: u64,
}
