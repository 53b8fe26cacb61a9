//! Settings of the transaction log.

/// What a crash keeps of the changes since the last save.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum TxnLog {
    /// Nothing: there is no log.
    #[default]
    Off,
    /// All that were answered, if the process is killed: each change is written to a log before
    /// anybody is told of it. A machine that loses its power may lose the newest ones.
    Write,
    /// All that were answered, even then: each is made durable too, as the original's are. That
    /// takes as long as the disk does, once for what one connection has sent together, and nobody
    /// is served meanwhile.
    Sync,
}

/// How many changes a log has before a save is due: the default of the original's `snapCount`.
pub(super) const SNAP_COUNT: u64 = 100_000;
