//! `SET NX PX` with polling on Redis.
//!
//! Source: `docs/curator-recipes.md` section 13.5.

use std::{net::SocketAddr, time::Duration};

use redis::{Script, aio::MultiplexedConnection};
use tokio::time::sleep;

use super::{
    Belief, Contender, Doing, Fairness, LockFailure, LockUnderTest, Promises,
    plain::Plain,
    redis_link::{DELETE_IF_MINE, connect, set_if_absent, setup_failed, unique},
};
use crate::{Error, clock::Deadline};

/// The pause between tries, the same as of the recipes' polling lock.
pub const POLLING_INTERVAL: Duration = Duration::from_millis(10);

/// A key that expires, on one Redis.
#[derive(Clone, Debug)]
pub struct RedisSet {
    /// The server's name in tables: `Redis 7.0.15`.
    pub server: String,
    /// What survives a crash of the server.
    pub durability: &'static str,
    /// The server's address.
    pub addr: SocketAddr,
    /// How long a hold lasts; it is not renewed.
    pub ttl: Duration,
    /// The pause between tries. Usually [`POLLING_INTERVAL`].
    pub interval: Duration,
}

impl LockUnderTest for RedisSet {
    fn name(&self) -> String {
        format!("SET NX PX on {}", self.server)
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
            let failed = |error| setup_failed(self.addr, &error);
            let mut connection = connect(self.addr).await.map_err(failed)?;
            let delete = Script::new(DELETE_IF_MINE);
            delete.load_async(&mut connection).await.map_err(failed)?;
            Ok(Box::new(One {
                connection,
                key: resource.to_owned(),
                id: unique(),
                ttl: self.ttl,
                interval: self.interval,
                delete,
                held: None,
            }) as _)
        })
    }
}

struct One {
    connection: MultiplexedConnection,
    key: String,
    id: String,
    ttl: Duration,
    interval: Duration,
    delete: Script,
    /// The value of the key while it is ours.
    held: Option<String>,
}

impl One {
    /// Each try has its own value, which distinguishes a new hold from our old ones.
    async fn attempt(&mut self) -> Result<bool, LockFailure> {
        let value = unique();
        let set = set_if_absent(&self.key, &value, self.ttl);
        let is_set: bool = set.query_async(&mut self.connection).await?;
        if is_set {
            self.held = Some(value);
        }
        Ok(is_set)
    }
}

impl Plain for One {
    fn session(&self) -> String {
        self.id.clone()
    }

    async fn lock(&mut self, limit: Option<Duration>) -> Result<bool, LockFailure> {
        let deadline = limit.map(|limit| Deadline::new(limit, "lock"));
        loop {
            if self.attempt().await? {
                return Ok(true);
            }
            let left = deadline.as_ref().map_or(Duration::MAX, Deadline::left);
            if left.is_zero() {
                return Ok(false);
            }
            sleep(self.interval.min(left)).await;
        }
    }

    /// No library knows: the holder can only hope that the time has not passed.
    fn belief(&self) -> Belief {
        match self.held {
            None => Belief::Lost,
            Some(_) => Belief::NoAnswer,
        }
    }

    async fn unlock(&mut self) -> Result<(), LockFailure> {
        let Some(value) = self.held.take() else {
            return Err(LockFailure::NotHeld("nothing was acquired".into()));
        };
        let mut call = self.delete.key(&self.key);
        let is_deleted: bool = call.arg(value).invoke_async(&mut self.connection).await?;
        if is_deleted {
            return Ok(());
        }
        let reason = format!("key {:?}: its time to live has passed", self.key);
        Err(LockFailure::NotHeld(reason))
    }
}
