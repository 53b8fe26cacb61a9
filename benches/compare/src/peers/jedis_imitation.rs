//! An imitation of Redisson's lock on a plain Redis client, as an article gives it. **It is broken
//! on purpose**: the judge must have something to find.
//!
//! The same scripts as Redisson, another prefix of the channel, and these defects, by their number
//! in the source:
//!
//! 1. What started the watchdog is never forgotten: the second hold of the same contender finds it
//!    and starts none, so that its lease ends under it. This breaks exclusion.
//! 3. The watchdog ends for ever at its first error, and does not look at what renewing answered:
//!    it goes on for a lock that is lost.
//! 4. Subscribing is not awaited: a message before it is lost, and its waiter sleeps until the
//!    other's lease has ended.
//! 6. A remaining time of 0, -1 or -2 is taken for no time: the contender asks again at once, and
//!    keeps the server busy.
//! 7. Release by a contender that does not hold it decrements the holds all the same, and so ends
//!    the watchdog of a hold.
//!
//! Not imitated: 2, a contender has one thread; 5, it has its own connections; 8, a waiting
//! contender here can give up after a time, so that the harness ends.
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
    /// What it stands on, as in tables: `Redis 7.0.15`.
    pub server: String,
    /// What the server keeps through a crash.
    pub durability: &'static str,
    /// Where.
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
    /// Defect 7: below zero after a release too many.
    holds: i64,
    /// Defect 1: never emptied.
    watchdog: Option<JoinHandle<()>>,
}

impl Drop for One {
    fn drop(&mut self) {
        // It stands for a process; a dead one renews nothing.
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
        let answer = self.link.unlock().await;
        // Defect 7: before the reply is evaluated.
        self.holds -= 1;
        if self.holds <= 0
            && let Some(watchdog) = &self.watchdog
        {
            // Defect 1: ended, but still there.
            watchdog.abort();
        }
        match answer {
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
        // Defect 6: without an end is taken for no time.
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
    // Defect 3: the answer says whether there is still something to renew.
    while let Ok(_ignored) = link.renew().await {
        sleep(pause).await;
    }
}
