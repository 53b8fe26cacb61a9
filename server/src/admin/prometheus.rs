//! Prints the metrics in Prometheus' text format, version 0.0.4.
//!
//! Names, types and quantiles are those of ZooKeeper's `PrometheusMetricsProvider`; `HELP` is ours. The
//! figures of the process have the names that Prometheus' client libraries give them. There is no JVM,
//! so there are no `jvm_` metrics but ZooKeeper's own.
//!
//! Source: `docs/zookeeper-protocol.md` section 20.2.

use std::fmt::Write as _;

use minikeeper_core::{state::UniverseState, turn::latency::Latency};

use crate::admin::{
    metrics::{METRICS, Metric, MetricKind, MetricUnit, MetricValue, MetricsSnapshot},
    process::{self, ProcessFigures},
};

/// The value of the header `Content-Type`.
pub(crate) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The quantiles of a summary: each label, and its thousandths. A basic one has the first alone.
const QUANTILES: [(&str, u64); 3] = [("0.5", 500), ("0.9", 900), ("0.99", 990)];

/// Returns the text of every metric.
pub(crate) fn text(shared: &UniverseState) -> String {
    let snapshot = MetricsSnapshot::take(shared);
    let mut text = String::with_capacity(32 << 10);
    for metric in METRICS {
        add(&mut text, metric, &metric.value(&snapshot));
    }
    if let Some(figures) = process::figures() {
        add_process(&mut text, &figures);
    }
    text
}

/// Appends a line.
macro_rules! line {
    ($text:expr, $($argument:tt)*) => {
        writeln!($text, $($argument)*).expect("writing to a string cannot fail")
    };
}

fn add(text: &mut String, metric: &Metric, value: &MetricValue<'_>) {
    let name = metric.name;
    let unit = match metric.unit {
        MetricUnit::Count => "",
        MetricUnit::Bytes => " (bytes)",
        MetricUnit::Milliseconds => " (milliseconds)",
    };
    let (kind, quantiles) = match metric.kind {
        MetricKind::Gauge | MetricKind::GaugeSet => ("gauge", 0),
        MetricKind::Counter | MetricKind::CounterSet => ("counter", 0),
        MetricKind::Summary | MetricKind::SummarySet => ("summary", 1),
        MetricKind::Quantiles | MetricKind::QuantilesSet => ("summary", QUANTILES.len()),
    };
    line!(text, "# HELP {name} {}{unit}", metric.help);
    line!(text, "# TYPE {name} {kind}");
    match value {
        MetricValue::Integer(value) => line!(text, "{name} {value}"),
        MetricValue::Double(value) => line!(text, "{name} {value}"),
        MetricValue::Set(values) => {
            for (key, value) in values {
                line!(text, "{name}{{key=\"{}\"}} {value}", escaped(key));
            }
        }
        MetricValue::Latency(latency) => add_summary(text, name, latency, &QUANTILES[..quantiles]),
    }
}

fn add_summary(text: &mut String, name: &str, latency: &Latency, quantiles: &[(&str, u64)]) {
    for (quantile, thousandths) in quantiles {
        if latency.count == 0 {
            line!(text, "{name}{{quantile=\"{quantile}\"}} NaN");
        } else {
            let ms = latency.quantile_ms(*thousandths);
            line!(text, "{name}{{quantile=\"{quantile}\"}} {ms}");
        }
    }
    line!(text, "{name}_count {}", latency.count);
    line!(text, "{name}_sum {}", latency.sum_ms);
}

fn add_process(text: &mut String, figures: &ProcessFigures) {
    macro_rules! add {
        ($($kind:ident $name:literal $help:literal $value:expr;)*) => {$(
            line!(text, concat!("# HELP process_", $name, " ", $help));
            line!(text, concat!("# TYPE process_", $name, " ", stringify!($kind)));
            line!(text, concat!("process_", $name, " {}"), $value);
        )*};
    }
    add! {
        counter "cpu_seconds_total" "Processor time of user and system (seconds)" figures.cpu_seconds;
        gauge "start_time_seconds" "Start of the process since 1970 (seconds)" figures.started_seconds;
        gauge "open_fds" "Open files" process::open_files();
        gauge "max_fds" "Limit of open files" process::open_files_max();
        gauge "virtual_memory_bytes" "Virtual memory (bytes)" figures.virtual_bytes;
        gauge "resident_memory_bytes" "Resident memory (bytes)" figures.resident_bytes;
    }
}

/// Escapes the value of a label.
fn escaped(value: &str) -> String {
    let value = value.replace('\\', "\\\\");
    value.replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_values_are_escaped() {
        assert_eq!(escaped("a\"b\\c\nd"), "a\\\"b\\\\c\\nd");
    }

    #[test]
    fn summary_has_quantiles_only_once_it_has_values() {
        let mut latency = Latency::default();
        let mut text = String::new();
        add_summary(&mut text, "x", &latency, &QUANTILES[..1]);
        latency.add(3, 10);
        add_summary(&mut text, "y", &latency, &QUANTILES);
        assert_eq!(
            text,
            "x{quantile=\"0.5\"} NaN\nx_count 0\nx_sum 0\ny{quantile=\"0.5\"} 3\n\
             y{quantile=\"0.9\"} 3\ny{quantile=\"0.99\"} 3\ny_count 10\ny_sum 30\n"
        );
    }

    #[test]
    fn help_has_no_character_that_needs_escaping() {
        for metric in METRICS {
            assert!(!metric.help.contains(['\\', '\n']), "{}", metric.help);
        }
    }
}
