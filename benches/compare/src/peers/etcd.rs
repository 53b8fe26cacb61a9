//! etcd's own lock, the `Mutex` of its concurrency package, which `etcdctl lock` and the server's
//! `Lock` call use too.
//!
//! *Acquire*: one transaction puts a key under the lock's name, bound to the contender's lease, and
//! reads the oldest key there. If that is another key, the contender waits until the youngest of
//! the older keys is deleted, and repeats this until there is none. Then it reads its own key once
//! more, which may have gone with its lease.
//!
//! *Try* is the `TryLock` of version 3.5: the same transaction; if the oldest key is another, it
//! deletes its own.
//!
//! *Giving up* deletes the key. A cancelled request may reach the server late, and the next key of
//! the same lease would have the same name. So the lease is then revoked, which removes the key and
//! prevents any later one, and the contender continues with a new lease.
//!
//! The server's `Lock` call is not used: when many contenders give up at once, the server's own
//! watches stop, and it grants nothing any more (etcd issue 13336; seen with 3.4.23 after 32 to 128
//! had waited).
//!
//! Source: etcd 3.4, `clientv3/concurrency/{key,mutex}.go`; etcd 3.5,
//! `client/v3/concurrency/mutex.go`. Checked against a live server in `tests/etcd.rs`.

use std::{net::SocketAddr, time::Duration};

use etcd_client::{
    Client, Compare, CompareOp, ConnectOptions, Error as EtcdError, GetOptions, PutOptions,
    ResponseHeader, SortOrder, SortTarget, Txn, TxnOp, TxnOpResponse,
};
use tokio::time::timeout;

use super::{
    Access, Belief, Contender, Doing, Fairness, Grant, LockFailure, LockUnderTest, Promises,
};
use crate::Error;

mod lease;
mod watch;

use lease::{CALL_LIMIT, Lease, RETRY_PAUSE};

/// etcd's lock on a server.
#[derive(Clone, Debug)]
pub struct EtcdLock {
    /// The server's name in tables: `etcd 3.4.23`.
    pub server: String,
    /// What survives a crash of the server.
    pub durability: &'static str,
    /// The address clients connect to.
    pub addr: SocketAddr,
    /// How long a lease lives without being kept alive, in seconds. etcd grants at least one and a
    /// half election timeouts, which is 2 s as shipped.
    pub lease_ttl_s: u32,
}

impl LockUnderTest for EtcdLock {
    fn name(&self) -> String {
        format!("concurrency.Mutex on {}", self.server)
    }

    fn promises(&self) -> Promises {
        Promises {
            fairness: Fairness::Fifo,
            durability: self.durability,
            death: "time to live of the lease",
            has_token: true,
        }
    }

    /// Dropping it revokes nothing: its lease is no longer kept alive, as if its process had died.
    fn contender<'a>(&'a self, resource: &'a str) -> Doing<'a, Result<Box<dyn Contender>, Error>> {
        Box::pin(async move {
            let failed = |error: EtcdError| {
                Error::Unexpected(format!("etcd at {} grants no lease: {error}", self.addr))
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
                key: Key::None,
            }) as _)
        })
    }
}

struct One {
    client: Client,
    name: String,
    ttl_s: i64,
    lease: Lease,
    key: Key,
}

/// The known state of the contender's key.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Key {
    /// There is none.
    None,
    /// A call that puts or deletes it has begun, and its outcome is unknown.
    InDoubt,
    /// It exists, behind older ones.
    Waits,
    /// It is the oldest.
    Holds,
}

/// The result of the transaction that puts the key.
enum Entered {
    First(Grant),
    /// It exists since this revision, behind older ones.
    Behind(i64),
}

impl One {
    fn key(&self) -> String {
        format!("{}/{:x}", self.name, self.lease.id())
    }

    /// Puts the key, under a live lease with no older key of this lock.
    async fn enter(&mut self) -> Result<Entered, LockFailure> {
        match self.key {
            Key::None if self.lease.belief() == Belief::Lost => self.renew().await,
            Key::None => {}
            Key::InDoubt | Key::Waits | Key::Holds => self.withdraw().await?,
        }
        if self.lease.belief() == Belief::Lost {
            let reason = "etcd grants no lease in place of the one that is gone";
            return Err(LockFailure::NotHeld(reason.into()));
        }
        let key = self.key();
        let oldest = GetOptions::new()
            .with_prefix()
            .with_sort(SortTarget::Create, SortOrder::Ascend)
            .with_limit(1);
        let oldest = TxnOp::get(format!("{}/", self.name), Some(oldest));
        let put = PutOptions::new().with_lease(self.lease.id());
        let entry = Txn::new()
            .when([Compare::create_revision(key.as_str(), CompareOp::Equal, 0)])
            .and_then([TxnOp::put(key.as_str(), "", Some(put)), oldest]);
        self.key = Key::InDoubt;
        let reply = match self.client.kv_client().txn(entry).await {
            Ok(reply) if reply.succeeded() => reply,
            Ok(_) => return Err(self.unknown("its key already exists".into())),
            Err(error) => {
                self.withdraw().await?;
                return Err(LockFailure::NotHeld(error.to_string()));
            }
        };
        let is_oldest = reply.op_responses().iter().any(|response| {
            let TxnOpResponse::Get(found) = response else {
                return false;
            };
            let first = found.kvs().first();
            first.is_some_and(|first| first.key() == key.as_bytes())
        });
        if is_oldest {
            return Ok(Entered::First(self.granted(reply.header())));
        }
        self.key = Key::Waits;
        let put_at = reply.header().map_or(0, ResponseHeader::revision);
        Ok(Entered::Behind(put_at))
    }

    fn granted(&mut self, header: Option<&ResponseHeader>) -> Grant {
        self.key = Key::Holds;
        // The revision at which the key was seen to be the oldest. The deletion of the previous
        // holder's key was a revision too, so this one is larger than any token of that holder.
        let revision = header.map(ResponseHeader::revision);
        Grant {
            token: revision.and_then(|revision| u64::try_from(revision).ok()),
        }
    }

    async fn lock(&mut self) -> Result<Grant, LockFailure> {
        let put_at = match self.enter().await? {
            Entered::First(grant) => return Ok(grant),
            Entered::Behind(put_at) => put_at,
        };
        // A broken connection removes nothing from the queue: the key exists as long as the lease.
        while self.lease.belief() != Belief::Lost {
            let waited = watch::all_deleted_before(&mut self.client, &self.name, put_at).await;
            if waited.is_ok()
                && let Ok(own) = self.client.get(self.key(), None).await
            {
                if own.kvs().is_empty() {
                    break;
                }
                return Ok(self.granted(own.header()));
            }
            tokio::time::sleep(RETRY_PAUSE).await;
        }
        self.key = Key::None;
        self.lease.lost();
        let reason = "its lease has ended while it waited";
        Err(LockFailure::NotHeld(reason.into()))
    }

    async fn try_lock(&mut self) -> Result<Option<Grant>, LockFailure> {
        match self.enter().await? {
            Entered::First(grant) => Ok(Some(grant)),
            Entered::Behind(_) => self.withdraw().await.map(|()| None),
        }
    }

    /// Makes sure that there is no key.
    async fn withdraw(&mut self) -> Result<(), LockFailure> {
        let is_deleted = match self.key {
            Key::None => true,
            Key::Waits | Key::Holds => {
                let deleted = timeout(CALL_LIMIT, self.delete()).await;
                matches!(deleted, Ok(Ok(_)))
            }
            Key::InDoubt => false,
        };
        if is_deleted {
            return Ok(());
        }
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
        self.key = Key::None;
        self.lease.lost();
        self.renew().await;
        Ok(())
    }

    /// Deletes the key; returns whether it existed. Until that is known, the key is in doubt.
    async fn delete(&mut self) -> Result<bool, EtcdError> {
        self.key = Key::InDoubt;
        let reply = self.client.kv_client().delete(self.key(), None).await?;
        self.key = Key::None;
        Ok(reply.deleted() > 0)
    }

    /// Replaces the lease by a new one, if possible; otherwise the next acquire tries again.
    async fn renew(&mut self) {
        if let Ok(lease) = Lease::grant(&self.client, self.ttl_s).await {
            self.lease = lease;
        }
    }

    /// Notes that the key may exist. It is deleted with the lease, which is no longer kept alive.
    fn unknown(&mut self, reason: String) -> LockFailure {
        self.key = Key::InDoubt;
        self.lease.lost();
        LockFailure::Unknown(reason)
    }
}

/// Whether the error means that there is no such lease.
fn is_not_found(error: &EtcdError) -> bool {
    const NOT_FOUND: i32 = 5;
    matches!(error, EtcdError::GRpcStatus(status) if i32::from(status.code()) == NOT_FOUND)
}

impl Contender for One {
    /// The id of the lease, which is a new one after a cancelled call.
    fn session(&self) -> String {
        format!("0x{:x}", self.lease.id())
    }

    fn acquire(&mut self, _: Access) -> Doing<'_, Result<Grant, LockFailure>> {
        Box::pin(self.lock())
    }

    fn acquire_within(
        &mut self,
        _: Access,
        limit: Duration,
    ) -> Doing<'_, Result<Option<Grant>, LockFailure>> {
        Box::pin(async move {
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
        match self.key {
            Key::Holds => self.lease.belief(),
            Key::None | Key::InDoubt | Key::Waits => Belief::Lost,
        }
    }

    fn release(&mut self) -> Doing<'_, Result<(), LockFailure>> {
        Box::pin(async move {
            if self.key != Key::Holds {
                return Err(LockFailure::NotHeld("nothing was acquired".into()));
            }
            match self.delete().await {
                Ok(true) => Ok(()),
                Ok(false) => {
                    let reason = "its key is gone, and so is its lease";
                    Err(LockFailure::NotHeld(reason.into()))
                }
                Err(error) => Err(self.unknown(error.to_string())),
            }
        })
    }
}
