//! Redisson's RLock on Redis.
//!
//! A contender is a process with one thread: it has its own renewal and its own subscription. Not
//! imitated: Redisson sends a command that was not answered again.
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
    /// So long, and a watchdog renews it every third of that. Default: [`WATCHDOG_LEASE`].
    Watched(Duration),
    /// So long and no longer.
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
    /// What it stands on, as in tables: `Redis 7.0.15`.
    pub server: String,
    /// What the server keeps through a crash.
    pub durability: &'static str,
    /// Where.
    pub addr: SocketAddr,
    /// How long a hold lasts.
    pub lease: Lease,
}

impl Redisson {
    /// A contender with all that RLock can do.
    ///
    /// # Errors
    /// When the server cannot be reached.
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

/// A contender for an RLock; re-entrant.
///
/// Dropped while it holds the lock, it is as a process that died: the lock is free when its lease
/// ends.
pub struct RLock {
    link: HashLock,
    channel: Channel,
    lease: Lease,
    /// How often it was acquired and not released, as far as this side knows.
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

    /// One hold fewer; the watchdog ends with the last.
    fn uncount(&mut self) {
        self.holds = self.holds.saturating_sub(1);
        if let Some(renewal) = &mut self.renewal {
            renewal.holds -= 1;
            if renewal.holds == 0 {
                self.renewal = None;
            }
        }
    }

    /// Acquires the lock again if it is still held; each acquire needs a release. `false`: another
    /// contender holds it.
    ///
    /// # Errors
    /// When the server did not answer, or refused.
    pub async fn acquire_again(&mut self) -> Result<bool, LockFailure> {
        let is_held = self.link.lock().await?.is_none();
        if is_held {
            self.count();
        }
        Ok(is_held)
    }

    /// How often this contender holds it, as the server counts.
    ///
    /// # Errors
    /// When the server did not answer, or refused.
    pub async fn hold_count(&mut self) -> Result<u32, LockFailure> {
        Ok(self.link.holds().await?)
    }

    /// Returns whether any contender holds it.
    ///
    /// # Errors
    /// When the server did not answer, or refused.
    pub async fn is_locked(&mut self) -> Result<bool, LockFailure> {
        Ok(self.link.is_locked().await?)
    }

    /// Whether this contender holds it, as the server says.
    ///
    /// # Errors
    /// When the server did not answer, or refused.
    pub async fn is_held_by_me(&mut self) -> Result<bool, LockFailure> {
        Ok(self.hold_count().await? > 0)
    }

    /// What is left of the holder's lease. Unit: milliseconds; -1: without end, -2: not locked.
    ///
    /// # Errors
    /// When the server did not answer, or refused.
    pub async fn remaining_ms(&mut self) -> Result<i64, LockFailure> {
        Ok(self.link.left_ms().await?)
    }

    /// Frees it for any holder, and ends the own watchdog. `false`: it was free.
    ///
    /// # Errors
    /// When the server did not answer, or refused.
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

    /// Redisson asks the server, always: of what it got it says nothing by itself.
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
                // The watchdog is left alone; it ends when it finds that the lock is not ours.
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

/// Waits until the lock is held, or the time is over: `false`. All that takes time counts.
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
        // Negative: the other's hold has no end, and only a message tells of it.
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

/// Renews until the lock is not the owner's, or once fails.
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
