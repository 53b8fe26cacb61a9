//! Locks of every kind behind one trait, so that one harness measures and judges all of them.
//!
//! | module | lock |
//! | --- | --- |
//! | [`curator`] | Apache Curator in Java, in a separate process |
//! | `etcd` | etcd's own lock (feature `peers`) |
//! | `get_lock` | MariaDB's `GET_LOCK` (feature `peers`) |
//! | `jedis_imitation` | an imitation of Redisson with known defects, to test the judge (feature `peers`) |
//! | [`recipes`] | this project's recipes and its hand-written locks, on any server with ZooKeeper's protocol |
//! | `mysql_table` | a table of locks on MariaDB (feature `peers`) |
//! | `redis_set` | `SET NX PX` with polling (feature `peers`) |
//! | `redisson` | Redisson's RLock on Redis (feature `peers`) |
//! | `redlock` | Redlock over several Redis processes (feature `peers`) |
//! | [`zookeeper_client`] | the lock of the crate zookeeper-client |
//!
//! The locks on Redis share `redis_link` (connections), `redis_channel` (messages) and `hash_lock`
//! (the scripts of Redisson and its imitation). `plain` has contenders for locks that are a mutex
//! without tokens.
//!
//! Each contender has its own connection and session: sharing one would make the result too good,
//! and the judge refuses such a run.

use std::{pin::Pin, time::Duration};

use serde::Serialize;

use crate::Error;

pub mod curator;
#[cfg(feature = "peers")]
pub mod etcd;
#[cfg(feature = "peers")]
pub mod get_lock;
#[cfg(feature = "peers")]
mod hash_lock;
#[cfg(feature = "peers")]
pub mod jedis_imitation;
#[cfg(feature = "peers")]
mod mariadb;
#[cfg(feature = "peers")]
pub mod mysql_table;
mod plain;
pub mod recipes;
#[cfg(feature = "peers")]
mod redis_channel;
#[cfg(feature = "peers")]
mod redis_link;
#[cfg(feature = "peers")]
pub mod redis_set;
#[cfg(feature = "peers")]
pub mod redisson;
#[cfg(feature = "peers")]
pub mod redlock;
mod simple;
pub mod zookeeper_client;

/// The future of a lock's operation, boxed so that locks of all kinds fit behind one trait.
pub type Doing<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A lock service with an algorithm; it creates contenders.
pub trait LockUnderTest: Send + Sync {
    /// The name in tables, of algorithm and server: `recipes on minikeeper`.
    fn name(&self) -> String;

    /// Which holds exclude one another; those of a mutex by default.
    fn kind(&self) -> Kind {
        Kind::Mutex
    }

    /// What its authors promise.
    fn promises(&self) -> Promises;

    /// Creates a contender for the lock with this name, with its own connection and session.
    fn contender<'a>(&'a self, resource: &'a str) -> Doing<'a, Result<Box<dyn Contender>, Error>>;
}

/// A contender for a lock. It holds the lock at most once at a time.
pub trait Contender: Send {
    /// The identity by which the server distinguishes it: the id of a session, a client or a
    /// connection.
    fn session(&self) -> String;

    /// Acquires the lock, waiting without a time limit.
    fn acquire(&mut self, access: Access) -> Doing<'_, Result<Grant, LockFailure>>;

    /// Acquires the lock, waiting for at most `limit`; zero means one try. Returns `None` if the
    /// lock is certainly not held and no entry is left in a queue.
    fn acquire_within(
        &mut self,
        access: Access,
        limit: Duration,
    ) -> Doing<'_, Result<Option<Grant>, LockFailure>>;

    /// The client library's answer, without asking a server.
    fn belief(&self) -> Belief;

    /// Releases the lock and waits until the server has confirmed it.
    fn release(&mut self) -> Doing<'_, Result<(), LockFailure>>;
}

/// Which holds exclude one another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// One holder.
    Mutex,
    /// One writer or many readers.
    ReadWrite,
    /// Up to this number of holders.
    Semaphore(u32),
}

/// How a lock is to be held. A mutex and a semaphore only have [`Exclusive`](Self::Exclusive).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// The whole lock, or one lease of a semaphore.
    Exclusive,
    /// Together with other readers.
    Shared,
}

/// The result of a successful acquire.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Grant {
    /// A number that grows with every grant, if the lock has one.
    pub token: Option<u64>,
}

/// A client library's answer about a lock it acquired.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Belief {
    /// It is held.
    Held,
    /// It may be lost, and another contender may hold it.
    Unsure,
    /// It is lost, or was never held.
    Lost,
    /// The library cannot be asked.
    NoAnswer,
}

/// The failure of an operation, by what is known afterwards.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum LockFailure {
    /// The lock is not held: it was lost before, or another contender holds it.
    #[error("not held: {0}")]
    NotHeld(String),
    /// It is unknown whether the server carried out the operation. The lock may be held until its
    /// session or lease ends.
    #[error("outcome unknown: {0}")]
    Unknown(String),
}

/// The promises of a lock's authors; from its documentation, not measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Promises {
    /// The order in which waiting contenders get it.
    pub fairness: Fairness,
    /// How much of its state survives a crash of the server.
    pub durability: &'static str,
    /// How soon a dead holder's lock is free.
    pub death: &'static str,
    /// Whether grants have numbers by which a resource can refuse late writers.
    pub has_token: bool,
}

/// The order in which waiting contenders get a lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub enum Fairness {
    /// First come, first served.
    #[serde(rename = "FIFO")]
    Fifo,
    /// None: the contender that asks at the right moment gets it.
    #[serde(rename = "none")]
    None,
}
