//! The lock that Redisson and its imitation keep in Redis: a hash with one field, the owner, whose
//! value counts the holds. It expires with its lease, and is changed only by scripts on the server.
//!
//! Source: `docs/curator-recipes.md` section 13.6.

use std::{net::SocketAddr, time::Duration};

use redis::{AsyncCommands as _, RedisResult, Script, aio::MultiplexedConnection};

use super::{
    LockFailure,
    redis_channel::Channel,
    redis_link::{connect, millis, setup_failed, unique},
};
use crate::Error;

/// How many times a watchdog renews within one lease.
const RENEWALS_PER_LEASE: u32 = 3;

/// The message an owner publishes when it releases the lock.
const UNLOCKED: &str = "0";

/// Keys: lock. Arguments: lease in ms, owner. Returns nil if acquired, else the rest of the other
/// owner's lease in ms: -1 if it does not end, -2 if it has just ended.
const LOCK: &str = "
local mine = redis.call('HEXISTS', KEYS[1], ARGV[2]) == 1
if mine or redis.call('EXISTS', KEYS[1]) == 0 then
    redis.call('HINCRBY', KEYS[1], ARGV[2], 1)
    redis.call('PEXPIRE', KEYS[1], ARGV[1])
    return false
end
return redis.call('PTTL', KEYS[1])
";

/// Keys: lock, channel. Arguments: lease in ms, owner, message. Returns nil if it is not the
/// owner's, 0 if holds remain, 1 if it is free.
const UNLOCK: &str = "
if redis.call('HEXISTS', KEYS[1], ARGV[2]) == 0 then
    return false
end
local holds = redis.call('HINCRBY', KEYS[1], ARGV[2], -1)
if holds > 0 then
    redis.call('PEXPIRE', KEYS[1], ARGV[1])
    return 0
end
redis.call('DEL', KEYS[1])
redis.call('PUBLISH', KEYS[2], ARGV[3])
return 1
";

/// Keys: lock. Arguments: lease in ms, owner. Returns 1 if it is the owner's and was extended.
const RENEW: &str = "
if redis.call('HEXISTS', KEYS[1], ARGV[2]) == 1 then
    return redis.call('PEXPIRE', KEYS[1], ARGV[1])
end
return 0
";

/// Keys: lock, channel. Arguments: message. Returns 1 if there was a lock.
const FORCE: &str = "
local existed = redis.call('DEL', KEYS[1])
if existed == 1 then
    redis.call('PUBLISH', KEYS[2], ARGV[1])
end
return existed
";

/// One owner's access to one lock.
#[derive(Clone)]
pub(super) struct HashLock {
    connection: MultiplexedConnection,
    key: String,
    channel: String,
    owner: String,
    lease: Duration,
    lock: Script,
    unlock: Script,
    renew: Script,
    force: Script,
}

impl HashLock {
    /// Opens a connection and another for the channel, and loads the scripts, so that the first
    /// acquire costs the same as later ones.
    pub(super) async fn open(
        addr: SocketAddr,
        resource: &str,
        channel: String,
        lease: Duration,
    ) -> Result<(Self, Channel), Error> {
        let failed = |error| setup_failed(addr, &error);
        let mut connection = connect(addr).await.map_err(failed)?;
        let [lock, unlock, renew, force] = [LOCK, UNLOCK, RENEW, FORCE].map(Script::new);
        for script in [&lock, &unlock, &renew, &force] {
            script.load_async(&mut connection).await.map_err(failed)?;
        }
        let link = Self {
            connection,
            key: resource.to_owned(),
            channel: channel.clone(),
            // The second part is the number of the thread.
            owner: format!("{}:1", unique()),
            lease,
            lock,
            unlock,
            renew,
            force,
        };
        Ok((link, Channel::open(addr, channel).await?))
    }

    pub(super) fn key(&self) -> &str {
        &self.key
    }

    pub(super) fn owner(&self) -> &str {
        &self.owner
    }

    /// The error of an unlock if the lock is not the owner's.
    pub(super) fn not_mine(&self) -> LockFailure {
        LockFailure::NotHeld(format!("lock {:?}: not locked by {}", self.key, self.owner))
    }

    /// How long a watchdog waits before it renews again.
    pub(super) fn renewal_pause(&self) -> Duration {
        self.lease / RENEWALS_PER_LEASE
    }

    /// Returns `None` if it is held, once more than before, else the milliseconds left to another
    /// owner's hold.
    pub(super) async fn lock(&mut self) -> RedisResult<Option<i64>> {
        self.lock
            .key(&self.key)
            .arg(millis(self.lease))
            .arg(&self.owner)
            .invoke_async(&mut self.connection)
            .await
    }

    /// Returns `None` if it is not the owner's, else whether it is free now.
    pub(super) async fn unlock(&mut self) -> RedisResult<Option<bool>> {
        self.unlock
            .key(&self.key)
            .key(&self.channel)
            .arg(millis(self.lease))
            .arg(&self.owner)
            .arg(UNLOCKED)
            .invoke_async(&mut self.connection)
            .await
    }

    /// Restarts the lease; returns false if the lock is not the owner's any more.
    pub(super) async fn renew(&mut self) -> RedisResult<bool> {
        self.renew
            .key(&self.key)
            .arg(millis(self.lease))
            .arg(&self.owner)
            .invoke_async(&mut self.connection)
            .await
    }

    /// Frees the lock, even if another contender holds it. Returns whether it was held.
    pub(super) async fn force(&mut self) -> RedisResult<bool> {
        self.force
            .key(&self.key)
            .key(&self.channel)
            .arg(UNLOCKED)
            .invoke_async(&mut self.connection)
            .await
    }

    pub(super) async fn is_locked(&mut self) -> RedisResult<bool> {
        self.connection.exists(&self.key).await
    }

    pub(super) async fn holds(&mut self) -> RedisResult<u32> {
        let holds: Option<u32> = self.connection.hget(&self.key, &self.owner).await?;
        Ok(holds.unwrap_or(0))
    }

    pub(super) async fn left_ms(&mut self) -> RedisResult<i64> {
        self.connection.pttl(&self.key).await
    }
}
