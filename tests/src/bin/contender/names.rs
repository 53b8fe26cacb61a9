//! Which locks there are, and where things are kept. `Mixed.java` has the same names.

use clap::ValueEnum;

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Kind {
    Mutex,
    ReadWrite,
    SemaphoreMutex,
    /// With three leases.
    Semaphore,
    /// Three mutexes, which some take together and others one by one.
    MultiLock,
    LeaderLatch,
}

/// How many of a semaphore's leases there are.
pub(crate) const LEASES: usize = 3;

/// The members of a multi-lock.
pub(crate) const MEMBERS: [&str; 3] = ["a", "b", "c"];

pub(crate) fn member(path: &str, member: &str) -> String {
    format!("{path}/{member}")
}

/// What the holder of the lock writes to; each member of a multi-lock has its own.
pub(crate) fn ledger(path: &str, member: &str) -> String {
    format!("{path}-ledger{member}")
}

pub(crate) fn ledgers(kind: Kind, path: &str) -> Vec<String> {
    match kind {
        Kind::MultiLock => MEMBERS.map(|member| ledger(path, member)).into(),
        _ => vec![ledger(path, "")],
    }
}

/// Below it are the marks of readers, and of holders of a lease.
pub(crate) fn gauge(path: &str) -> String {
    format!("{path}-gauge")
}

/// There when Curator's contenders are ready.
pub(crate) fn ready(path: &str) -> String {
    format!("{path}-ready")
}

/// There when all are done.
pub(crate) fn end(path: &str) -> String {
    format!("{path}-end")
}

/// There when the audit has begun.
pub(crate) fn audited(path: &str) -> String {
    format!("{path}-audited")
}
