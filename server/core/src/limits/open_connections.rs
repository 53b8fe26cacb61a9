//! Counts the open connections, all together and per address, and refuses those beyond the limits.
//!
//! Source: `docs/zookeeper-protocol.md` sections 6.1 and 17.1.

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

/// Counts the open TCP connections.
#[derive(Debug, Default)]
pub struct OpenConnections {
    count: AtomicUsize,
    /// The number of those that serve control, not clients.
    aside: AtomicUsize,
    /// The number per address. Kept only if that number is limited.
    by_address: Mutex<HashMap<IpAddr, usize>>,
    /// Notified when the last connection has closed, or the last one of a client.
    fewer: Notify,
}

impl OpenConnections {
    /// Counts a connection until the returned slot is dropped.
    ///
    /// # Errors
    /// The name and value of the limit that forbids it.
    pub(crate) fn enter(
        self: &Arc<Self>,
        config: &Config,
        address: IpAddr,
    ) -> Result<Slot, (&'static str, usize)> {
        let connections_max = config.connections_max;
        // In one step: ports accept at the same time.
        let one_more = |count| (count < connections_max).then_some(count + 1);
        let (set, read) = (Ordering::AcqRel, Ordering::Acquire);
        if self.count.fetch_update(set, read, one_more).is_err() {
            return Err(("connections_max", connections_max));
        }
        let mut slot = Slot {
            live: Arc::clone(self),
            counted: None,
        };
        let per_address_max = config.connections_per_address_max;
        if per_address_max > 0 {
            let mut by_address = self.by_address.lock();
            let count = by_address.entry(address).or_default();
            if *count >= per_address_max {
                drop(by_address);
                return Err(("connections_per_address_max", per_address_max));
            }
            *count += 1;
            slot.counted = Some(Box::new(address));
        }
        Ok(slot)
    }

    /// Waits until no connection is open.
    pub async fn wait_empty(&self) {
        self.wait_until(|count, _| count == 0).await;
    }

    /// Waits until no client's connection is open.
    pub async fn wait_no_clients(&self) {
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

/// The place of one open connection among those that the limits permit; dropping it frees the
/// place.
#[derive(Debug)]
pub struct Slot {
    live: Arc<OpenConnections>,
    /// The address it is counted for, if the number per address is limited.
    counted: Option<Box<IpAddr>>,
}

#[cfg(feature = "control")]
impl Slot {
    /// Counts the connection as control and not as a client's, until the returned value is dropped.
    pub fn set_aside(&self) -> Aside {
        self.live.aside.fetch_add(1, Ordering::AcqRel);
        self.live.fewer.notify_waiters();
        Aside {
            live: Arc::clone(&self.live),
        }
    }
}

/// Marks a connection that serves control and no client.
#[cfg(feature = "control")]
#[derive(Debug)]
pub struct Aside {
    live: Arc<OpenConnections>,
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

#[cfg(test)]
mod tests {
    use std::{net::Ipv4Addr, sync::Barrier, thread};

    use super::*;

    /// Two ports that accepted at the same time both saw one place left.
    #[test]
    fn ports_that_accept_at_the_same_time_keep_to_the_limit() {
        const PORTS: usize = 4;
        const ROUNDS: usize = 2_000;
        let config = Config {
            connections_max: 1,
            ..Config::default()
        };
        let live = Arc::<OpenConnections>::default();
        let barrier = Barrier::new(PORTS);
        let admitted = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..PORTS {
                scope.spawn(|| {
                    for round in 1..=ROUNDS {
                        barrier.wait();
                        let slot = live.enter(&config, Ipv4Addr::LOCALHOST.into());
                        admitted.fetch_add(usize::from(slot.is_ok()), Ordering::AcqRel);
                        barrier.wait();
                        assert_eq!(admitted.load(Ordering::Acquire), round);
                        drop(slot);
                        barrier.wait();
                    }
                });
            }
        });
        assert_eq!(live.count.load(Ordering::Acquire), 0);
    }

    #[test]
    fn address_beyond_its_limit_takes_no_place() {
        let config = Config {
            connections_max: 2,
            connections_per_address_max: 1,
            ..Config::default()
        };
        let live = Arc::<OpenConnections>::default();
        let enter = |last| live.enter(&config, Ipv4Addr::new(127, 0, 0, last).into());
        let first = enter(1).unwrap();
        for _ in 0..3 {
            assert_eq!(enter(1).unwrap_err().0, "connections_per_address_max");
        }
        let second = enter(2).unwrap();
        assert_eq!(enter(3).unwrap_err().0, "connections_max");
        drop((first, second));
        enter(1).unwrap();
    }
}
