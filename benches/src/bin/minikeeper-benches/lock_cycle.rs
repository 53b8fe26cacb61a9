//! The cost of a lock cycle, for comparisons of builds: acquires and releases a lock that no other contender wants,
//! through an in-process connection or, with `tcp`, over loopback, all on one thread.
//!
//! Prints microseconds a cycle. With `on` a recorder counts what the metrics record, and needs the feature `metrics`.

use std::sync::Arc;

use minikeeper::Server;
use minikeeper_benches::{Error, IoContext as _, clock::now_ns, table::say};
use minikeeper_client::{Client, Connecting};
use minikeeper_recipes::InterProcessMutex;

use crate::text;

/// Prints the cost of acquiring and releasing a free lock, in microseconds
#[derive(clap::Args)]
#[command(after_help = "Examples:
  lock-cycle 8000       through an in-process connection
  lock-cycle 4000 tcp   over loopback
  lock-cycle 8000 on    with a recorder, in a build with the feature metrics")]
pub(crate) struct Args {
    /// Number of times that the lock is acquired
    cycles: u32,
    /// What differs from an in-process connection without a recorder
    how: Vec<How>,
}

#[derive(Clone, Copy, PartialEq, clap::ValueEnum)]
enum How {
    /// Over loopback
    Tcp,
    /// With a recorder of metrics
    On,
}

pub(crate) fn run(args: &Args) -> Result<bool, Error> {
    if args.how.contains(&How::On) {
        install()?;
    }
    let each_ns = crate::runtime()?.block_on(cycle(args))?;
    say(format!("{}.{:03}\n", each_ns / 1_000, each_ns % 1_000))
        .context(|| "cannot print the figure".into())?;
    Ok(true)
}

async fn cycle(args: &Args) -> Result<u64, Error> {
    let server = Arc::new(Server::builder().start().await.map_err(text)?);
    let client = if args.how.contains(&How::Tcp) {
        let connected = Client::connect(&server.connect_string()).await;
        connected.map_err(text)?
    } else {
        let server = Arc::clone(&server);
        let transport = move |_host: &str| -> Connecting {
            let (reader, writer) = tokio::io::split(server.local());
            Box::pin(async move { Ok((Box::new(reader) as _, Box::new(writer) as _)) })
        };
        let builder = Client::builder("in-process").map_err(text)?;
        let connected = builder.transport(transport).connect().await;
        connected.map_err(text)?
    };
    let lock = InterProcessMutex::new(client, "/locks/a").map_err(text)?;
    let start_ns = now_ns();
    for _ in 0..args.cycles {
        let guard = lock.acquire().await.map_err(text)?;
        guard.release().await.map_err(text)?;
    }
    Ok((now_ns() - start_ns) / u64::from(args.cycles.max(1)))
}

#[cfg(not(feature = "metrics"))]
fn install() -> Result<(), Error> {
    Err(Error::Setup("built without the feature metrics".into()))
}

#[cfg(feature = "metrics")]
use self::recorder::install;

/// Looks up a shared cell for each record, as Prometheus's exporter does.
#[cfg(feature = "metrics")]
mod recorder {
    use std::{
        collections::HashMap,
        sync::{
            Arc, Mutex, PoisonError,
            atomic::{AtomicU64, Ordering},
        },
    };

    use metrics::{
        Counter, Gauge, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder, SharedString,
        Unit,
    };

    pub(crate) fn install() -> Result<(), minikeeper_benches::Error> {
        metrics::set_global_recorder(Cells::default()).map_err(crate::text)
    }

    #[derive(Default)]
    struct Cells {
        counters: Mutex<HashMap<Key, Arc<AtomicU64>>>,
        histograms: Mutex<HashMap<Key, Arc<Times>>>,
    }

    /// The sum of a histogram in millionths, and its buckets by powers of two.
    #[derive(Default)]
    struct Times {
        sum: AtomicU64,
        buckets: [AtomicU64; 32],
    }

    impl HistogramFn for Times {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "elapsed times are positive, and need no more digits"
        )]
        fn record(&self, value: f64) {
            let micros = (value * 1e6) as u64;
            self.sum.fetch_add(micros, Ordering::Relaxed);
            let bucket = (u64::BITS - micros.leading_zeros()) as usize;
            if let Some(bucket) = self.buckets.get(bucket) {
                bucket.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    fn cell<T: Default>(cells: &Mutex<HashMap<Key, Arc<T>>>, key: &Key) -> Arc<T> {
        let mut cells = cells.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(cell) = cells.get(key) {
            return Arc::clone(cell);
        }
        Arc::clone(cells.entry(key.clone()).or_default())
    }

    impl Recorder for Cells {
        fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
        fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
        fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

        fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
            Counter::from_arc(cell(&self.counters, key))
        }

        fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
            Gauge::noop()
        }

        fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
            Histogram::from_arc(cell(&self.histograms, key))
        }
    }
}
