//! Metrics of locks in the text format of Prometheus. A small recorder shows what there is; a
//! service takes the one of `metrics-exporter-prometheus`, with one line in its `main`.
//!
//! ```sh
//! cargo run -p minikeeper-recipes --features metrics --example prometheus
//! ```

#![allow(clippy::print_stdout, reason = "an example prints what happens")]

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use metrics::{
    Counter, Gauge, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder, SharedString, Unit,
};
use minikeeper_client::Client;
use minikeeper_recipes::{InterProcessMutex, describe_metrics};

/// Keeps the sums of all series.
#[derive(Default)]
struct Prometheus {
    help: Mutex<BTreeMap<String, String>>,
    series: Mutex<BTreeMap<String, Arc<AtomicU64>>>,
}

impl Prometheus {
    fn series(&self, key: &Key, suffix: &str) -> Arc<AtomicU64> {
        let mut series = self.series.lock().unwrap_or_else(PoisonError::into_inner);
        let labels = key
            .labels()
            .map(|label| format!("{}={:?}", label.key(), label.value()));
        let labels = labels.collect::<Vec<_>>().join(",");
        let name = format!("{}{suffix}{{{labels}}}", key.name());
        Arc::clone(series.entry(name).or_default())
    }

    fn describe(&self, name: &KeyName, help: &SharedString) {
        let mut all = self.help.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(name.as_str().to_owned(), help.to_string());
    }

    /// Returns the page that Prometheus would read.
    fn page(&self) -> String {
        let help = self.help.lock().unwrap_or_else(PoisonError::into_inner);
        let series = self.series.lock().unwrap_or_else(PoisonError::into_inner);
        let mut page = String::new();
        for (name, help) in &*help {
            let mut of_name = series
                .iter()
                .filter(|(series, _)| series.starts_with(name))
                .peekable();
            if of_name.peek().is_some() {
                let _ = writeln!(page, "# HELP {name} {help}");
            }
            for (series, value) in of_name {
                let value = value.load(Relaxed);
                let value = if series.contains("_sum{") {
                    Duration::from_micros(value).as_secs_f64().to_string()
                } else {
                    value.to_string()
                };
                let _ = writeln!(page, "{series} {value}");
            }
        }
        page
    }
}

/// The count and the sum of a histogram, the sum in millionths.
struct Sums(Arc<AtomicU64>, Arc<AtomicU64>);

impl HistogramFn for Sums {
    fn record(&self, value: f64) {
        self.0.fetch_add(1, Relaxed);
        let value = Duration::try_from_secs_f64(value).unwrap_or_default();
        self.1.fetch_add(
            u64::try_from(value.as_micros()).unwrap_or(u64::MAX),
            Relaxed,
        );
    }
}

impl Recorder for Prometheus {
    fn describe_counter(&self, name: KeyName, _: Option<Unit>, help: SharedString) {
        self.describe(&name, &help);
    }

    fn describe_gauge(&self, name: KeyName, _: Option<Unit>, help: SharedString) {
        self.describe(&name, &help);
    }

    fn describe_histogram(&self, name: KeyName, _: Option<Unit>, help: SharedString) {
        self.describe(&name, &help);
    }

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.series(key, ""))
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(Arc::new(Sums(
            self.series(key, "_count"),
            self.series(key, "_sum"),
        )))
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let prometheus = Arc::new(Prometheus::default());
    metrics::set_global_recorder(Arc::clone(&prometheus))?;
    describe_metrics();

    let server = minikeeper::Server::builder().start().await?;
    let address = server.connect_string();
    let first = InterProcessMutex::new(Client::connect(&address).await?, "/locks/printer")?;
    let second = InterProcessMutex::new(Client::connect(&address).await?, "/locks/printer")?;
    for _ in 0..10 {
        let guard = first.acquire().await?;
        assert!(second.try_acquire().await?.is_none());
        guard.release().await?;
    }
    let page = prometheus.page();
    print!("{page}");
    let labels = r#"recipe="InterProcessMutex",path="/locks/printer""#;
    assert!(page.contains(&format!(
        "minikeeper_lock_hold_seconds_count{{{labels}}} 10\n"
    )));
    let late = format!(r#"minikeeper_lock_wait_seconds_count{{{labels},outcome="timed_out"}} 10"#);
    assert!(page.contains(&late));
    Ok(())
}
