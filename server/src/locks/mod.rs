//! Finds every lock, semaphore and election in the tree: who holds it, who waits for whom, and what
//! is wrong.
//!
//! [`naming`] recognises the znodes of contenders, [`collect`] copies them and their watches out of
//! the engine, [`analysis`] finds holders, waiters and warnings by the rules of each recipe,
//! [`deadlock`] finds cycles, [`history`] reads in the journal how locks changed hands, and [`text`]
//! prints the result for people.

mod analysis;
mod collect;
mod deadlock;
mod history;
pub(crate) mod naming;
mod text;

use std::{fmt, net::SocketAddr, time::Duration};

use minikeeper_protocol::SessionId;

pub(crate) use self::collect::locks;
pub use self::history::{LockHistory, LockShare, Spread};

/// The maximum number of locks in a report. Locks with several contenders come before others.
const LOCKS_MAX: usize = 1_000;

/// The maximum number of contenders in a report, and of one lock.
const CONTENDERS_MAX: usize = 10_000;
const CONTENDERS_OF_A_LOCK_MAX: usize = 1_000;

/// The maximum length of a contender's data in a report. Unit: bytes.
const DATA_BYTES_MAX: usize = 256;

/// The maximum number of predecessors that a report names for one contender.
const WAITS_FOR_MAX: usize = 10;

/// The number of contenders that make a herd when all of them watch one znode.
const HERD_MIN: usize = 3;

/// The locks, semaphores and elections in a universe: the result of
/// [`Universe::locks`](crate::Universe::locks).
///
/// `Display` prints it for people: deadlocks first, then a block for each lock.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Locks {
    /// The locks, by path.
    pub locks: Vec<LockInfo>,
    /// The deadlocks among their contenders.
    pub deadlocks: Vec<Deadlock>,
    /// Whether there are more locks or contenders than the report includes. A deadlock among those
    /// is not found.
    pub is_truncated: bool,
}

/// A lock, semaphore or election, with its contenders.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct LockInfo {
    /// The path that the recipe was given.
    pub path: String,
    /// Its kind.
    pub kind: LockKind,
    /// The library whose names the contenders have. `None` if they do not show it, or differ.
    pub family: Option<LockFamily>,
    /// The number of leases of a semaphore, if the tree says it, as kazoo's do.
    pub max_leases: Option<u32>,
    /// The contenders that hold it, in queue order.
    pub holders: Vec<Contender>,
    /// The contenders that wait for it, in queue order.
    pub waiters: Vec<Contender>,
    /// The number of contenders, those that the report omits included.
    pub contenders_total: usize,
    /// What is wrong with it.
    pub warnings: Vec<LockWarning>,
    /// How it changed hands so far. `None` for read/write locks and semaphores, without a journal, or
    /// if the journal does not show all of it.
    pub history: Option<LockHistory>,
}

/// The kind of a lock, as far as the tree shows it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum LockKind {
    /// One holder at a time. Leader selectors, and elections of kazoo, look the same.
    Mutex,
    /// Several readers or one writer.
    ReadWrite,
    /// As many holders as there are leases.
    Semaphore,
    /// A leader latch of Curator or of this project's recipes.
    LeaderLatch,
    /// A leader election by numbered offers, as in ZooKeeper's recipes.
    LeaderElection,
}

impl LockKind {
    /// Returns its name in lower case, with underscores.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mutex => "mutex",
            Self::ReadWrite => "read_write",
            Self::Semaphore => "semaphore",
            Self::LeaderLatch => "leader_latch",
            Self::LeaderElection => "leader_election",
        }
    }
}

impl fmt::Display for LockKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The library that names the znodes of a lock.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum LockFamily {
    /// Apache Curator, this project's recipes, or the crate zookeeper-client: all use the same
    /// names.
    Curator,
    /// go-zookeeper.
    GoZookeeper,
    /// kazoo.
    Kazoo,
    /// The recipes of ZooKeeper's own distribution.
    ZooKeeper,
}

impl LockFamily {
    /// Returns its name in lower case.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Curator => "curator",
            Self::GoZookeeper => "go-zookeeper",
            Self::Kazoo => "kazoo",
            Self::ZooKeeper => "zookeeper",
        }
    }
}

impl fmt::Display for LockFamily {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A contender: one znode in the queue of a lock.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Contender {
    /// The path of its znode.
    pub path: String,
    /// Whether it wants or has shared access, as a reader.
    pub is_reader: bool,
    /// The session that owns the znode; `None` if no session does.
    pub session: Option<SessionId>,
    /// The client's address; `None` without a connection, or with an in-process one.
    pub address: Option<SocketAddr>,
    /// Whether the session has a connection now.
    pub is_connected: bool,
    /// Whether the session is silenced: see [`Universe::silence`](crate::Universe::silence).
    pub is_silenced: bool,
    /// When the znode was created, in milliseconds since 1970, by the server's clock.
    pub since_ms: i64,
    /// How long ago that was.
    pub age: Duration,
    /// The znode's data, at most 256 bytes of it. `None` if it has none.
    pub data: Option<Vec<u8>>,
    /// The length of the whole data. Unit: bytes.
    pub data_length: usize,
    /// The paths of the znodes that it waits for, at most 10. Empty for a holder, and for a
    /// contender that is about to become one.
    pub waits_for: Vec<String>,
    /// Whether its session has a watch that will wake it.
    pub is_watching: bool,
}

/// Something wrong with a lock.
///
/// The report shows one instant. A contender that has just joined the queue, or was woken just now,
/// may have no watch yet.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct LockWarning {
    /// What kind of fault it is.
    pub code: LockWarningCode,
    /// The path of the znode concerned.
    pub path: String,
    /// A sentence.
    pub text: String,
}

impl fmt::Display for LockWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.text)
    }
}

/// The kind of a [`LockWarning`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum LockWarningCode {
    /// Three contenders or more watch one znode, where only the next one should: one release wakes
    /// all of them.
    Herd,
    /// A contender waits, and no watch of its session will wake it.
    WaiterWithoutWatch,
    /// A session is silenced, or has sent nothing for more than two thirds of its timeout.
    SilentSession,
    /// A session has no connection. Unless its client reconnects, it expires.
    NoConnection,
    /// No session owns the znode, so it stays until a client deletes it.
    Orphan,
}

impl LockWarningCode {
    /// Returns its name in lower case, with hyphens. Names do not change.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Herd => "herd",
            Self::WaiterWithoutWatch => "waiter-without-watch",
            Self::SilentSession => "silent-session",
            Self::NoConnection => "no-connection",
            Self::Orphan => "orphan",
        }
    }
}

impl fmt::Display for LockWarningCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A set of sessions that wait for each other over several locks.
///
/// Sessions count as one each. If a process uses a session in several threads or tasks, another of
/// them may still be able to release what the cycle waits for.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Deadlock {
    /// A cycle: each session waits for that of the next step, and the last one for the first.
    pub cycle: Vec<DeadlockStep>,
    /// All sessions that wait for each other, by id. There are more than in the cycle if several
    /// cycles are connected.
    pub sessions: Vec<SessionId>,
}

/// A step of a [`Deadlock`]: a session that waits for another one.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct DeadlockStep {
    /// The session that waits.
    pub session: SessionId,
    /// Its client's address; `None` without a connection, or with an in-process one.
    pub address: Option<SocketAddr>,
    /// The path of the lock that it waits for.
    pub lock: String,
    /// The path of its znode in the queue.
    pub contender: String,
    /// The session that it waits for.
    pub waits_for: SessionId,
    /// Whether that session holds the lock. Otherwise it is ahead in the queue.
    pub is_held: bool,
}
