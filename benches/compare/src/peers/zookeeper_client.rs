//! The lock of the crate zookeeper-client, under Curator's names, so that it stands in one queue
//! with Curator's and ours.
//!
//! What the crate does not offer, and what is done about it here:
//!
//! - Its guard releases the lock in the background when dropped, so a caller cannot wait for it.
//!   Here the adapter deletes its znode and waits for that, as with the others.
//! - It says that a lock can be timed by dropping the call. Under Curator's names a call that is
//!   dropped, or that fails, while its znode is being created leaves that znode in the queue for as
//!   long as the session lives (`docs/client.md` section 2, E1). Here, after each call that did not
//!   get the lock, the ephemeral znodes which the session has in the lock's folder are asked for
//!   and deleted: one request more, and a delete if one is left.
//! - It has no try. Here the adapter lists the folder first; if it is not empty, the try fails.
//!   Otherwise it acquires the lock, and gives up after [`TRY_LIMIT`] if another contender came
//!   first.
//! - It drops what the server said of the znode, so that a fencing token would cost a request more:
//!   there is none.
//!
//! Source: `docs/client.md` section 2, E1 and E2b; the crate's documentation of `Client::lock`.

use std::{fmt, net::SocketAddr, time::Duration};

use zookeeper_client::{
    Acls, Client, CreateMode, Error as ClientError, LockOptions, LockPrefix, SessionState,
};

use super::{
    Belief, Contender, Doing, Fairness, LockFailure, LockUnderTest, Promises, plain::Plain,
};
use crate::Error;

/// How long a try waits that found the queue empty.
pub const TRY_LIMIT: Duration = Duration::from_millis(100);

/// How often a release is sent again after the connection was lost, as the crate's own guard does
/// without an end.
const RELEASES_MAX: u32 = 10;

/// The crate's lock on a server.
#[derive(Clone, Debug)]
pub struct ZookeeperClient {
    /// What it stands on, as in tables: `minikeeper`, `ZooKeeper 3.8.0 kindest`.
    pub server: String,
    /// What the server keeps through a crash.
    pub durability: &'static str,
    /// Where.
    pub addr: SocketAddr,
    /// What is asked for; the server may grant another.
    pub session_timeout: Duration,
}

impl LockUnderTest for ZookeeperClient {
    fn name(&self) -> String {
        format!("zookeeper-client on {}", self.server)
    }

    fn promises(&self) -> Promises {
        Promises {
            fairness: Fairness::Fifo,
            durability: self.durability,
            death: "session timeout",
            has_token: false,
        }
    }

    fn contender<'a>(&'a self, resource: &'a str) -> Doing<'a, Result<Box<dyn Contender>, Error>> {
        Box::pin(async move {
            let connector = Client::connector().with_session_timeout(self.session_timeout);
            let client = connector.connect(&self.addr.to_string()).await;
            let client = client.map_err(|error| {
                Error::Unexpected(format!("zookeeper-client on {}: {error}", self.addr))
            })?;
            Ok(Box::new(One {
                client,
                folder: format!("/bench/{resource}"),
                held: None,
            }) as _)
        })
    }
}

/// One who wants the lock.
struct One {
    client: Client,
    /// Where the queue is.
    folder: String,
    /// The path of the znode that is the lock.
    held: Option<String>,
}

impl One {
    async fn enter(&mut self) -> Result<(), ClientError> {
        let prefix = LockPrefix::new_curator(&self.folder, "lock-")?;
        let parents = CreateMode::Container.with_acls(Acls::anyone_all());
        let options = LockOptions::new(Acls::anyone_all()).with_ancestor_options(parents)?;
        let lock = self.client.lock(prefix, b"", options).await?;
        self.held = Some(lock.lock_path().to_owned());
        // Dropped it would delete the znode a second time, after the release. What is forgotten is
        // the path once more.
        std::mem::forget(lock);
        Ok(())
    }

    /// Deletes what the session has in the queue; it holds nothing at this time.
    async fn leave(&self) -> Result<(), ClientError> {
        let inside = format!("{}/", self.folder);
        for path in self.client.list_ephemerals(&self.folder).await? {
            // The server knows of beginnings, not of folders.
            if !path.starts_with(&inside) {
                continue;
            }
            match self.client.delete(&path, None).await {
                // The crate deletes in the background what it knows of.
                Ok(()) | Err(ClientError::NoNode) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// What is known after a call that failed.
    async fn failure(&self, error: ClientError) -> LockFailure {
        let is_gone = error == ClientError::SessionExpired || self.leave().await.is_ok();
        if is_gone || self.client.state() == SessionState::Expired {
            LockFailure::NotHeld(error.to_string())
        } else {
            LockFailure::Unknown(error.to_string())
        }
    }

    /// The call, or its being dropped after the limit, whichever comes first.
    async fn enter_within(&mut self, limit: Duration) -> Result<bool, LockFailure> {
        match tokio::time::timeout(limit, self.enter()).await {
            Ok(Ok(())) => Ok(true),
            Ok(Err(error)) => Err(self.failure(error).await),
            Err(_) => match self.leave().await {
                Ok(()) => Ok(false),
                Err(error) => Err(unknown(error)),
            },
        }
    }

    async fn is_queue_empty(&self) -> Result<bool, ClientError> {
        match self.client.check_stat(&self.folder).await? {
            Some(stat) => Ok(stat.num_children == 0),
            None => Ok(true),
        }
    }
}

impl Plain for One {
    fn session(&self) -> String {
        format!("0x{:x}", self.client.session_id().0)
    }

    async fn lock(&mut self, limit: Option<Duration>) -> Result<bool, LockFailure> {
        match limit {
            None => match self.enter().await {
                Ok(()) => Ok(true),
                Err(error) => Err(self.failure(error).await),
            },
            Some(Duration::ZERO) => match self.is_queue_empty().await {
                Ok(true) => self.enter_within(TRY_LIMIT).await,
                Ok(false) => Ok(false),
                // Nothing was asked for.
                Err(error) => Err(LockFailure::NotHeld(error.to_string())),
            },
            Some(limit) => self.enter_within(limit).await,
        }
    }

    fn belief(&self) -> Belief {
        if self.held.is_none() {
            return Belief::Lost;
        }
        match self.client.state_watcher().peek_state() {
            SessionState::SyncConnected => Belief::Held,
            state if state.is_terminated() => Belief::Lost,
            _ => Belief::Unsure,
        }
    }

    async fn unlock(&mut self) -> Result<(), LockFailure> {
        let Some(path) = self.held.take() else {
            return Err(LockFailure::NotHeld("nothing was acquired".into()));
        };
        let mut is_repeated = false;
        for _ in 0..RELEASES_MAX {
            match self.client.delete(&path, None).await {
                Ok(()) => return Ok(()),
                // The one before has done it, and its answer was lost.
                Err(ClientError::NoNode) if is_repeated => return Ok(()),
                Err(error @ (ClientError::NoNode | ClientError::SessionExpired)) => {
                    return Err(LockFailure::NotHeld(error.to_string()));
                }
                Err(ClientError::ConnectionLoss) => is_repeated = true,
                Err(error) => return Err(unknown(error)),
            }
        }
        Err(unknown("the connection was lost again and again"))
    }
}

fn unknown(error: impl fmt::Display) -> LockFailure {
    LockFailure::Unknown(error.to_string())
}
