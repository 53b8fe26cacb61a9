//! This project's recipes and its hand-written locks, on any server with ZooKeeper's protocol.

use std::{fmt, net::SocketAddr, sync::Arc, time::Duration};

use minikeeper::Server;
use minikeeper_client::{Client, Connecting};
use minikeeper_recipes::{
    Acquire, Guard, InterProcessMultiLock, InterProcessMutex, InterProcessReadWriteLock,
    InterProcessSemaphoreMutex, InterProcessSemaphoreV2, Lease, LockError, LockOptions, MultiGuard,
    Released, Status, WriteGuard,
};

use super::{
    Access, Belief, Contender, Doing, Fairness, Grant, Kind, LockFailure, LockUnderTest, Promises,
    simple::{self, SimpleLock},
};
use crate::Error;

/// How often [`Algorithm::Polling`] tries.
pub const POLLING_INTERVAL: Duration = Duration::from_millis(10);

/// The kind of lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Algorithm {
    /// `InterProcessMutex` with default options.
    Mutex,
    /// The same, with guards that are dropped: the release is sent, but its reply not awaited.
    MutexDropped,
    /// `InterProcessMutex` with the same requests as Curator's.
    CuratorExact,
    /// `InterProcessReadWriteLock`.
    ReadWrite,
    /// `InterProcessSemaphoreV2` with this number of leases.
    Semaphore(u32),
    /// `InterProcessSemaphoreMutex`.
    SemaphoreMutex,
    /// `InterProcessMultiLock` of three mutexes.
    MultiLock,
    /// Written by hand: one znode, which contenders try to create every [`POLLING_INTERVAL`].
    Polling,
    /// Written by hand: one znode, which all contenders watch.
    Herd,
    /// Written by hand: a queue of znodes without an identity in their names.
    Sequential,
}

/// The way to the server.
#[derive(Clone)]
pub enum Reach {
    /// At this address.
    Tcp(SocketAddr),
    /// In this process, without a socket.
    InProcess(Arc<Server>),
}

impl fmt::Debug for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(addr) => addr.fmt(f),
            Self::InProcess(_) => f.write_str("in process"),
        }
    }
}

/// A recipe on a server.
#[derive(Clone, Debug)]
pub struct Recipe {
    /// The server's name in tables: `minikeeper`, `ZooKeeper 3.8 kindest`.
    pub server: String,
    /// What survives a crash of the server.
    pub durability: &'static str,
    /// The kind of lock.
    pub algorithm: Algorithm,
    /// The way to the server.
    pub reach: Reach,
    /// The requested time-out; the server may grant another.
    pub session_timeout: Duration,
}

impl Recipe {
    /// Creates a client with its own session.
    ///
    /// # Errors
    /// If no session is granted.
    pub async fn client(&self) -> Result<Client, Error> {
        let host = match &self.reach {
            Reach::Tcp(addr) => addr.to_string(),
            Reach::InProcess(_) => "in-process".to_owned(),
        };
        let mut builder = Client::builder(&host)
            .map_err(failed)?
            .session_timeout(self.session_timeout);
        if let Reach::InProcess(server) = &self.reach {
            let server = Arc::clone(server);
            builder = builder.transport(move |_: &str| -> Connecting {
                let (reader, writer) = tokio::io::split(server.local());
                Box::pin(async move { Ok((Box::new(reader) as _, Box::new(writer) as _)) })
            });
        }
        builder.connect().await.map_err(failed)
    }
}

fn failed(error: impl fmt::Display) -> Error {
    Error::Unexpected(error.to_string())
}

impl LockUnderTest for Recipe {
    fn name(&self) -> String {
        let algorithm = match self.algorithm {
            Algorithm::Mutex => "recipes",
            Algorithm::MutexDropped => "recipes, guard dropped",
            Algorithm::CuratorExact => "recipes, curator_exact",
            Algorithm::ReadWrite => "recipes, read-write",
            Algorithm::Semaphore(_) => "recipes, semaphore",
            Algorithm::SemaphoreMutex => "recipes, semaphore mutex",
            Algorithm::MultiLock => "recipes, multi-lock of 3",
            Algorithm::Polling => "simple, polling",
            Algorithm::Herd => "simple, herd",
            Algorithm::Sequential => "simple, sequential",
        };
        format!("{algorithm} on {}", self.server)
    }

    fn kind(&self) -> Kind {
        match self.algorithm {
            Algorithm::ReadWrite => Kind::ReadWrite,
            Algorithm::Semaphore(leases) => Kind::Semaphore(leases),
            _ => Kind::Mutex,
        }
    }

    fn promises(&self) -> Promises {
        Promises {
            fairness: match self.algorithm {
                Algorithm::Polling | Algorithm::Herd => Fairness::None,
                _ => Fairness::Fifo,
            },
            durability: self.durability,
            death: "session timeout",
            has_token: self.algorithm != Algorithm::MultiLock,
        }
    }

    fn contender<'a>(&'a self, resource: &'a str) -> Doing<'a, Result<Box<dyn Contender>, Error>> {
        Box::pin(async move {
            let client = self.client().await?;
            let path = format!("/bench/{resource}");
            let lock = Lock::new(self.algorithm, client.clone(), &path).map_err(failed)?;
            Ok(Box::new(One {
                client,
                lock,
                is_dropped: self.algorithm == Algorithm::MutexDropped,
                held: None,
            }) as _)
        })
    }
}

/// A lock object of one of the algorithms.
enum Lock {
    Mutex(InterProcessMutex),
    ReadWrite(InterProcessReadWriteLock),
    Semaphore(InterProcessSemaphoreV2),
    SemaphoreMutex(InterProcessSemaphoreMutex),
    Multi(InterProcessMultiLock),
    Simple(SimpleLock),
}

impl Lock {
    fn new(
        algorithm: Algorithm,
        client: Client,
        path: &str,
    ) -> Result<Self, minikeeper_client::Error> {
        let simple = |client, algorithm| Self::Simple(SimpleLock::new(client, path, algorithm));
        Ok(match algorithm {
            Algorithm::Mutex | Algorithm::MutexDropped => {
                Self::Mutex(InterProcessMutex::new(client, path)?)
            }
            Algorithm::CuratorExact => {
                let options = LockOptions::curator_exact();
                Self::Mutex(InterProcessMutex::with_options(client, path, options)?)
            }
            Algorithm::ReadWrite => Self::ReadWrite(InterProcessReadWriteLock::new(client, path)?),
            Algorithm::Semaphore(leases) => {
                Self::Semaphore(InterProcessSemaphoreV2::new(client, path, leases)?)
            }
            Algorithm::SemaphoreMutex => {
                Self::SemaphoreMutex(InterProcessSemaphoreMutex::new(client, path)?)
            }
            Algorithm::MultiLock => {
                let members = [1, 2, 3].map(|member| format!("{path}-{member}"));
                Self::Multi(InterProcessMultiLock::from_paths(client, members)?)
            }
            Algorithm::Polling => simple(client, simple::Algorithm::Polling(POLLING_INTERVAL)),
            Algorithm::Herd => simple(client, simple::Algorithm::Herd),
            Algorithm::Sequential => simple(client, simple::Algorithm::Sequential),
        })
    }

    /// Acquires the lock; `None` when the limit passes first.
    async fn acquire(
        &self,
        access: Access,
        limit: Option<Duration>,
    ) -> Result<Option<Held>, LockFailure> {
        let held = match (self, access) {
            (Self::Mutex(lock), _) => limited(lock.acquire(), limit).await.map(Held::Guard),
            (Self::ReadWrite(lock), Access::Shared) => {
                limited(lock.acquire_read(), limit).await.map(Held::Guard)
            }
            (Self::ReadWrite(lock), Access::Exclusive) => {
                limited(lock.acquire_write(), limit).await.map(Held::Write)
            }
            (Self::Semaphore(lock), _) => limited(lock.acquire(), limit).await.map(Held::Lease),
            (Self::SemaphoreMutex(lock), _) => {
                limited(lock.acquire(), limit).await.map(Held::Guard)
            }
            (Self::Multi(lock), _) => limited(lock.acquire(), limit).await.map(Held::Multi),
            (Self::Simple(lock), _) => {
                let held = lock.acquire(limit).await;
                let held = held.map_err(|error| LockFailure::NotHeld(error.to_string()))?;
                return Ok(held.map(Held::Simple));
            }
        };
        match held {
            Ok(held) => Ok(Some(held)),
            Err(LockError::TimedOut { .. }) => Ok(None),
            Err(error) => Err(LockFailure::NotHeld(error.to_string())),
        }
    }
}

async fn limited<L, G>(
    acquire: Acquire<'_, L, G>,
    limit: Option<Duration>,
) -> Result<G, LockError> {
    match limit {
        Some(limit) => acquire.within(limit).await,
        None => acquire.await,
    }
}

/// The guard or lease of a lock that is held.
enum Held {
    Guard(Guard),
    Write(WriteGuard),
    Lease(Lease),
    Multi(MultiGuard),
    Simple(simple::Hold),
}

impl Held {
    fn grant(&self) -> Grant {
        let token = match self {
            Self::Guard(guard) => guard.token().czxid,
            Self::Write(guard) => guard.token().czxid,
            Self::Lease(lease) => lease.czxid().0,
            Self::Simple(hold) => hold.czxid,
            // One per member, with no order among them.
            Self::Multi(_) => return Grant { token: None },
        };
        Grant {
            token: u64::try_from(token).ok(),
        }
    }

    fn belief(&self) -> Belief {
        let status = match self {
            Self::Guard(guard) => guard.status(),
            Self::Write(guard) => guard.status(),
            Self::Lease(lease) => lease.status(),
            Self::Multi(guard) => guard.status(),
            Self::Simple(hold) => return hold.belief(),
        };
        match status {
            Status::Held => Belief::Held,
            Status::Suspended { .. } => Belief::Unsure,
            Status::Lost(_) => Belief::Lost,
        }
    }

    async fn release(self) -> Result<(), LockFailure> {
        let released = match self {
            Self::Guard(guard) => guard.release().await,
            Self::Write(guard) => guard.release().await,
            Self::Lease(lease) => lease.release().await,
            Self::Multi(guard) => guard.release().await,
            Self::Simple(hold) => return hold.release().await,
        };
        match released {
            Ok(Released::AlreadyGone) => Err(LockFailure::NotHeld("its znode is gone".into())),
            Ok(_) => Ok(()),
            Err(error) => Err(LockFailure::Unknown(error.to_string())),
        }
    }
}

struct One {
    client: Client,
    lock: Lock,
    is_dropped: bool,
    held: Option<Held>,
}

impl One {
    /// Keeps the guard and returns its grant.
    fn keep(&mut self, held: Held) -> Grant {
        let grant = held.grant();
        self.held = Some(held);
        grant
    }
}

impl Contender for One {
    fn session(&self) -> String {
        let id = self.client.session_id();
        id.map_or_else(String::new, |id| format!("0x{:x}", id.0))
    }

    fn acquire(&mut self, access: Access) -> Doing<'_, Result<Grant, LockFailure>> {
        Box::pin(async move {
            let held = self.lock.acquire(access, None).await?;
            let held = held.ok_or_else(|| LockFailure::NotHeld("its runtime ends".into()))?;
            Ok(self.keep(held))
        })
    }

    fn acquire_within(
        &mut self,
        access: Access,
        limit: Duration,
    ) -> Doing<'_, Result<Option<Grant>, LockFailure>> {
        Box::pin(async move {
            let held = self.lock.acquire(access, Some(limit)).await?;
            Ok(held.map(|held| self.keep(held)))
        })
    }

    fn belief(&self) -> Belief {
        self.held.as_ref().map_or(Belief::Lost, Held::belief)
    }

    fn release(&mut self) -> Doing<'_, Result<(), LockFailure>> {
        Box::pin(async move {
            let Some(held) = self.held.take() else {
                return Err(LockFailure::NotHeld("nothing was acquired".into()));
            };
            if self.is_dropped {
                return Ok(());
            }
            held.release().await
        })
    }
}
