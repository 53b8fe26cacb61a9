//! Locks of every kind behind one trait, so that one harness measures and judges all of them.
//!
//! | module | lock |
//! | --- | --- |
//! | [`curator`] | Apache Curator in Java, a process of its own |
//! | `etcd` | etcd's own lock (feature `peers`) |
//! | `get_lock` | MariaDB's `GET_LOCK` (feature `peers`) |
//! | `jedis_imitation` | an imitation of Redisson with known defects, for the judge (feature `peers`) |
//! | [`recipes`] | this project's recipes and its hand-written locks, on anything that speaks ZooKeeper's protocol |
//! | `mysql_table` | a table of locks on MariaDB (feature `peers`) |
//! | `redis_set` | `SET NX PX` with polling (feature `peers`) |
//! | `redisson` | Redisson's RLock on Redis (feature `peers`) |
//! | `redlock` | Redlock over several Redis processes (feature `peers`) |
//! | [`zookeeper_client`] | the lock of the crate zookeeper-client |
//!
//! The locks on Redis share `redis_link` (connections), `redis_channel` (messages) and `hash_lock`
//! (the scripts of Redisson and its imitation). `plain` is for contenders whose lock is a mutex
//! without tokens.
//!
//! Each contender has a connection and a session of its own: contenders that share one flatter the
//! result, and the judge refuses such a run.

use std::{pin::Pin, time::Duration};

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
pub mod zookeeper_client;

/// What an operation of a lock returns: boxed, so that locks of all kinds fit behind one trait.
pub type Doing<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A lock service with an algorithm: what contenders are made of.
pub trait LockUnderTest: Send + Sync {
    /// Algorithm and server as tables name them: `recipes on minikeeper`.
    fn name(&self) -> String;

    /// What excludes what. A mutex, where nothing else is said.
    fn kind(&self) -> Kind {
        Kind::Mutex
    }

    /// What its authors say about it.
    fn promises(&self) -> Promises;

    /// One who wants the lock of this name, with a connection and a session of its own.
    fn contender<'a>(&'a self, resource: &'a str) -> Doing<'a, Result<Box<dyn Contender>, Error>>;
}

/// One who wants a lock. Holds it at most once at a time.
pub trait Contender: Send {
    /// What the server tells it from others by: a session's id, a client's id, a connection's.
    fn session(&self) -> String;

    /// Acquires the lock, waiting without a time limit.
    fn acquire(&mut self, access: Access) -> Doing<'_, Result<Grant, LockFailure>>;

    /// Waits so long at most; zero means to try once. `None`: certainly not held, nothing is left
    /// behind in a queue.
    fn acquire_within(
        &mut self,
        access: Access,
        limit: Duration,
    ) -> Doing<'_, Result<Option<Grant>, LockFailure>>;

    /// What the client library says, without asking a server.
    fn belief(&self) -> Belief;

    /// Gives it back and waits until the server has said so.
    fn release(&mut self) -> Doing<'_, Result<(), LockFailure>>;
}

/// What excludes what.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// One holder.
    Mutex,
    /// One writer or many readers.
    ReadWrite,
    /// So many holders.
    Semaphore(u32),
}

/// What is wanted of a lock. A mutex and a semaphore know [`Exclusive`](Self::Exclusive) only.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// The whole lock, or one lease of a semaphore.
    Exclusive,
    /// Beside other readers.
    Shared,
}

/// The lock was got.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Grant {
    /// A number that is larger with every grant, where the lock has one.
    pub token: Option<u64>,
}

/// What a client library says about a lock it got.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
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

/// An operation that failed, by what is known after it.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum LockFailure {
    /// Nothing is held: the lock was lost before, or another contender holds it.
    #[error("not held: {0}")]
    NotHeld(String),
    /// It is unknown whether the server carried it out. The lock may be held until its session or
    /// lease ends.
    #[error("outcome unknown: {0}")]
    Unknown(String),
}

/// What the authors of a lock say about it; from its documentation, not measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Promises {
    /// In what order waiting contenders get it.
    pub fairness: Fairness,
    /// What of it survives a crash of the server.
    pub durability: &'static str,
    /// How soon a dead holder's lock is free.
    pub death: &'static str,
    /// Whether grants carry numbers that a resource can refuse late writers by.
    pub has_token: bool,
}

/// In what order waiting contenders get a lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fairness {
    /// First come, first served.
    Fifo,
    /// None: the contender that asks at the right moment gets it.
    None,
}
