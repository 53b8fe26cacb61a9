//! A lease of etcd that is kept alive, and its state as known without asking.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use etcd_client::{Client, Error as EtcdError, LeaseClient};
use tokio::{task::JoinHandle, time::timeout};

use crate::{
    clock::{nanos, now_ns},
    peers::Belief,
};

/// How long connecting, granting or revoking a lease may take.
pub(super) const CALL_LIMIT: Duration = Duration::from_secs(10);

/// The pause between a broken stream and the next one.
pub(super) const RETRY_PAUSE: Duration = Duration::from_millis(100);

/// A lease, kept alive after every third of its time to live until dropped.
#[derive(Debug)]
pub(super) struct Lease {
    id: i64,
    known: Arc<Known>,
    keeping: JoinHandle<()>,
}

impl Lease {
    /// Requests one with this time to live; the server may grant another.
    ///
    /// # Errors
    /// If there is none within [`CALL_LIMIT`]; the server may have created it nevertheless.
    pub(super) async fn grant(client: &Client, ttl_s: i64) -> Result<Self, EtcdError> {
        let mut leases = client.lease_client();
        let asked_ns = now_ns();
        let reply = timeout(CALL_LIMIT, leases.grant(ttl_s, None))
            .await
            .map_err(|_| {
                let limit_ms = CALL_LIMIT.as_millis();
                EtcdError::LeaseKeepAliveError(format!("no lease within {limit_ms} ms"))
            })??;
        let ttl = Duration::from_secs(u64::try_from(reply.ttl()).unwrap_or(0));
        let known = Arc::new(Known {
            alive_until_ns: AtomicU64::new(asked_ns.saturating_add(nanos(ttl))),
            is_connected: AtomicBool::new(true),
        });
        let keeping = tokio::spawn(keep(leases, reply.id(), ttl, Arc::clone(&known)));
        Ok(Self {
            id: reply.id(),
            known,
            keeping,
        })
    }

    /// Its id on the server.
    pub(super) const fn id(&self) -> i64 {
        self.id
    }

    /// Returns whether it lives, counted from the last request to keep it alive, so that the client
    /// believes it lost before the server grants its locks to another client.
    pub(super) fn belief(&self) -> Belief {
        if now_ns() >= self.known.alive_until_ns.load(Ordering::Acquire) {
            Belief::Lost
        } else if self.known.is_connected.load(Ordering::Acquire) {
            Belief::Held
        } else {
            Belief::Unsure
        }
    }

    /// Marks it as lost: it is not used or kept alive any more.
    pub(super) fn lost(&self) {
        self.keeping.abort();
        self.known.alive_until_ns.store(0, Ordering::Release);
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.keeping.abort();
    }
}

#[derive(Debug)]
struct Known {
    alive_until_ns: AtomicU64,
    is_connected: AtomicBool,
}

/// Keeps the lease alive until it is gone, over as many streams as needed.
async fn keep(mut leases: LeaseClient, id: i64, ttl: Duration, known: Arc<Known>) {
    while now_ns() < known.alive_until_ns.load(Ordering::Acquire) {
        if is_gone(&mut leases, id, ttl, &known).await {
            known.alive_until_ns.store(0, Ordering::Release);
            return;
        }
        known.is_connected.store(false, Ordering::Release);
        tokio::time::sleep(RETRY_PAUSE).await;
    }
}

/// Keeps the lease alive over one stream until that ends. Returns whether the server reported the
/// lease as gone.
async fn is_gone(leases: &mut LeaseClient, id: i64, ttl: Duration, known: &Known) -> bool {
    let pause = ttl / 3;
    let confirm = |asked_ns: u64| {
        let until_ns = asked_ns.saturating_add(nanos(ttl));
        known.alive_until_ns.store(until_ns, Ordering::Release);
        known.is_connected.store(true, Ordering::Release);
    };
    let asked_ns = now_ns();
    let (mut keeper, mut replies) = match timeout(pause, leases.keep_alive(id)).await {
        Ok(Ok(stream)) => stream,
        // The crate's error if the first reply has no time to live.
        Ok(Err(EtcdError::LeaseKeepAliveError(_))) => return true,
        Ok(Err(_)) | Err(_) => return false,
    };
    confirm(asked_ns);
    loop {
        tokio::time::sleep(pause).await;
        let asked_ns = now_ns();
        if keeper.keep_alive().await.is_err() {
            return false;
        }
        match timeout(pause, replies.message()).await {
            Ok(Ok(Some(reply))) if reply.ttl() > 0 => confirm(asked_ns),
            Ok(Ok(Some(_))) => return true,
            Ok(Ok(None) | Err(_)) | Err(_) => return false,
        }
    }
}
