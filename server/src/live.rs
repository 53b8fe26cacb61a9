//! How many TCP connections are open, and whether one more may be.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::atomic::{AtomicUsize, Ordering},
};

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::config::Config;

/// The TCP connections that are open.
#[derive(Debug, Default)]
pub(crate) struct Live {
    count: AtomicUsize,
    /// Kept only while a limit for each address is set.
    by_address: Mutex<HashMap<IpAddr, usize>>,
    /// Called when the last one has closed.
    empty: Notify,
}

impl Live {
    /// Counts a connection in; says which limit forbids it.
    pub(crate) fn enter(&self, config: &Config, address: IpAddr) -> Result<(), &'static str> {
        if self.count.load(Ordering::Acquire) >= config.connections_max {
            return Err("connections_max");
        }
        let per_address_max = config.connections_per_address_max;
        if per_address_max > 0 {
            let mut by_address = self.by_address.lock();
            let count = by_address.entry(address).or_default();
            if *count >= per_address_max {
                return Err("connections_per_address_max");
            }
            *count += 1;
        }
        self.count.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }

    pub(crate) fn leave(&self, address: IpAddr) {
        let mut by_address = self.by_address.lock();
        if let Some(count) = by_address.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                by_address.remove(&address);
            }
        }
        drop(by_address);
        if self.count.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.empty.notify_waiters();
        }
    }

    /// Waits until no connection is open.
    pub(crate) async fn wait_empty(&self) {
        loop {
            let empty = self.empty.notified();
            if self.count.load(Ordering::Acquire) == 0 {
                return;
            }
            empty.await;
        }
    }
}
