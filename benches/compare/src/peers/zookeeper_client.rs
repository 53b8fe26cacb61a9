//! The lock of the crate zookeeper-client with Curator's names, so that it shares its queue with
//! Curator's locks and ours.
//!
//! The crate lacks some features, for which this adapter makes up:
//!
//! - Its guard releases the lock in the background when dropped, so a caller cannot wait for it.
//!   The adapter deletes its znode and waits for that, as with the other locks.
//! - Its documentation says that dropping the call limits its time. With Curator's names, a call
//!   that is dropped or fails while its znode is being created leaves that znode in the queue for
//!   as long as the session lives (`docs/client.md` section 2, E1). After each call that did not
//!   get the lock, the adapter lists the session's ephemeral znodes in the lock's folder and
//!   deletes them: one more request, and a delete if one is left.
//! - It has no try. The adapter reads the folder's number of children first; if it is not empty,
//!   the try fails. Otherwise it acquires the lock, and gives up after [`TRY_LIMIT`] if another
//!   contender came first.
//! - It drops the znode's stat, so that a fencing token would cost one more request: there is none.
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

/// How long a try waits after it found the queue empty.
pub const TRY_LIMIT: Duration = Duration::from_millis(100);

/// How often a release is sent if the connection is lost; the crate's own guard repeats it without
/// a limit.
const RELEASES_MAX: u32 = 10;

/// The crate's lock on a server.
#[derive(Clone, Debug)]
pub struct ZookeeperClient {
    /// The server's name in tables: `minikeeper`, `ZooKeeper 3.8.0 kindest`.
    pub server: String,
    /// What survives a crash of the server.
    pub durability: &'static str,
    /// The server's address.
    pub addr: SocketAddr,
    /// The requested time-out; the server may grant another.
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

/// A contender.
struct One {
    client: Client,
    /// The parent of the queue.
    folder: String,
    /// The path of this contender's znode while it holds the lock.
    held: Option<String>,
}

impl One {
    async fn enter(&mut self) -> Result<(), ClientError> {
        let prefix = LockPrefix::new_curator(&self.folder, "lock-")?;
        let parents = CreateMode::Container.with_acls(Acls::anyone_all());
        let options = LockOptions::new(Acls::anyone_all()).with_ancestor_options(parents)?;
        let lock = self.client.lock(prefix, b"", options).await?;
        self.held = Some(lock.lock_path().to_owned());
        // Dropping it would delete the znode a second time, after the release. This leaks only a
        // copy of the path.
        std::mem::forget(lock);
        Ok(())
    }

    /// Deletes the session's znodes in the queue; it holds nothing at this time.
    async fn leave(&self) -> Result<(), ClientError> {
        let inside = format!("{}/", self.folder);
        for path in self.client.list_ephemerals(&self.folder).await? {
            // The server compares prefixes, not folders.
            if !path.starts_with(&inside) {
                continue;
            }
            match self.client.delete(&path, None).await {
                // The crate deletes known znodes in the background.
                Ok(()) | Err(ClientError::NoNode) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// The failure of a call, by what is known after it.
    async fn failure(&self, error: ClientError) -> LockFailure {
        let is_gone = error == ClientError::SessionExpired || self.leave().await.is_ok();
        if is_gone || self.client.state() == SessionState::Expired {
            LockFailure::NotHeld(error.to_string())
        } else {
            LockFailure::Unknown(error.to_string())
        }
    }

    /// Runs the call, and drops it after the limit.
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
                // No lock was requested.
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
                // The previous request has deleted it, and its reply was lost.
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
