//! Hand-written locks on a plain client, to compare the recipes with.
//!
//! They exclude other holders, but each has the weaknesses of its algorithm. They avoid other
//! defects: no wake-up is lost between a check and the wait, and a dropped future leaves no znode
//! behind.
//!
//! Source: `docs/curator-recipes.md` sections 13.1 to 13.3.

use std::time::Duration;

use minikeeper_client::{Client, ConnectionState, CreateMode, Epoch, Error, ErrorCode};
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::{Belief, LockFailure};
use crate::clock::tokio_now;

/// How long a try takes at most, whatever the limit: the time for its requests.
const TRY_LIMIT: Duration = Duration::from_millis(100);

/// The pause after the server refused a request for the moment.
const PAUSE: Duration = Duration::from_millis(20);

/// How long a contender waits for a connection.
const CONNECTED_WITHIN: Duration = Duration::from_secs(3_600);

/// The algorithm of a hand-written lock.
#[derive(Clone, Copy, Debug)]
pub(super) enum Algorithm {
    /// One ephemeral znode. The contender that creates it holds the lock; the others try again
    /// after this interval.
    ///
    /// Strength: one write if there is no other contender. Weaknesses: the lock may stay free for
    /// up to one interval, every waiting contender makes one failed write per interval, and a
    /// contender may never get the lock.
    Polling(Duration),
    /// The same, but waiting contenders watch the znode.
    ///
    /// Strength: with few contenders the next one gets the lock soon. Weakness: every release wakes
    /// all contenders, and all but one try in vain.
    Herd,
    /// A queue of ephemeral sequential znodes whose names are only their numbers. Each contender
    /// watches the one before it.
    ///
    /// Weakness: when the reply to a creation is lost, the contender cannot recognise its znode.
    /// The call fails, and the znode stays in the queue until the session ends.
    Sequential,
}

/// A hand-written lock.
#[derive(Debug)]
pub(super) struct SimpleLock {
    client: Client,
    path: String,
    algorithm: Algorithm,
}

impl SimpleLock {
    pub(super) fn new(client: Client, path: &str, algorithm: Algorithm) -> Self {
        let path = path.to_owned();
        Self {
            client,
            path,
            algorithm,
        }
    }

    /// Acquires the lock; `None` when the limit passes first.
    pub(super) async fn acquire(&self, limit: Option<Duration>) -> Result<Option<Hold>, Error> {
        let Some(limit) = limit else {
            return self.take(None).await;
        };
        let until = tokio_now() + limit;
        let taken = timeout(limit.max(TRY_LIMIT), self.take(Some(until))).await;
        taken.unwrap_or(Ok(None))
    }

    async fn take(&self, until: Option<Instant>) -> Result<Option<Hold>, Error> {
        if let Algorithm::Sequential = self.algorithm {
            return self.queue(until).await;
        }
        loop {
            if let Some(hold) = self.create(&self.path, CreateMode::Ephemeral).await? {
                return Ok(Some(hold));
            }
            if is_late(until) {
                return Ok(None);
            }
            match self.algorithm {
                Algorithm::Polling(interval) => sleep(interval).await,
                _ => match self.client.get_data_and_watch(&self.path).await {
                    Ok((_, deleted)) => drop(deleted.await),
                    Err(error) if error.is(ErrorCode::NoNode) => {}
                    Err(error) => pause(error).await?,
                },
            }
        }
    }

    /// Queues, and waits until no znode is before that of this contender.
    async fn queue(&self, until: Option<Instant>) -> Result<Option<Hold>, Error> {
        let prefix = format!("{}/", self.path);
        let Some(hold) = self
            .create(&prefix, CreateMode::EphemeralSequential)
            .await?
        else {
            return Ok(None);
        };
        loop {
            let before = match self.client.child_names(&self.path).await {
                Ok(names) => {
                    let names: Vec<_> =
                        names.iter().map(|name| format!("{prefix}{name}")).collect();
                    // The session ended, and the znode with it.
                    if !names.contains(&hold.path) {
                        let lost = hold.path.clone();
                        return Err(Error::answered("lock", lost, ErrorCode::NoNode));
                    }
                    // The numbers have equally many digits.
                    names.into_iter().filter(|name| *name < hold.path).max()
                }
                Err(error) => {
                    pause(error).await?;
                    continue;
                }
            };
            let Some(before) = before else {
                return Ok(Some(hold));
            };
            if is_late(until) {
                return Ok(None);
            }
            match self.client.exists_and_watch(&before).await {
                Ok((Some(_), deleted)) => match until {
                    Some(until) => drop(timeout_at(until, deleted).await),
                    None => drop(deleted.await),
                },
                Ok((None, _)) => {}
                Err(error) => pause(error).await?,
            }
        }
    }

    /// Creates a znode; `None` if another contender has created it. A task of its own does that: if
    /// the caller stops waiting, the task still finishes, and drops the hold.
    async fn create(&self, path: &str, mode: CreateMode) -> Result<Option<Hold>, Error> {
        let work = create(self.client.clone(), path.to_owned(), mode);
        // The task does not panic; its runtime may be shutting down.
        tokio::spawn(work).await.unwrap_or(Ok(None))
    }
}

fn is_late(until: Option<Instant>) -> bool {
    until.is_some_and(|until| tokio_now() >= until)
}

/// Waits before a request is repeated; returns an error that no retry changes.
async fn pause(error: Error) -> Result<(), Error> {
    if !error.is_retryable() {
        return Err(error);
    }
    sleep(PAUSE).await;
    Ok(())
}

async fn create(client: Client, path: String, mode: CreateMode) -> Result<Option<Hold>, Error> {
    let mut is_unanswered = false;
    loop {
        client.connected(CONNECTED_WITHIN).await?;
        let error = match client.create(&path, b"", mode).stamped().await {
            Ok(created) => {
                let (path, czxid) = (created.value.path, created.value.stat.czxid.0);
                return Ok(Some(Hold::new(client, path, czxid, created.epoch)));
            }
            Err(error) => error,
        };
        if error.is(ErrorCode::NodeExists) && is_unanswered {
            // It may be the znode of the request whose reply was lost.
            match client.exists(&path).stamped().await {
                Ok(found) => {
                    let is_own = |stat: &minikeeper_client::Stat| {
                        Some(stat.ephemeral_owner) == client.session_id()
                    };
                    let own = found.value.filter(is_own);
                    let epoch = found.epoch;
                    return Ok(own.map(|stat| Hold::new(client, path, stat.czxid.0, epoch)));
                }
                Err(error) => pause(error).await?,
            }
        } else if error.is(ErrorCode::NodeExists) {
            return Ok(None);
        } else if error.is(ErrorCode::NoNode) {
            make_parents(&client, &path).await?;
        } else if error.is_outcome_unknown() && mode == CreateMode::EphemeralSequential {
            return Err(error);
        } else {
            is_unanswered |= error.is_outcome_unknown();
            pause(error).await?;
        }
    }
}

async fn make_parents(client: &Client, path: &str) -> Result<(), Error> {
    for (end, _) in path.match_indices('/').skip(1) {
        match client
            .create(&path[..end], b"", CreateMode::Persistent)
            .await
        {
            Ok(_) => {}
            Err(error) if error.is(ErrorCode::NodeExists) => {}
            Err(error) => pause(error).await?,
        }
    }
    Ok(())
}

/// A lock that is held, or a place in the queue. Dropping it deletes the znode in the background.
#[derive(Debug)]
pub(super) struct Hold {
    client: Client,
    path: String,
    /// The fencing token: the zxid of the znode's creation.
    pub(super) czxid: i64,
    epoch: Epoch,
    is_released: bool,
}

impl Hold {
    const fn new(client: Client, path: String, czxid: i64, epoch: Epoch) -> Self {
        Self {
            client,
            path,
            czxid,
            epoch,
            is_released: false,
        }
    }

    pub(super) fn belief(&self) -> Belief {
        let status = self.client.status();
        let is_safe = status.safe_until.is_some_and(|until| tokio_now() < until);
        if !is_safe || status.state.epoch() != Some(self.epoch) {
            return Belief::Lost;
        }
        match status.state {
            ConnectionState::Suspended { .. } => Belief::Unsure,
            _ => Belief::Held,
        }
    }

    pub(super) async fn release(mut self) -> Result<(), LockFailure> {
        // In a later session the path may be that of the next holder.
        let client = self.client.in_epoch(self.epoch);
        let deleted = client.delete(&self.path, None).await;
        match deleted {
            Err(error) if error.is_outcome_unknown() => {
                return Err(LockFailure::Unknown(error.to_string()));
            }
            Err(error) if error.is_retryable() && self.belief() != Belief::Lost => {
                return Err(LockFailure::Unknown(error.to_string()));
            }
            _ => self.is_released = true,
        }
        deleted.map_err(|error| LockFailure::NotHeld(error.to_string()))
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        if !self.is_released {
            // The path is valid.
            let _ = self.client.clean_up(self.epoch, &self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use minikeeper::Server;

    use super::*;

    const ALGORITHMS: [Algorithm; 3] = [
        Algorithm::Polling(Duration::from_millis(5)),
        Algorithm::Herd,
        Algorithm::Sequential,
    ];

    /// Long enough for a contender to queue.
    const SETTLE: Duration = Duration::from_millis(50);

    const PATH: &str = "/bench/locks/a";

    async fn lock(server: &Server, algorithm: Algorithm) -> SimpleLock {
        let client = Client::connect(&server.connect_string()).await.unwrap();
        SimpleLock::new(client, PATH, algorithm)
    }

    /// Waits until no contender has a znode, in the one form or the other.
    async fn until_free(server: &Server) {
        let is_free = || {
            let is_empty = server.children(PATH).is_none_or(|names| names.is_empty());
            let owner = server.get(PATH).map(|(_, stat)| stat.ephemeral_owner.0);
            is_empty && owner.unwrap_or(0) == 0
        };
        timeout(Duration::from_secs(10), async {
            while !is_free() {
                sleep(Duration::from_millis(1)).await;
            }
        })
        .await
        .unwrap();
    }

    #[tokio::test]
    async fn lock_has_one_holder_at_a_time() {
        for algorithm in ALGORITHMS {
            let server = Server::builder().start().await.unwrap();
            let inside = AtomicUsize::new(0);
            let contend = async || {
                let lock = lock(&server, algorithm).await;
                for _ in 0..5 {
                    let hold = lock.acquire(None).await.unwrap().unwrap();
                    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "{algorithm:?}");
                    sleep(Duration::from_millis(1)).await;
                    inside.fetch_sub(1, Ordering::SeqCst);
                    assert_eq!(hold.belief(), Belief::Held);
                    hold.release().await.unwrap();
                }
            };
            tokio::join!(contend(), contend(), contend(), contend());
            until_free(&server).await;
        }
    }

    #[tokio::test]
    async fn acquire_gives_up_at_its_limit_and_leaves_nothing() {
        for algorithm in ALGORITHMS {
            let server = Server::builder().start().await.unwrap();
            let (first, second) = (
                lock(&server, algorithm).await,
                lock(&server, algorithm).await,
            );
            let hold = first.acquire(Some(Duration::ZERO)).await.unwrap().unwrap();
            for limit in [Duration::ZERO, SETTLE] {
                assert!(second.acquire(Some(limit)).await.unwrap().is_none());
            }
            // A call that is dropped while it waits.
            assert!(timeout(SETTLE, second.acquire(None)).await.is_err());
            drop(hold);
            until_free(&server).await;
        }
    }

    /// No znode was before its own, which was gone too, so the contender believed it had the lock.
    #[tokio::test]
    async fn waiting_contender_whose_session_expires_gets_no_lock() {
        let server = Server::builder().start().await.unwrap();
        let first = lock(&server, Algorithm::Sequential).await;
        let second = lock(&server, Algorithm::Sequential).await;
        let hold = first.acquire(None).await.unwrap().unwrap();
        let session = second.client.session_id().unwrap();
        let expire = async {
            let within = Duration::from_secs(10);
            server.until_children(PATH, 2, within).await.unwrap();
            server.expire(session).unwrap();
            drop(hold);
        };
        let (waited, ()) = tokio::join!(second.acquire(None), expire);
        assert!(waited.is_err());
    }

    #[tokio::test]
    async fn expired_holder_believes_no_longer_and_releases_nothing_of_the_next() {
        for algorithm in ALGORITHMS {
            let server = Server::builder().start().await.unwrap();
            let (first, second) = (
                lock(&server, algorithm).await,
                lock(&server, algorithm).await,
            );
            let lost = first.acquire(None).await.unwrap().unwrap();
            let session = first.client.session_id().unwrap();
            server.expire(session).unwrap();
            let next = second.acquire(None).await.unwrap().unwrap();
            assert!(next.czxid > lost.czxid);
            timeout(Duration::from_secs(10), async {
                while lost.belief() != Belief::Lost {
                    sleep(Duration::from_millis(1)).await;
                }
            })
            .await
            .unwrap();
            assert!(matches!(lost.release().await, Err(LockFailure::NotHeld(_))));
            next.release().await.unwrap();
        }
    }
}
