//! Redisson's RLock on Redis.
//!
//! A contender stands for a process with one thread: it has its own renewal and its own
//! subscription. Not imitated: Redisson repeats a command without a reply.
//!
//! Source: `docs/curator-recipes.md` section 13.6.

use std::{net::SocketAddr, time::Duration};

use tokio::{
    task::JoinHandle,
    time::{sleep, timeout},
};

use super::{
    Belief, Contender, Doing, Fairness, LockFailure, LockUnderTest, Promises, hash_lock::HashLock,
    plain::Plain, redis_channel::Channel,
};
use crate::{Error, clock::Deadline, note};

/// Redisson's default of `lockWatchdogTimeout`.
pub const WATCHDOG_LEASE: Duration = Duration::from_secs(30);

/// How long a hold lasts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lease {
    /// This time, renewed by a watchdog after every third of it. Default: [`WATCHDOG_LEASE`].
    Watched(Duration),
    /// This time, without renewal.
    Fixed(Duration),
}

impl Default for Lease {
    fn default() -> Self {
        Self::Watched(WATCHDOG_LEASE)
    }
}

impl Lease {
    const fn length(self) -> Duration {
        match self {
            Self::Watched(lease) | Self::Fixed(lease) => lease,
        }
    }
}

/// RLock on one Redis.
#[derive(Clone, Debug)]
pub struct Redisson {
    /// The server's name in tables: `Redis 7.0.15`.
    pub server: String,
    /// What survives a crash of the server.
    pub durability: &'static str,
    /// The server's address.
    pub addr: SocketAddr,
    /// How long a hold lasts.
    pub lease: Lease,
}

impl Redisson {
    /// Creates a contender with all operations of an RLock.
    ///
    /// # Errors
    /// If the server cannot be reached.
    pub async fn open(&self, resource: &str) -> Result<RLock, Error> {
        let channel = format!("redisson_lock__channel:{{{resource}}}");
        let opening = HashLock::open(self.addr, resource, channel, self.lease.length());
        let (link, channel) = opening.await?;
        Ok(RLock {
            link,
            channel,
            lease: self.lease,
            holds: 0,
            renewal: None,
        })
    }
}

impl LockUnderTest for Redisson {
    fn name(&self) -> String {
        format!("Redisson RLock on {}", self.server)
    }

    fn promises(&self) -> Promises {
        Promises {
            fairness: Fairness::None,
            durability: self.durability,
            death: "lease",
            has_token: false,
        }
    }

    fn contender<'a>(&'a self, resource: &'a str) -> Doing<'a, Result<Box<dyn Contender>, Error>> {
        Box::pin(async move { Ok(Box::new(self.open(resource).await?) as _) })
    }
}

/// A contender for an RLock, which is re-entrant.
///
/// Dropping it while it holds the lock is like the death of its process: the lock is free when the
/// lease ends.
pub struct RLock {
    link: HashLock,
    channel: Channel,
    lease: Lease,
    /// How often it was acquired and not released, as far as this contender knows.
    holds: u32,
    renewal: Option<Renewal>,
}

impl RLock {
    fn count(&mut self) {
        self.holds += 1;
        let Lease::Watched(_) = self.lease else {
            return;
        };
        match &mut self.renewal {
            Some(renewal) if !renewal.task.is_finished() => renewal.holds += 1,
            _ => {
                let task = tokio::spawn(renew(self.link.clone()));
                self.renewal = Some(Renewal { holds: 1, task });
            }
        }
    }

    /// Counts one hold fewer; the watchdog ends with the last one.
    fn uncount(&mut self) {
        self.holds = self.holds.saturating_sub(1);
        if let Some(renewal) = &mut self.renewal {
            renewal.holds -= 1;
            if renewal.holds == 0 {
                self.renewal = None;
            }
        }
    }

    /// Acquires the lock again if it is still held; each acquire needs a release. Returns false if
    /// another contender holds it.
    ///
    /// # Errors
    /// If the server did not reply, or refused.
    pub async fn acquire_again(&mut self) -> Result<bool, LockFailure> {
        let is_held = self.link.lock().await?.is_none();
        if is_held {
            self.count();
        }
        Ok(is_held)
    }

    /// Returns how often this contender holds the lock, by the server's count.
    ///
    /// # Errors
    /// If the server did not reply, or refused.
    pub async fn hold_count(&mut self) -> Result<u32, LockFailure> {
        Ok(self.link.holds().await?)
    }

    /// Returns whether any contender holds it.
    ///
    /// # Errors
    /// If the server did not reply, or refused.
    pub async fn is_locked(&mut self) -> Result<bool, LockFailure> {
        Ok(self.link.is_locked().await?)
    }

    /// Asks the server whether this contender holds the lock.
    ///
    /// # Errors
    /// If the server did not reply, or refused.
    pub async fn is_held_by_me(&mut self) -> Result<bool, LockFailure> {
        Ok(self.hold_count().await? > 0)
    }

    /// Returns the rest of the holder's lease in milliseconds; -1 if it does not end, -2 if the
    /// lock is free.
    ///
    /// # Errors
    /// If the server did not reply, or refused.
    pub async fn remaining_ms(&mut self) -> Result<i64, LockFailure> {
        Ok(self.link.left_ms().await?)
    }

    /// Frees the lock, whoever holds it, and ends this contender's watchdog. Returns false if it
    /// was free.
    ///
    /// # Errors
    /// If the server did not reply, or refused.
    pub async fn force_unlock(&mut self) -> Result<bool, LockFailure> {
        self.renewal = None;
        self.holds = 0;
        Ok(self.link.force().await?)
    }

    /// Whether a watchdog renews the lease.
    #[must_use]
    pub fn is_watched(&self) -> bool {
        let renewal = self.renewal.as_ref();
        renewal.is_some_and(|renewal| !renewal.task.is_finished())
    }
}

impl Plain for RLock {
    fn session(&self) -> String {
        self.link.owner().to_owned()
    }

    async fn lock(&mut self, limit: Option<Duration>) -> Result<bool, LockFailure> {
        let is_held = wait(&mut self.link, &mut self.channel, limit).await?;
        if is_held {
            self.count();
        }
        Ok(is_held)
    }

    /// Redisson always asks the server; it has no answer without it.
    fn belief(&self) -> Belief {
        match self.holds {
            0 => Belief::Lost,
            _ => Belief::NoAnswer,
        }
    }

    async fn unlock(&mut self) -> Result<(), LockFailure> {
        match self.link.unlock().await {
            Ok(Some(_)) => {
                self.uncount();
                Ok(())
            }
            Ok(None) => {
                // The watchdog keeps running; it ends when it finds that the lock is not ours.
                self.holds = 0;
                Err(self.link.not_mine())
            }
            Err(error) => {
                self.uncount();
                Err(error.into())
            }
        }
    }
}

/// Waits until the lock is held. Returns false if the time is over, including the time of all
/// requests.
async fn wait(
    link: &mut HashLock,
    channel: &mut Channel,
    limit: Option<Duration>,
) -> Result<bool, LockFailure> {
    let deadline = limit.map(|limit| Deadline::new(limit, "lock"));
    let left = || deadline.as_ref().map(Deadline::left);
    if link.lock().await?.is_none() {
        return Ok(true);
    }
    let subscribing = channel.subscribe();
    let subscribed = match left() {
        None => subscribing.await,
        Some(Duration::ZERO) => return Ok(false),
        Some(left) => match timeout(left, subscribing).await {
            Ok(subscribed) => subscribed,
            Err(_) => return Ok(false),
        },
    };
    let subscription = subscribed.map_err(|error| LockFailure::NotHeld(error.to_string()))?;
    loop {
        if left() == Some(Duration::ZERO) {
            return Ok(false);
        }
        let Some(remaining_ms) = link.lock().await? else {
            return Ok(true);
        };
        // Negative: the other hold does not end by itself, so only a message wakes the waiter.
        let remaining = u64::try_from(remaining_ms).ok().map(Duration::from_millis);
        let pause = match (remaining, left()) {
            (_, Some(Duration::ZERO)) => return Ok(false),
            (Some(remaining), Some(left)) => Some(remaining.min(left)),
            (one, other) => one.or(other),
        };
        subscription.message(pause).await?;
    }
}

/// The watchdog of one lock; ends when dropped.
struct Renewal {
    holds: u32,
    task: JoinHandle<()>,
}

impl Drop for Renewal {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Renews until the lock is not the owner's any more, or a renewal fails.
async fn renew(mut link: HashLock) {
    let pause = link.renewal_pause();
    loop {
        sleep(pause).await;
        match link.renew().await {
            Ok(true) => {}
            Ok(false) => return,
            Err(error) => {
                note(&format!("watchdog of lock {:?} ends: {error}", link.key()));
                return;
            }
        }
    }
}
