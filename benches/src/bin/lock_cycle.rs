//! The cost of a lock cycle, for comparisons of builds: acquires and releases a lock that no other contender wants,
//! through an in-process connection or, with `tcp`, over loopback, all on one thread.
//!
//! ```text
//! lock_cycle CYCLES [tcp] [on]
//! ```
//!
//! Prints microseconds a cycle. With `on` a recorder counts what the metrics record, and needs the feature `metrics`.

#![allow(clippy::print_stdout, reason = "it prints its figure")]

use std::{env, error::Error, sync::Arc};

use minikeeper::Server;
use minikeeper_benches::clock::now_ns;
use minikeeper_client::{Client, Connecting};
use minikeeper_recipes::InterProcessMutex;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [cycles, how @ ..] = &arguments[..] else {
        return Err("usage: lock_cycle CYCLES [tcp] [on]".into());
    };
    let cycles: u32 = cycles.parse()?;
    let is_set = |option: &str| how.iter().any(|set| set == option);
    if is_set("on") {
        install()?;
    }
    let server = Arc::new(Server::builder().start().await?);
    let client = if is_set("tcp") {
        Client::connect(&server.connect_string()).await?
    } else {
        let server = Arc::clone(&server);
        let transport = move |_host: &str| -> Connecting {
            let (reader, writer) = tokio::io::split(server.local());
            Box::pin(async move { Ok((Box::new(reader) as _, Box::new(writer) as _)) })
        };
        let builder = Client::builder("in-process")?.transport(transport);
        builder.connect().await?
    };
    let lock = InterProcessMutex::new(client, "/locks/a")?;
    let start_ns = now_ns();
    for _ in 0..cycles {
        lock.acquire().await?.release().await?;
    }
    let each_ns = (now_ns() - start_ns) / u64::from(cycles.max(1));
    println!("{}.{:03}", each_ns / 1_000, each_ns % 1_000);
    Ok(())
}

#[cfg(not(feature = "metrics"))]
fn install() -> Result<(), Box<dyn Error>> {
    Err("built without the feature metrics".into())
}

#[cfg(feature = "metrics")]
use self::recorder::install;

/// Looks up a shared cell for each record, as Prometheus's exporter does.
#[cfg(feature = "metrics")]
mod recorder {
    use std::{
        collections::HashMap,
        error::Error,
        sync::{
            Arc, Mutex, PoisonError,
            atomic::{AtomicU64, Ordering},
        },
    };

    use metrics::{
        Counter, Gauge, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder, SharedString,
        Unit,
    };

    pub(crate) fn install() -> Result<(), Box<dyn Error>> {
        Ok(metrics::set_global_recorder(Cells::default())?)
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
