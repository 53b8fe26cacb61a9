//! An imitation of Redisson's lock on a plain Redis client, taken from an article. **It is broken
//! on purpose**: it tests the judge.
//!
//! It has Redisson's scripts, another prefix of the channel, and these defects, with their numbers
//! in the source:
//!
//! 1. The handle of the watchdog is never removed: the second hold of the same contender finds it
//!    and starts none, so its lease ends while it is held. This breaks exclusion.
//! 3. The watchdog ends for ever at its first error, and ignores the reply to a renewal: it keeps
//!    running for a lost lock.
//! 4. Subscribing is not awaited: a message before it is lost, and the waiter sleeps until the
//!    other lease has ended.
//! 6. A remaining time of 0, -1 or -2 is treated as no time: the contender asks again at once and
//!    keeps the server busy.
//! 7. A release by a contender that does not hold the lock still decrements the holds, and so ends
//!    the watchdog of a hold.
//!
//! Not imitated: 2, a contender has one thread; 5, it has its own connections; 8, a waiting
//! contender here can give up after a time, so that the bench ends.
//!
//! Source: `docs/curator-recipes.md` section 13.7.

use std::{net::SocketAddr, time::Duration};

use tokio::{task::JoinHandle, time::sleep};

use super::{
    Belief, Contender, Doing, Fairness, LockFailure, LockUnderTest, Promises, hash_lock::HashLock,
    plain::Plain, redis_channel::Channel,
};
use crate::{Error, clock::Deadline};

/// The article's lease.
pub const LEASE: Duration = Duration::from_secs(30);

/// The imitation on one Redis.
#[derive(Clone, Debug)]
pub struct JedisImitation {
    /// The server's name in tables: `Redis 7.0.15`.
    pub server: String,
    /// What survives a crash of the server.
    pub durability: &'static str,
    /// The server's address.
    pub addr: SocketAddr,
    /// How long a hold lasts without renewal. The article's: [`LEASE`].
    pub lease: Duration,
}

impl LockUnderTest for JedisImitation {
    fn name(&self) -> String {
        format!("imitation of RLock (broken) on {}", self.server)
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
        Box::pin(async move {
            let channel = format!("__red__lock:{resource}");
            let (link, channel) = HashLock::open(self.addr, resource, channel, self.lease).await?;
            Ok(Box::new(One {
                link,
                channel,
                holds: 0,
                watchdog: None,
            }) as _)
        })
    }
}

struct One {
    link: HashLock,
    channel: Channel,
    /// Defect 7: negative after one release too many.
    holds: i64,
    /// Defect 1: never removed.
    watchdog: Option<JoinHandle<()>>,
}

impl Drop for One {
    fn drop(&mut self) {
        // A contender stands for a process, and a dead process renews nothing.
        if let Some(watchdog) = &self.watchdog {
            watchdog.abort();
        }
    }
}

impl Plain for One {
    fn session(&self) -> String {
        self.link.owner().to_owned()
    }

    async fn lock(&mut self, limit: Option<Duration>) -> Result<bool, LockFailure> {
        let is_held = wait(&mut self.link, &mut self.channel, limit).await?;
        if is_held {
            self.holds += 1;
            if self.watchdog.is_none() {
                self.watchdog = Some(tokio::spawn(renew(self.link.clone())));
            }
        }
        Ok(is_held)
    }

    fn belief(&self) -> Belief {
        if self.holds > 0 {
            Belief::NoAnswer
        } else {
            Belief::Lost
        }
    }

    async fn unlock(&mut self) -> Result<(), LockFailure> {
        let reply = self.link.unlock().await;
        // Defect 7: before the reply is evaluated.
        self.holds -= 1;
        if self.holds <= 0
            && let Some(watchdog) = &self.watchdog
        {
            // Defect 1: ended, but still there.
            watchdog.abort();
        }
        match reply {
            Ok(Some(_)) => Ok(()),
            Ok(None) => Err(self.link.not_mine()),
            Err(error) => Err(error.into()),
        }
    }
}

async fn wait(
    link: &mut HashLock,
    channel: &mut Channel,
    limit: Option<Duration>,
) -> Result<bool, LockFailure> {
    let deadline = limit.map(|limit| Deadline::new(limit, "lock"));
    let left = || deadline.as_ref().map_or(Duration::MAX, Deadline::left);
    if link.lock().await?.is_none() {
        return Ok(true);
    }
    if left().is_zero() {
        return Ok(false);
    }
    // Defect 4.
    let subscription = channel.subscribe_unconfirmed().await;
    while !left().is_zero() {
        let Some(remaining_ms) = link.lock().await? else {
            return Ok(true);
        };
        // Defect 6: a lease without an end is treated as no time.
        let remaining = Duration::from_millis(u64::try_from(remaining_ms).unwrap_or(0));
        if !remaining.is_zero() {
            subscription.message(Some(remaining.min(left()))).await?;
        }
    }
    Ok(false)
}

/// Renews at once and then for ever, until the first error.
async fn renew(mut link: HashLock) {
    let pause = link.renewal_pause();
    // Defect 3: the reply says whether the lock is still held.
    while let Ok(_ignored) = link.renew().await {
        sleep(pause).await;
    }
}
