//! etcd's own lock, as its server gives it: the call `Lock` puts a key under the lock's name, bound
//! to the caller's lease, and answers when no older key is there; whoever waits watches the
//! youngest key that is older than its own.
//!
//! *Try* is the `TryLock` of etcd's concurrency package 3.5, which the server has no call for: one
//! transaction puts the key and reads the oldest; if that is another, the key is deleted.
//!
//! *Giving up*: when a call of `Lock` is cancelled, the server deletes the key by its name, and may
//! do so late. With the same lease the next call would put a key of the same name, and lose it to
//! that delete while it holds the lock. So the lease is revoked, which removes the key and lets
//! none follow, and the contender goes on with a new one.
//!
//! Source: etcd 3.4, `etcdserver/api/v3lock/lock.go` and `clientv3/concurrency/mutex.go`; etcd 3.5,
//! `client/v3/concurrency/mutex.go`. Checked against a live server in `tests/etcd.rs`.

use std::{net::SocketAddr, time::Duration};

use etcd_client::{
    Client, Compare, CompareOp, ConnectOptions, Error as EtcdError, GetOptions, LockOptions,
    PutOptions, ResponseHeader, SortOrder, SortTarget, Txn, TxnOp, TxnOpResponse,
};
use tokio::time::timeout;

use super::{
    Access, Belief, Contender, Doing, Fairness, Grant, Kind, LockFailure, LockUnderTest, Promises,
};
use crate::Error;

mod lease;

use lease::{CALL_LIMIT, Lease};

/// etcd's lock on a server.
#[derive(Clone, Debug)]
pub struct EtcdLock {
    /// What it stands on, as in tables: `etcd 3.4.23`.
    pub server: String,
    /// What the server keeps through a crash.
    pub durability: &'static str,
    /// Where clients reach it.
    pub addr: SocketAddr,
    /// How long a lease lives without being kept alive, in seconds. etcd itself grants no less than
    /// one and a half election timeouts, which is 2 s as shipped.
    pub lease_ttl_s: u32,
}

impl LockUnderTest for EtcdLock {
    fn name(&self) -> String {
        format!("lock of the server on {}", self.server)
    }

    fn kind(&self) -> Kind {
        Kind::Mutex
    }

    fn promises(&self) -> Promises {
        Promises {
            fairness: Fairness::Fifo,
            durability: self.durability,
            death: "time to live of the lease",
            has_token: true,
        }
    }

    /// Dropped, it revokes nothing: its lease is no longer kept alive, as if it had died.
    fn contender<'a>(&'a self, resource: &'a str) -> Doing<'a, Result<Box<dyn Contender>, Error>> {
        Box::pin(async move {
            let failed = |error: EtcdError| {
                Error::Unexpected(format!("etcd at {} gives no lease: {error}", self.addr))
            };
            let options = ConnectOptions::new().with_connect_timeout(CALL_LIMIT);
            let client = Client::connect([self.addr.to_string()], Some(options))
                .await
                .map_err(failed)?;
            let ttl_s = i64::from(self.lease_ttl_s);
            let lease = Lease::grant(&client, ttl_s).await.map_err(failed)?;
            Ok(Box::new(One {
                client,
                name: format!("bench/{resource}"),
                ttl_s,
                lease,
                is_in_doubt: false,
                held: None,
            }) as _)
        })
    }
}

struct One {
    client: Client,
    name: String,
    ttl_s: i64,
    lease: Lease,
    /// A call was begun, and nobody has seen its end: its key may be there.
    is_in_doubt: bool,
    /// The key of the lock while it is held.
    held: Option<Vec<u8>>,
}

impl One {
    /// Has a lease that lives and under which nothing of this lock is left.
    async fn begin(&mut self) -> Result<(), LockFailure> {
        if self.is_in_doubt {
            self.withdraw().await?;
        } else if self.lease.belief() == Belief::Lost {
            self.renew().await;
        }
        if self.lease.belief() == Belief::Lost {
            let reason = "etcd gives no lease in place of the one that is gone";
            return Err(LockFailure::NotHeld(reason.into()));
        }
        self.is_in_doubt = true;
        Ok(())
    }

    fn granted(&mut self, key: Vec<u8>, header: Option<&ResponseHeader>) -> Grant {
        self.is_in_doubt = false;
        self.held = Some(key);
        // The revision at which the key was seen to be the oldest. The deletion of the holder's key
        // before was a revision too, so it is larger than any that this holder can have.
        let revision = header.map(ResponseHeader::revision);
        Grant {
            token: revision.and_then(|revision| u64::try_from(revision).ok()),
        }
    }

    /// Makes sure that a call which was given up leaves nothing, by revoking the lease.
    async fn withdraw(&mut self) -> Result<(), LockFailure> {
        let id = self.lease.id();
        let mut leases = self.client.lease_client();
        match timeout(CALL_LIMIT, leases.revoke(id)).await {
            Ok(Ok(_)) => {}
            // It has expired, and its keys with it.
            Ok(Err(error)) if is_not_found(&error) => {}
            Ok(Err(error)) => return Err(self.unknown(format!("lease not revoked: {error}"))),
            Err(_) => {
                let limit_ms = CALL_LIMIT.as_millis();
                return Err(self.unknown(format!("lease not revoked within {limit_ms} ms")));
            }
        }
        self.is_in_doubt = false;
        self.lease.lost();
        self.renew().await;
        Ok(())
    }

    /// A new lease, if there is one to be had; the next acquire tries again.
    async fn renew(&mut self) {
        if let Ok(lease) = Lease::grant(&self.client, self.ttl_s).await {
            self.lease = lease;
        }
    }

    /// The key may be there. It goes with the lease, if nobody keeps that alive.
    fn unknown(&mut self, reason: String) -> LockFailure {
        self.is_in_doubt = true;
        self.lease.lost();
        LockFailure::Unknown(reason)
    }

    async fn lock(&mut self) -> Result<Grant, LockFailure> {
        let options = LockOptions::new().with_lease(self.lease.id());
        let mut locks = self.client.lock_client();
        match locks.lock(self.name.as_str(), Some(options)).await {
            Ok(answer) => Ok(self.granted(answer.key().to_vec(), answer.header())),
            Err(error) => {
                self.withdraw().await?;
                Err(LockFailure::NotHeld(error.to_string()))
            }
        }
    }

    async fn try_lock(&mut self) -> Result<Option<Grant>, LockFailure> {
        let key = format!("{}/{:x}", self.name, self.lease.id());
        let oldest = GetOptions::new()
            .with_prefix()
            .with_sort(SortTarget::Create, SortOrder::Ascend)
            .with_limit(1);
        let oldest = TxnOp::get(format!("{}/", self.name), Some(oldest));
        let put = PutOptions::new().with_lease(self.lease.id());
        let entry = Txn::new()
            .when([Compare::create_revision(key.as_str(), CompareOp::Equal, 0)])
            .and_then([TxnOp::put(key.as_str(), "", Some(put)), oldest]);
        let mut kv = self.client.kv_client();
        let answer = match kv.txn(entry).await {
            Ok(answer) => answer,
            Err(error) => {
                self.withdraw().await?;
                return Err(LockFailure::NotHeld(error.to_string()));
            }
        };
        let responses = answer.op_responses();
        let is_oldest = responses.iter().any(|response| {
            let TxnOpResponse::Get(found) = response else {
                return false;
            };
            let first = found.kvs().first();
            first.is_some_and(|first| first.key() == key.as_bytes())
        });
        if is_oldest {
            return Ok(Some(self.granted(key.into_bytes(), answer.header())));
        }
        match kv.delete(key, None).await {
            Ok(_) => self.is_in_doubt = false,
            Err(_) => self.withdraw().await?,
        }
        Ok(None)
    }
}

/// Whether the server says that there is no such lease.
fn is_not_found(error: &EtcdError) -> bool {
    const NOT_FOUND: i32 = 5;
    matches!(error, EtcdError::GRpcStatus(status) if i32::from(status.code()) == NOT_FOUND)
}

impl Contender for One {
    /// The lease, which is a new one after each wait that was given up.
    fn session(&self) -> String {
        format!("0x{:x}", self.lease.id())
    }

    fn acquire(&mut self, _: Access) -> Doing<'_, Result<Grant, LockFailure>> {
        Box::pin(async move {
            self.begin().await?;
            self.lock().await
        })
    }

    fn acquire_within(
        &mut self,
        _: Access,
        limit: Duration,
    ) -> Doing<'_, Result<Option<Grant>, LockFailure>> {
        Box::pin(async move {
            self.begin().await?;
            if limit.is_zero() {
                return self.try_lock().await;
            }
            match timeout(limit, self.lock()).await {
                Ok(done) => done.map(Some),
                Err(_) => self.withdraw().await.map(|()| None),
            }
        })
    }

    fn belief(&self) -> Belief {
        match self.held {
            Some(_) => self.lease.belief(),
            None => Belief::Lost,
        }
    }

    /// The delete that the server's `Unlock` is too, but this one says whether the key was there.
    fn release(&mut self) -> Doing<'_, Result<(), LockFailure>> {
        Box::pin(async move {
            let Some(key) = self.held.take() else {
                return Err(LockFailure::NotHeld("nothing was acquired".into()));
            };
            self.is_in_doubt = true;
            match self.client.kv_client().delete(key, None).await {
                Ok(answer) => {
                    self.is_in_doubt = false;
                    if answer.deleted() == 0 {
                        let reason = "its key is gone, as its lease is";
                        return Err(LockFailure::NotHeld(reason.into()));
                    }
                    Ok(())
                }
                Err(error) => Err(self.unknown(error.to_string())),
            }
        })
    }
}
