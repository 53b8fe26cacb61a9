//! How many TCP connections are open, and whether one more may be.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::config::Config;

/// The TCP connections that are open.
#[derive(Debug, Default)]
pub(crate) struct Live {
    count: AtomicUsize,
    /// Those among them that are no clients, but control.
    aside: AtomicUsize,
    /// Kept only while a limit for each address is set.
    by_address: Mutex<HashMap<IpAddr, usize>>,
    /// Called when the last one has closed, or the last one of a client.
    fewer: Notify,
}

impl Live {
    /// Counts a connection in, until its slot is dropped.
    ///
    /// # Errors
    /// The name of the limit that forbids it, and its value.
    pub(crate) fn enter(
        self: &Arc<Self>,
        config: &Config,
        address: IpAddr,
    ) -> Result<Slot, (&'static str, usize)> {
        if self.count.load(Ordering::Acquire) >= config.connections_max {
            return Err(("connections_max", config.connections_max));
        }
        let per_address_max = config.connections_per_address_max;
        let mut counted = None;
        if per_address_max > 0 {
            let mut by_address = self.by_address.lock();
            let count = by_address.entry(address).or_default();
            if *count >= per_address_max {
                return Err(("connections_per_address_max", per_address_max));
            }
            *count += 1;
            counted = Some(Box::new(address));
        }
        self.count.fetch_add(1, Ordering::AcqRel);
        Ok(Slot {
            live: Arc::clone(self),
            counted,
        })
    }

    /// Waits until no connection is open.
    pub(crate) async fn wait_empty(&self) {
        self.wait_until(|count, _| count == 0).await;
    }

    /// Waits until no client's connection is open.
    pub(crate) async fn wait_no_clients(&self) {
        self.wait_until(|count, aside| count <= aside).await;
    }

    async fn wait_until(&self, is_so: impl Fn(usize, usize) -> bool) {
        loop {
            let fewer = self.fewer.notified();
            let count = self.count.load(Ordering::Acquire);
            if is_so(count, self.aside.load(Ordering::Acquire)) {
                return;
            }
            fewer.await;
        }
    }
}

/// One connection's place among those that may be open, given back when dropped.
#[derive(Debug)]
pub(crate) struct Slot {
    live: Arc<Live>,
    /// The address it is counted for, while there is a limit for each.
    counted: Option<Box<IpAddr>>,
}

#[cfg(feature = "control")]
impl Slot {
    /// It is no client's connection, as long as this lives.
    pub(crate) fn set_aside(&self) -> Aside {
        self.live.aside.fetch_add(1, Ordering::AcqRel);
        self.live.fewer.notify_waiters();
        Aside {
            live: Arc::clone(&self.live),
        }
    }
}

/// A connection that is no client's.
#[cfg(feature = "control")]
#[derive(Debug)]
pub(crate) struct Aside {
    live: Arc<Live>,
}

#[cfg(feature = "control")]
impl Drop for Aside {
    fn drop(&mut self) {
        self.live.aside.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if let Some(address) = &self.counted {
            let mut by_address = self.live.by_address.lock();
            if let Some(count) = by_address.get_mut(&**address) {
                *count -= 1;
                if *count == 0 {
                    by_address.remove(&**address);
                }
            }
        }
        let left = self.live.count.fetch_sub(1, Ordering::AcqRel) - 1;
        if left <= self.live.aside.load(Ordering::Acquire) {
            self.live.fewer.notify_waiters();
        }
    }
}
