//! The kinds of locks, and the paths in use. `Mixed.java` has the same names.

use clap::ValueEnum;

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Kind {
    Mutex,
    ReadWrite,
    SemaphoreMutex,
    /// A semaphore with three leases.
    Semaphore,
    /// Three mutexes, which some contenders acquire together and others one at a time.
    MultiLock,
    LeaderLatch,
}

/// The number of leases of the semaphore.
pub(crate) const LEASES: usize = 3;

/// The members of a multi-lock.
pub(crate) const MEMBERS: [&str; 3] = ["a", "b", "c"];

pub(crate) fn member(path: &str, member: &str) -> String {
    format!("{path}/{member}")
}

/// The znode to which the holder writes. Each member of a multi-lock has its own.
pub(crate) fn ledger(path: &str, member: &str) -> String {
    format!("{path}-ledger{member}")
}

pub(crate) fn ledgers(kind: Kind, path: &str) -> Vec<String> {
    match kind {
        Kind::MultiLock => MEMBERS.map(|member| ledger(path, member)).into(),
        _ => vec![ledger(path, "")],
    }
}

/// The parent of the marks of readers and of lease holders.
pub(crate) fn gauge(path: &str) -> String {
    format!("{path}-gauge")
}

/// Exists once Curator's contenders are ready.
pub(crate) fn ready(path: &str) -> String {
    format!("{path}-ready")
}

/// Exists once all contenders are done.
pub(crate) fn end(path: &str) -> String {
    format!("{path}-end")
}

/// Exists once the audit has begun.
pub(crate) fn audited(path: &str) -> String {
    format!("{path}-audited")
}
