//! Many sessions contend for one lock: the time from a release to the next grant.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
    time::Duration,
};

use minikeeper_benches::{Error, clock::now_ns, stats};
use minikeeper_client::Client;
use minikeeper_recipes::{InterProcessMutex, LockOptions};

use super::{measure::Measure, through_client::connect};
use crate::text;

/// How long a holder keeps the lock.
#[derive(Clone, Copy)]
pub(crate) enum Hold {
    Nothing,
    /// While other tasks of this process run.
    Busy(Duration),
    Asleep(Duration),
}

impl Hold {
    pub(crate) const ALL: [Self; 4] = [
        Self::Nothing,
        Self::Busy(Duration::from_micros(10)),
        // Long enough for all waiting contenders to settle, short enough to keep caches warm.
        Self::Busy(Duration::from_micros(200)),
        Self::Asleep(Duration::from_millis(1)),
    ];

    pub(crate) fn text(self) -> String {
        match self {
            Self::Nothing => "0".into(),
            Self::Busy(time) | Self::Asleep(time) => format!("{time:?}"),
        }
    }

    pub(crate) async fn pass(self) {
        match self {
            Self::Nothing => {}
            Self::Busy(time) => {
                let until = now_ns() + minikeeper_benches::clock::nanos(time);
                while now_ns() < until {
                    tokio::task::yield_now().await;
                }
            }
            Self::Asleep(time) => tokio::time::sleep(time).await,
        }
    }
}

/// The contenders, each with its own session: N wait, and one more holds the lock.
pub(crate) struct HandOver {
    locks: Vec<InterProcessMutex>,
    hold: Hold,
    _clients: Vec<Client>,
}

impl HandOver {
    pub(crate) async fn new(
        addr: SocketAddr,
        path: &str,
        waiting: u32,
        options: &LockOptions,
        hold: Hold,
    ) -> Result<Self, Error> {
        let mut clients = Vec::new();
        let mut locks = Vec::new();
        for _ in 0..=waiting {
            let client = connect(addr).await?;
            let lock = InterProcessMutex::with_options(client.clone(), path, options.clone());
            locks.push(lock.map_err(text)?);
            clients.push(client);
        }
        Ok(Self {
            locks,
            hold,
            _clients: clients,
        })
    }

    /// Makes N hand-overs with a full queue.
    pub(crate) async fn block(&mut self, count: u32) -> Result<Measure, Error> {
        let waiting = u32::try_from(self.locks.len()).expect("the count was a u32") - 1;
        let released_at = Arc::new(AtomicU64::new(0));
        let grants = Arc::new(AtomicU32::new(0));
        let mut tasks = Vec::new();
        for lock in &self.locks {
            let (lock, hold) = (lock.clone(), self.hold);
            let (released_at, grants) = (Arc::clone(&released_at), Arc::clone(&grants));
            tasks.push(tokio::spawn(async move {
                let mut times = Vec::new();
                loop {
                    let guard = lock.acquire().await.map_err(text)?;
                    let now = now_ns();
                    let grant = grants.fetch_add(1, Ordering::Relaxed);
                    // The queue fills before this range, and empties after it.
                    if (2 * waiting..2 * waiting + count).contains(&grant) {
                        times.push(now - released_at.load(Ordering::Relaxed));
                    }
                    if grant == 0 {
                        // Wait until all contenders are in the queue.
                        tokio::time::sleep(Duration::from_millis(5)).await;
                    }
                    hold.pass().await;
                    released_at.store(now_ns(), Ordering::Relaxed);
                    guard.release().await.map_err(text)?;
                    if grant + waiting + 1 >= 2 * waiting + count {
                        return Ok::<_, Error>(times);
                    }
                }
            }));
        }
        let mut histogram = stats::latencies();
        for task in tasks {
            for time in task.await.map_err(text)?? {
                histogram.saturating_record(time.max(1));
            }
        }
        Ok(Measure {
            p50_ns: stats::interpolated(&histogram, 0.5),
            cpu_ns: 0.0,
        })
    }
}
