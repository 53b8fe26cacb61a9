//! The table of metrics: name, help, unit, kind and getter.
//!
//! `mntr`, `/commands/monitor` and `/metrics` print it. It has all of ZooKeeper's names, so that dashboards made for ZooKeeper work; a
//! metric that does not apply here is 0, and its help says why.
//!
//! Source: `docs/zookeeper-protocol.md` section 20.1.

use std::collections::BTreeMap;

use minikeeper_core::{
    limits::LimitCounts,
    state::UniverseState,
    turn::{
        core::LockedState,
        latency::Latency,
        stats::{Counters, Sizes},
    },
};
use minikeeper_engine::{Counts, QuotaTotals, Room};
use minikeeper_protocol::Zxid;

use crate::admin::process;

/// The kind of a metric.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum MetricKind {
    /// Goes up and down.
    Gauge,
    /// A gauge for each child of the root that has a quota.
    GaugeSet,
    /// Only goes up, until it is reset.
    Counter,
    /// Average, smallest, largest, count and sum.
    Summary,
    /// A summary with quantiles.
    Quantiles,
    /// A counter for each value of a label; none is measured.
    CounterSet,
    /// A summary for each value of a label; none is measured.
    SummarySet,
    /// A summary with quantiles for each value of a label; none is measured.
    QuantilesSet,
}

/// The unit of a metric.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum MetricUnit {
    Count,
    Bytes,
    Milliseconds,
}

/// The quantiles of [`MetricKind::Quantiles`]: the name of each in `mntr`, and its thousandths.
pub(crate) const QUANTILES: [(&str, u64); 4] =
    [("p50_", 500), ("p95_", 950), ("p99_", 990), ("p999_", 999)];

/// One row of the table.
#[derive(Debug)]
pub(crate) struct Metric {
    /// ZooKeeper's name, without `zk_`.
    pub(crate) name: &'static str,
    #[cfg_attr(
        not(any(test, feature = "control")),
        expect(dead_code, reason = "for /metrics")
    )]
    pub(crate) help: &'static str,
    #[cfg_attr(
        not(any(test, feature = "control")),
        expect(dead_code, reason = "for /metrics")
    )]
    pub(crate) unit: MetricUnit,
    pub(crate) kind: MetricKind,
    get: Get,
}

/// The source of a value.
#[derive(Debug)]
enum Get {
    Zero,
    ZeroDouble,
    /// A summary without a value.
    Empty,
    /// No label has a value.
    NoLabels,
    Count(fn(&MetricsSnapshot) -> u64),
    Size(fn(&MetricsSnapshot) -> usize),
    /// A size that is -1 before the first reply or event.
    Answer(fn(&Sizes) -> usize),
    /// For each child of the root that has a quota.
    Quotas(fn(&QuotaTotals) -> Option<i64>),
    Double(fn(&MetricsSnapshot) -> f64),
    Latency(fn(&MetricsSnapshot) -> &Latency),
}

pub(crate) enum MetricValue<'a> {
    Integer(i64),
    Double(f64),
    /// By child of the root.
    Set(Vec<(&'a str, i64)>),
    Latency(&'a Latency),
}

impl Metric {
    pub(crate) fn value<'a>(&self, snapshot: &'a MetricsSnapshot) -> MetricValue<'a> {
        let whole = |size| i64::try_from(size).unwrap_or(i64::MAX);
        match self.get {
            Get::Zero => MetricValue::Integer(0),
            Get::ZeroDouble => MetricValue::Double(0.0),
            Get::Empty => MetricValue::Latency(&snapshot.nothing),
            Get::NoLabels => MetricValue::Set(Vec::new()),
            Get::Count(get) => {
                MetricValue::Integer(i64::try_from(get(snapshot)).unwrap_or(i64::MAX))
            }
            Get::Size(get) => MetricValue::Integer(whole(get(snapshot))),
            Get::Answer(get) => {
                let sizes = &snapshot.counters.response_sizes;
                let is_empty = sizes.is_empty();
                MetricValue::Integer(if is_empty { -1 } else { whole(get(sizes)) })
            }
            Get::Quotas(get) => {
                let quotas = snapshot.quotas.iter();
                MetricValue::Set(
                    quotas
                        .filter_map(|(name, quota)| Some((name.as_str(), get(quota)?)))
                        .collect(),
                )
            }
            Get::Double(get) => MetricValue::Double(get(snapshot)),
            Get::Latency(get) => MetricValue::Latency(get(snapshot)),
        }
    }
}

/// A number of `mntr`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Number {
    Integer(i64),
    Double(f64),
}

/// Calls `put` with each key of `mntr`, without `zk_`, and its number.
pub(crate) fn each_number(snapshot: &MetricsSnapshot, mut put: impl FnMut(String, Number)) {
    use Number::{Double, Integer};
    for metric in METRICS {
        let name = metric.name;
        match metric.value(snapshot) {
            MetricValue::Integer(value) => put(name.to_owned(), Integer(value)),
            MetricValue::Double(value) => put(name.to_owned(), Double(value)),
            MetricValue::Set(values) => {
                for (top, value) in values {
                    put(format!("{top}_{name}"), Integer(value));
                }
            }
            MetricValue::Latency(latency) => {
                let whole = |value: u64| Integer(i64::try_from(value).unwrap_or(i64::MAX));
                put(format!("avg_{name}"), Double(latency.avg_ms()));
                put(format!("min_{name}"), whole(latency.min_ms().into()));
                put(format!("max_{name}"), whole(latency.max_ms().into()));
                put(format!("cnt_{name}"), whole(latency.count));
                put(format!("sum_{name}"), whole(latency.sum_ms));
                if metric.kind == MetricKind::Quantiles {
                    for (key, thousandths) in QUANTILES {
                        let quantile = latency.quantile_ms(thousandths);
                        put(format!("{key}{name}"), whole(quantile.into()));
                    }
                }
            }
        }
    }
}

/// Every number at one moment between turns.
#[derive(Debug)]
pub(crate) struct MetricsSnapshot {
    pub(crate) counters: Counters,
    /// The latency of reads and updates together.
    pub(crate) latency: Latency,
    pub(crate) zxid: Zxid,
    pub(crate) connections: usize,
    counts: Counts,
    watches: usize,
    data_bytes: usize,
    quotas: BTreeMap<String, QuotaTotals>,
    pub(crate) uptime_ms: u64,
    limits: LimitCounts,
    nothing: Latency,
}

impl MetricsSnapshot {
    pub(crate) fn take(shared: &UniverseState) -> Self {
        let uptime_ms = shared.turns.clock().elapsed_ms();
        shared.turns.read(|locked| {
            let LockedState {
                engine,
                members,
                counters,
                journal: _,
            } = locked;
            Self {
                counters: counters.clone(),
                latency: counters.latency(),
                zxid: engine.zxid(),
                connections: members.len(),
                counts: engine.counts(),
                watches: engine.watches_in_tables(),
                data_bytes: engine.data_bytes(),
                quotas: engine.quota_totals(Room {
                    rows: shared.config.four_letter_rows_max,
                    // Each name is printed with several numbers, and the text is copied.
                    bytes: shared.config.reply_bytes_max() / 16,
                }),
                uptime_ms,
                limits: shared.limits.counts(counters.limit_hits),
                nothing: Latency::default(),
            }
        })
    }

    /// Returns the number of failed TLS handshakes.
    #[cfg(feature = "control")]
    pub(crate) const fn auth_failed(&self) -> u64 {
        self.limits.unsuccessful_handshakes
    }

    /// Returns the number of znodes. The root counts twice, as in ZooKeeper.
    pub(crate) const fn znodes(&self) -> usize {
        self.counts.znodes + 1
    }
}

macro_rules! metrics {
    ($($kind:ident $unit:ident $name:literal $help:literal $get:ident $(($from:expr))?;)*) => {
        /// Every metric, in the order of the reference.
        pub(crate) const METRICS: &[Metric] = &[$(Metric {
            name: $name,
            help: $help,
            unit: MetricUnit::$unit,
            kind: MetricKind::$kind,
            get: Get::$get $(($from))?,
        }),*];
    };
}

metrics! {
    Gauge Milliseconds "avg_latency"
        "Average time to answer a request" Double(|s| s.latency.avg_ms());
    Gauge Milliseconds "max_latency"
        "Longest time to answer a request" Count(|s| s.latency.max_ms().into());
    Gauge Milliseconds "min_latency"
        "Shortest time to answer a request" Count(|s| s.latency.min_ms().into());
    Gauge Count "packets_received"
        "Received frames and words" Count(|s| s.counters.packets_received);
    Gauge Count "packets_sent" "Sent frames" Count(|s| s.counters.packets_sent);
    Gauge Count "num_alive_connections" "Connections" Size(|s| s.connections);
    Gauge Count "outstanding_requests" "Requests wait only in sockets" Zero;
    Gauge Milliseconds "uptime" "Time since the start" Count(|s| s.uptime_ms);
    Gauge Count "znode_count" "Znodes, the root counted twice" Size(MetricsSnapshot::znodes);
    Gauge Count "watch_count" "Watches, in either table" Size(|s| s.watches);
    Gauge Count "ephemerals_count" "Ephemeral znodes" Size(|s| s.counts.ephemerals);
    Gauge Bytes "approximate_data_size" "Paths and data" Size(|s| s.data_bytes);
    Gauge Count "global_sessions" "Sessions" Size(|s| s.counts.sessions);
    Gauge Count "local_sessions" "All sessions are global" Zero;
    Gauge Count "open_file_descriptor_count" "Open files" Count(|_| process::open_files());
    Gauge Count "max_file_descriptor_count"
        "Limit of open files" Count(|_| process::open_files_max());
    Gauge Count "connection_drop_probability" "Handshakes are not throttled" ZeroDouble;
    Gauge Bytes "last_client_response_size" "Newest reply or event" Answer(|s| s.last);
    Gauge Bytes "max_client_response_size" "Largest reply or event" Answer(|s| s.max);
    Gauge Bytes "min_client_response_size" "Smallest reply or event" Answer(|s| s.min);
    Gauge Count "outstanding_tls_handshake" "Pending TLS handshakes have no separate limit" Zero;
    Gauge Count "auth_failed_count"
        "Failed TLS handshakes" Count(|s| s.limits.unsuccessful_handshakes);
    Gauge Count "non_mtls_remote_conn_count" "A port is either with or without TLS" Zero;
    Gauge Count "non_mtls_local_conn_count" "A port is either with or without TLS" Zero;
    GaugeSet Count "quota_count_limit_per_namespace"
        "Znodes that the quota allows" Quotas(|q| q.limits.map(|both| both[0]));
    GaugeSet Count "quota_count_usage_per_namespace"
        "Znodes that the quota counts" Quotas(|q| q.usage.map(|both| both[0]));
    GaugeSet Bytes "quota_bytes_limit_per_namespace"
        "Bytes that the quota allows" Quotas(|q| q.limits.map(|both| both[1]));
    GaugeSet Bytes "quota_bytes_usage_per_namespace"
        "Bytes that the quota counts" Quotas(|q| q.usage.map(|both| both[1]));
    Counter Milliseconds "add_dead_watcher_stall_time" "Watches go with their connection" Zero;
    Counter Bytes "bytes_received_count"
        "Bytes of received frames" Count(|s| s.counters.bytes_received);
    Counter Count "cnxn_closed_without_zk_server_running" "A failed server does not answer" Zero;
    Counter Count "commit_count" "Only ensembles" Zero;
    Counter Count "connection_drop_count"
        "Connections that the client closed" Count(|s| s.counters.dropped);
    Counter Count "connection_rejected"
        "Connections refused because of a limit" Count(|s| s.limits.connection_rejected);
    Counter Count "connection_request_count" "Handshakes" Count(|s| s.counters.handshakes);
    Counter Count "connection_revalidate_count"
        "Handshakes that resumed a session" Count(|s| s.counters.revalidations);
    Counter Count "dead_watchers_cleared" "Watches go with their connection" Zero;
    Counter Count "dead_watchers_queued" "Watches go with their connection" Zero;
    Counter Count "diff_count" "Only ensembles" Zero;
    Counter Count "digest_mismatches_count" "There is no other digest to compare with" Zero;
    Counter Count "ensemble_auth_fail" "No ensemble names are checked" Zero;
    Counter Count "ensemble_auth_skip" "No ensemble names are checked" Zero;
    Counter Count "ensemble_auth_success" "No ensemble names are checked" Zero;
    Counter Count "insecure_admin_count" "No admin server with TLS" Zero;
    Counter Count "large_requests_rejected"
        "Requests beyond large_request_bytes_max" Count(|s| s.limits.large_requests_rejected);
    Counter Count "learner_commit_received_count" "Only ensembles" Zero;
    Counter Count "learner_proposal_received_count" "Only ensembles" Zero;
    Counter Count "looking_count" "Only ensembles" Zero;
    Counter Count "outstanding_changes_queued" "No request waits between stages" Zero;
    Counter Count "outstanding_changes_removed" "No request waits between stages" Zero;
    Counter Count "prep_processor_request_queued" "No request waits between stages" Zero;
    Counter Count "proposal_count" "Only ensembles" Zero;
    Counter Count "quit_leading_due_to_disloyal_voter" "Only ensembles" Zero;
    Counter Count "request_commit_queued" "Only ensembles" Zero;
    Counter Count "request_throttle_wait_count" "Requests are not throttled" Zero;
    Counter Count "requests_not_forwarded_to_commit_processor" "Only ensembles" Zero;
    Counter Bytes "response_bytes"
        "Bytes of replies, without pings" Count(|s| s.counters.response_bytes);
    Counter Count "response_packet_cache_hits" "No reply is cached" Zero;
    Counter Count "response_packet_cache_misses" "No reply is cached" Zero;
    Counter Count "response_packet_get_children_cache_hits" "No reply is cached" Zero;
    Counter Count "response_packet_get_children_cache_misses" "No reply is cached" Zero;
    Counter Count "restore_error_count" "Not measured" Zero;
    Counter Count "restore_rate_limited_count" "Not measured" Zero;
    Counter Count "revalidate_count" "Only ensembles" Zero;
    Counter Count "sessionless_connections_expired"
        "Handshakes that took too long" Count(|s| s.limits.sessionless_connections_expired);
    Counter Count "skip_learner_request_to_next_processor_count" "Only ensembles" Zero;
    Counter Count "snap_count" "Only ensembles" Zero;
    Counter Count "snapshot_error_count" "Not measured" Zero;
    Counter Count "snapshot_rate_limited_count" "Not measured" Zero;
    Counter Count "stale_replies" "Requests of a closed connection are not served" Zero;
    Counter Count "stale_requests" "Requests of a closed connection are not served" Zero;
    Counter Count "stale_requests_dropped"
        "Requests still waiting when their connection closed" Count(|s| s.limits.stale_requests_dropped);
    Counter Count "stale_sessions_expired"
        "Sessions that expired" Count(|s| s.counters.sessions_expired);
    Counter Count "sync_processor_request_queued" "No request waits between stages" Zero;
    Counter Count "throttled_ops"
        "Requests that waited longer than throttled_op_wait_time" Count(|s| s.limits.throttled_ops);
    Counter Count "tls_handshake_exceeded" "Pending TLS handshakes have no separate limit" Zero;
    Counter Count "unrecoverable_error_count" "A failed server does not answer" Zero;
    Counter Count "unsuccessful_handshake"
        "Failed TLS handshakes" Count(|s| s.limits.unsuccessful_handshakes);
    Counter Bytes "watch_bytes" "Bytes of events" Count(|s| s.counters.watch_bytes);
    Summary Count "commit_commit_proc_req_queued" "Only ensembles" Empty;
    Summary Milliseconds "commit_process_time" "Only ensembles" Empty;
    Summary Count "concurrent_request_processing_in_commit_processor" "Only ensembles" Empty;
    Summary Count "connection_token_deficit" "Requests are not throttled" Empty;
    Summary Milliseconds "dbinittime" "Not measured" Empty;
    Summary Milliseconds "election_time" "Only ensembles" Empty;
    Summary Milliseconds "follower_sync_time" "Only ensembles" Empty;
    Summary Milliseconds "fsynctime" "Not measured" Empty;
    Summary Count "inflight_diff_count" "Only ensembles" Empty;
    Summary Count "inflight_snap_count" "Only ensembles" Empty;
    Summary Milliseconds "leader_unavailable_time" "Only ensembles" Empty;
    Summary Count "learner_request_processor_queue_size" "Only ensembles" Empty;
    Summary Bytes "netty_queued_buffer_capacity" "No Netty buffers" Empty;
    Summary Count "node_changed_watch_count" "Not counted per change" Empty;
    Summary Count "node_children_watch_count" "Not counted per change" Empty;
    Summary Count "node_created_watch_count" "Not counted per change" Empty;
    Summary Count "node_deleted_watch_count" "Not counted per change" Empty;
    Summary Milliseconds "observer_sync_time" "Only ensembles" Empty;
    Summary Count "pending_session_queue_size" "Only ensembles" Empty;
    Summary Milliseconds "prep_process_time" "No request waits between stages" Empty;
    Summary Count "prep_processor_queue_size" "No request waits between stages" Empty;
    Summary Milliseconds "proposal_process_time" "No request waits between stages" Empty;
    Summary Count "read_commit_proc_issued" "Only ensembles" Empty;
    Summary Count "read_commit_proc_req_queued" "Only ensembles" Empty;
    Summary Count "reads_after_write_in_session_queue" "Only ensembles" Empty;
    Summary Count "reads_issued_from_session_queue" "Only ensembles" Empty;
    Summary Count "requests_in_session_queue" "Only ensembles" Empty;
    Summary Milliseconds "restore_time" "Not measured" Empty;
    Summary Count "session_queues_drained" "Only ensembles" Empty;
    Summary Milliseconds "snapshottime" "Not measured" Empty;
    Summary Milliseconds "socket_closing_time" "No request waits between stages" Empty;
    Summary Milliseconds "startup_snap_load_time" "Not measured" Empty;
    Summary Milliseconds "startup_txns_load_time" "Not measured" Empty;
    Summary Count "startup_txns_loaded" "Not measured" Empty;
    Summary Milliseconds "sync_process_time" "No request waits between stages" Empty;
    Summary Count "sync_processor_batch_size" "No request waits between stages" Empty;
    Summary Count "sync_processor_queue_size" "No request waits between stages" Empty;
    Summary Milliseconds "time_waiting_empty_pool_in_commit_processor_read_ms"
        "Only ensembles" Empty;
    Summary Milliseconds "unavailable_time" "Only ensembles" Empty;
    Summary Milliseconds "write_batch_time_in_commit_processor" "Only ensembles" Empty;
    Summary Count "write_commit_proc_issued" "Only ensembles" Empty;
    Summary Count "write_commit_proc_req_queued" "Only ensembles" Empty;
    Quantiles Milliseconds "close_session_prep_time" "No request waits between stages" Empty;
    Quantiles Milliseconds "commit_propagation_latency" "No request waits between stages" Empty;
    Quantiles Milliseconds "dead_watchers_cleaner_latency" "Watches go with their connection" Empty;
    Quantiles Milliseconds "jvm_pause_time_ms" "There is no JVM" Empty;
    Quantiles Milliseconds "local_write_committed_time_ms" "Only ensembles" Empty;
    Quantiles Milliseconds "om_commit_process_time_ms" "Only ensembles" Empty;
    Quantiles Milliseconds "om_proposal_process_time_ms" "No request waits between stages" Empty;
    Quantiles Milliseconds "prep_processor_queue_time_ms" "No request waits between stages" Empty;
    Quantiles Milliseconds "propagation_latency" "No request waits between stages" Empty;
    Quantiles Milliseconds "proposal_ack_creation_latency" "Only ensembles" Empty;
    Quantiles Milliseconds "proposal_latency" "Only ensembles" Empty;
    Quantiles Milliseconds "quorum_ack_latency" "Only ensembles" Empty;
    Quantiles Milliseconds "read_commitproc_time_ms" "Only ensembles" Empty;
    Quantiles Milliseconds "read_final_proc_time_ms" "No request waits between stages" Empty;
    Quantiles Milliseconds "readlatency"
        "Time to answer reads" Latency(|s| &s.counters.read_latency);
    Quantiles Milliseconds "request_throttle_queue_time_ms" "Requests are not throttled" Empty;
    Quantiles Milliseconds "server_write_committed_time_ms" "Only ensembles" Empty;
    Quantiles Milliseconds "sync_processor_queue_and_flush_time_ms"
        "No request waits between stages" Empty;
    Quantiles Milliseconds "sync_processor_queue_flush_time_ms"
        "No request waits between stages" Empty;
    Quantiles Milliseconds "sync_processor_queue_time_ms" "No request waits between stages" Empty;
    Quantiles Milliseconds "updatelatency"
        "Time to answer writes" Latency(|s| &s.counters.update_latency);
    Quantiles Milliseconds "write_commitproc_time_ms" "Only ensembles" Empty;
    Quantiles Milliseconds "write_final_proc_time_ms" "No request waits between stages" Empty;
    CounterSet Count "quota_exceeded_error_per_namespace" "Not measured" NoLabels;
    SummarySet Count "learner_handler_qp_size" "Only ensembles" NoLabels;
    SummarySet Bytes "read_per_namespace" "Not measured" NoLabels;
    SummarySet Bytes "write_per_namespace" "Not measured" NoLabels;
    QuantilesSet Milliseconds "ack_latency" "Only ensembles" NoLabels;
    QuantilesSet Milliseconds "learner_handler_qp_time_ms" "Only ensembles" NoLabels;
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// `docs/zookeeper-protocol.md` section 20.1: 494 lines, two of which are not metrics.
    #[test]
    fn every_zookeeper_metric_is_listed_once_with_help() {
        let mut names = BTreeSet::new();
        let mut lines = 0;
        for metric in METRICS {
            assert!(names.insert(metric.name), "{metric:?} twice");
            assert!(!metric.help.is_empty(), "{metric:?}");
            lines += match metric.kind {
                MetricKind::GaugeSet
                | MetricKind::CounterSet
                | MetricKind::SummarySet
                | MetricKind::QuantilesSet => 0,
                MetricKind::Gauge | MetricKind::Counter => 1,
                MetricKind::Summary => 5,
                MetricKind::Quantiles => 5 + QUANTILES.len(),
            };
            let is_time = metric.unit == MetricUnit::Milliseconds;
            assert!(
                metric.kind != MetricKind::Quantiles || is_time,
                "{metric:?}"
            );
        }
        assert_eq!(lines, 494 - 2);
    }
}
