//! Redlock: one lock over several independent Redis processes.
//!
//! Source: `docs/curator-recipes.md` section 13.8.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use redis::{RedisResult, Script, aio::MultiplexedConnection};
use tokio::{
    sync::Mutex,
    task::JoinSet,
    time::{sleep, timeout},
};

use super::{
    Belief, Contender, Doing, Fairness, LockFailure, LockUnderTest, Promises,
    plain::Plain,
    redis_link::{DELETE_IF_MINE, connect, millis, set_if_absent, unique},
};
use crate::{
    Error,
    clock::{Deadline, nanos, now_ns},
};

/// How long one instance may take to reply.
pub const INSTANCE_LIMIT: Duration = Duration::from_millis(50);

/// The largest number of extensions of a hold.
pub const EXTENSIONS_MAX: u32 = 3;

/// The shortest and the longest wait before the next try, in milliseconds.
const RETRY_MS: (u64, u64) = (50, 200);

/// The part of the clocks' drift that does not grow with the time to live.
const DRIFT_FIXED: Duration = Duration::from_millis(2);

/// The part that grows with the time to live is a hundredth of it.
const DRIFT_DIVISOR: u32 = 100;

/// Keys: lock. Arguments: value, time to live in ms. Replies 1 when the lock had this value.
const EXTEND_IF_MINE: &str = "
if redis.call('GET', KEYS[1]) == ARGV[1] then
    return redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return 0
";

/// Redlock over these instances.
#[derive(Clone, Debug)]
pub struct Redlock {
    /// The servers' name in tables: `5 x Redis 7.0.15`.
    pub server: String,
    /// What survives a crash of the servers.
    pub durability: &'static str,
    /// The servers' addresses. An odd number, usually 5.
    pub addrs: Vec<SocketAddr>,
    /// How long a hold lasts.
    pub ttl: Duration,
    /// How long one instance may take to reply. Usually [`INSTANCE_LIMIT`].
    pub instance_limit: Duration,
    /// The largest number of extensions of a hold. Usually [`EXTENSIONS_MAX`].
    pub extensions_max: u32,
    /// The seed of the random waits; contenders differ nevertheless.
    pub seed: u64,
}

impl Redlock {
    /// Creates a contender with all operations of a Redlock. An instance that cannot be reached
    /// counts as one that refuses, now and later.
    #[must_use]
    pub fn open(&self, resource: &str) -> Holder {
        let id = unique();
        let instance = |addr: &SocketAddr| {
            Arc::new(Instance {
                addr: *addr,
                limit: self.instance_limit,
                connection: Mutex::new(None),
                delete: Script::new(DELETE_IF_MINE),
                extend: Script::new(EXTEND_IF_MINE),
            })
        };
        Holder {
            instances: self.addrs.iter().map(instance).collect(),
            key: resource.to_owned(),
            ttl: self.ttl,
            extensions_max: self.extensions_max,
            random: Random::new(self.seed, &id),
            id,
            held: None,
        }
    }
}

impl LockUnderTest for Redlock {
    fn name(&self) -> String {
        format!("Redlock on {}", self.server)
    }

    fn promises(&self) -> Promises {
        Promises {
            fairness: Fairness::None,
            durability: self.durability,
            death: "time to live",
            has_token: false,
        }
    }

    fn contender<'a>(&'a self, resource: &'a str) -> Doing<'a, Result<Box<dyn Contender>, Error>> {
        Box::pin(async move {
            let holder = self.open(resource);
            // Connects now, so that the first acquire costs what the others cost.
            let _ = holder.on_all(&Step::Reach).await;
            Ok(Box::new(holder) as _)
        })
    }
}

/// How long a hold can be trusted if acquiring it took this long; `None` if not at all.
///
/// The time the instances promised, less the elapsed time and the possible drift of the clocks.
#[must_use]
pub fn validity(ttl: Duration, elapsed: Duration) -> Option<Duration> {
    let drift = ttl / DRIFT_DIVISOR + DRIFT_FIXED;
    let left = ttl.checked_sub(elapsed)?.checked_sub(drift)?;
    (!left.is_zero()).then_some(left)
}

/// Returns how many of N instances are a majority.
#[must_use]
pub const fn majority(instances: usize) -> usize {
    instances / 2 + 1
}

/// A contender of a Redlock.
pub struct Holder {
    id: String,
    instances: Vec<Arc<Instance>>,
    key: String,
    ttl: Duration,
    extensions_max: u32,
    random: Random,
    held: Option<Held>,
}

/// A hold, as far as the contender knows.
struct Held {
    value: String,
    until_ns: u64,
    extensions: u32,
}

impl Holder {
    async fn attempt(&mut self) -> bool {
        let value = unique();
        let began_ns = now_ns();
        let replies = self.on_all(&Step::Set(value.clone(), self.ttl)).await;
        if let Some(until_ns) = self.trusted_until(began_ns, &replies) {
            self.held = Some(Held {
                value,
                until_ns,
                extensions: 0,
            });
            return true;
        }
        // Also on instances where it seemed to fail: the reply may have been lost, not the command.
        self.on_all(&Step::Delete(value)).await;
        false
    }

    fn trusted_until(&self, began_ns: u64, replies: &Replies) -> Option<u64> {
        let elapsed = Duration::from_nanos(now_ns() - began_ns);
        let validity = validity(self.ttl, elapsed)?;
        let now_ns = began_ns + nanos(elapsed);
        (replies.yes >= majority(self.instances.len())).then(|| now_ns + nanos(validity))
    }

    /// Restarts the time to live, which needs a majority and a hold that can still be trusted.
    /// Returns false if it was not extended, because the instances refused or the limit on
    /// extensions was reached; the hold then ends as before.
    ///
    /// # Errors
    /// If nothing is held any more.
    pub async fn extend(&mut self) -> Result<bool, LockFailure> {
        let began_ns = now_ns();
        let held = self.held.as_ref();
        let Some(held) = held.filter(|held| began_ns < held.until_ns) else {
            return Err(LockFailure::NotHeld(
                "its validity has passed, or nothing was acquired".into(),
            ));
        };
        if held.extensions >= self.extensions_max {
            return Ok(false);
        }
        let step = Step::Extend(held.value.clone(), self.ttl);
        let (old_until_ns, replies) = (held.until_ns, self.on_all(&step).await);
        let until_ns = self.trusted_until(began_ns, &replies);
        // Replies after the end of the lease are too late: another contender may have held it
        // since.
        let until_ns = until_ns.filter(|_| now_ns() < old_until_ns);
        if let (Some(held), Some(until_ns)) = (&mut self.held, until_ns) {
            held.until_ns = until_ns;
            held.extensions += 1;
        }
        Ok(until_ns.is_some())
    }

    /// How long the hold can still be trusted; zero if nothing is held.
    #[must_use]
    pub fn validity_left(&self) -> Duration {
        let until_ns = self.held.as_ref().map_or(0, |held| held.until_ns);
        Duration::from_nanos(until_ns.saturating_sub(now_ns()))
    }

    /// Performs a step on all instances at once and waits for all of them.
    async fn on_all(&self, step: &Step) -> Replies {
        let mut running = JoinSet::new();
        for instance in &self.instances {
            let (instance, key, step) = (Arc::clone(instance), self.key.clone(), step.clone());
            running.spawn(async move { instance.ask(&key, &step).await });
        }
        let mut replies = Replies::default();
        while let Some(reply) = running.join_next().await {
            match reply.ok().flatten() {
                Some(true) => replies.yes += 1,
                Some(false) => replies.no += 1,
                None => replies.silent += 1,
            }
        }
        replies
    }
}

impl Plain for Holder {
    fn session(&self) -> String {
        self.id.clone()
    }

    async fn lock(&mut self, limit: Option<Duration>) -> Result<bool, LockFailure> {
        let deadline = limit.map(|limit| Deadline::new(limit, "lock"));
        loop {
            if self.attempt().await {
                return Ok(true);
            }
            let left = deadline.as_ref().map_or(Duration::MAX, Deadline::left);
            if left.is_zero() {
                return Ok(false);
            }
            sleep(self.random.delay().min(left)).await;
        }
    }

    fn belief(&self) -> Belief {
        if self.validity_left().is_zero() {
            Belief::Lost
        } else {
            Belief::Held
        }
    }

    async fn unlock(&mut self) -> Result<(), LockFailure> {
        let Some(held) = self.held.take() else {
            return Err(LockFailure::NotHeld("nothing was acquired".into()));
        };
        let replies = self.on_all(&Step::Delete(held.value)).await;
        let majority = majority(self.instances.len());
        if replies.yes >= majority {
            return Ok(());
        }
        let Replies { yes, no, silent } = replies;
        let text = format!(
            "lock {:?}: deleted on {yes} instances, not ours on {no}, no reply from {silent}; \
             {majority} were needed",
            self.key
        );
        // The silent instances may have deleted it too; if there is no majority even then, it was
        // lost before.
        if yes + silent < majority {
            Err(LockFailure::NotHeld(text))
        } else {
            Err(LockFailure::Unknown(text))
        }
    }
}

/// A step performed on each instance.
#[derive(Clone)]
enum Step {
    /// Connects if there is no connection.
    Reach,
    /// Sets this value for this time, if there is none.
    Set(String, Duration),
    /// Restarts the time of this value.
    Extend(String, Duration),
    /// Deletes this value.
    Delete(String),
}

/// The number of instances that did it, refused, or did not reply.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Replies {
    yes: usize,
    no: usize,
    silent: usize,
}

/// One contender's access to one of the Redis processes.
struct Instance {
    addr: SocketAddr,
    limit: Duration,
    connection: Mutex<Option<MultiplexedConnection>>,
    delete: Script,
    extend: Script,
}

impl Instance {
    /// Returns `None` if there is no reply in time, or an error.
    async fn ask(&self, key: &str, step: &Step) -> Option<bool> {
        timeout(self.limit, self.tell(key, step)).await.ok()?.ok()
    }

    async fn tell(&self, key: &str, step: &Step) -> RedisResult<bool> {
        let mut connection = self.connected().await?;
        let done = match step {
            Step::Reach => Ok(true),
            Step::Set(value, ttl) => {
                let command = set_if_absent(key, value, *ttl);
                command.query_async(&mut connection).await
            }
            Step::Extend(value, ttl) => {
                let mut call = self.extend.key(key);
                let call = call.arg(value).arg(millis(*ttl));
                call.invoke_async(&mut connection).await
            }
            Step::Delete(value) => {
                let mut call = self.delete.key(key);
                call.arg(value).invoke_async(&mut connection).await
            }
        };
        if let Err(error) = &done
            && error.is_unrecoverable_error()
        {
            *self.connection.lock().await = None;
        }
        done
    }

    /// Returns the connection, a new one if the old one has ended.
    async fn connected(&self) -> RedisResult<MultiplexedConnection> {
        let mut kept = self.connection.lock().await;
        if let Some(connection) = &*kept {
            return Ok(connection.clone());
        }
        let mut connection = connect(self.addr).await?;
        for script in [&self.delete, &self.extend] {
            script.load_async(&mut connection).await?;
        }
        *kept = Some(connection.clone());
        Ok(connection)
    }
}

/// Pseudorandom numbers, good enough for waits: xorshift.
struct Random(u64);

impl Random {
    /// Contenders with the same seed differ by their names.
    fn new(seed: u64, name: &str) -> Self {
        let mixed = name.bytes().fold(seed, |mixed, byte| {
            (mixed ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        Self(mixed | 1)
    }

    fn delay(&mut self) -> Duration {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        let (shortest, longest) = RETRY_MS;
        // The low bits are the weaker ones.
        Duration::from_millis(shortest + (self.0 >> 32) % (longest - shortest + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn validity_is_ttl_less_elapsed_and_drift() {
        assert_eq!(validity(ms(10_000), ms(0)), Some(ms(10_000 - 100 - 2)));
        assert_eq!(
            validity(ms(10_000), ms(30)),
            Some(ms(10_000 - 30 - 100 - 2))
        );
        assert_eq!(validity(ms(1_000), ms(987)), Some(ms(1)));
        // Without any time left nothing is held.
        assert_eq!(validity(ms(1_000), ms(988)), None);
        assert_eq!(validity(ms(1_000), ms(5_000)), None);
        assert_eq!(validity(ms(2), ms(0)), None);
    }

    #[test]
    fn majority_is_more_than_half() {
        assert_eq!([1, 2, 3, 4, 5].map(majority), [1, 2, 2, 3, 3]);
    }

    #[test]
    fn delays_stay_between_50_and_200_ms_and_differ_by_name() {
        let mut one = Random::new(1, "one");
        let mut two = Random::new(1, "two");
        let one: Vec<_> = (0..1_000).map(|_| one.delay()).collect();
        let two: Vec<_> = (0..1_000).map(|_| two.delay()).collect();
        assert!(one.iter().all(|delay| (ms(50)..=ms(200)).contains(delay)));
        assert_ne!(one, two);
        assert!(one.iter().any(|delay| *delay < ms(60)));
        assert!(one.iter().any(|delay| *delay > ms(190)));
    }
}
