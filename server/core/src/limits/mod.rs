//! Limits on single requests and on all connections together: what counts against them, how often
//! they were reached, and what is logged then.
//!
//! The engine limits the tree, the sessions and the watches; turns count in [`hits`] how often. The
//! number of connections is limited by [`open_connections`], and the rate of handshakes by
//! `throttle`. These limits cost a request nothing if they are off and the request is served right
//! after it was read.

pub mod hits;
pub mod open_connections;
mod throttle;

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use minikeeper_engine::Input;
use minikeeper_protocol::{ErrorCode, Request, frame};

use crate::{
    config::Config,
    limits::{hits::LimitHits, throttle::Throttle},
    outbox::Outbox,
};

/// The number of times that limits were reached, since the start or since `srst`.
///
/// A field has the name of ZooKeeper's metric, if there is one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct LimitCounts {
    /// Connections beyond `connections_max` or `connections_per_address_max`, and handshakes
    /// beyond `connection_throttle_tokens`.
    pub connection_rejected: u64,
    /// Connections that took longer than `handshake_timeout`.
    pub sessionless_connections_expired: u64,
    /// Requests beyond `large_request_bytes_max`.
    pub large_requests_rejected: u64,
    /// Requests that waited longer than `throttled_op_wait_time`.
    pub throttled_ops: u64,
    /// Requests whose connection ended while they waited for the output of earlier ones to be read.
    pub stale_requests_dropped: u64,
    /// Connections closed over `unserved_bytes_max`. ZooKeeper has no such limit.
    pub unserved_bytes_rejected: u64,
    /// Handshakes left without a reply over `sessions_max`. ZooKeeper has no such limit.
    pub sessions_rejected: u64,
    /// Requests refused over `watches_max`. ZooKeeper has no such limit.
    pub watches_rejected: u64,
    /// Requests refused over `tree_bytes_max`. ZooKeeper has no such limit.
    pub tree_bytes_rejected: u64,
    /// Requests refused, and connections closed, over `reply_bytes_max`. ZooKeeper has no such
    /// limit.
    pub replies_rejected: u64,
    /// Requests refused over `multi_operations_max`. ZooKeeper has no such limit.
    pub multi_operations_rejected: u64,
    /// Access lists refused over `acl_entries_max`. ZooKeeper has no such limit.
    pub acls_rejected: u64,
    /// Connections closed over `identities_max`. ZooKeeper has no such limit.
    pub identities_rejected: u64,
    /// Connections closed over `outbox_bytes_max`. ZooKeeper has no such limit.
    pub outboxes_overflowed: u64,
    /// Connections closed over `unsent_bytes_max`. ZooKeeper has no such limit.
    pub unsent_bytes_rejected: u64,
    /// TLS handshakes that failed, other than by taking too long.
    pub unsuccessful_handshakes: u64,
}

/// A limit that closes the connection that reaches it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Breach {
    ConnectionThrottle,
    LargeRequests,
    UnservedBytes,
}

impl std::fmt::Display for Breach {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::ConnectionThrottle => "no connection_throttle_tokens left",
            Self::LargeRequests => "large_request_bytes_max reached",
            Self::UnservedBytes => "unserved_bytes_max reached",
        })
    }
}

/// The size of one connection's unserved input, as counted against the limits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Held {
    /// The memory of all of it. Unit: bytes.
    pub(crate) bytes: usize,
    /// The length of the large requests in it, including the missing part of the last one. Unit:
    /// bytes.
    pub(crate) large_bytes: usize,
}

/// The counts against the limits, for all connections together.
#[derive(Debug, Default)]
pub struct Limits {
    throttle: Throttle,
    held_bytes: AtomicUsize,
    held_large_bytes: AtomicUsize,
    /// The number of times that input has begun to wait.
    held_number: AtomicU64,
    connections_rejected: AtomicU64,
    connections_per_address_rejected: AtomicU64,
    open_files_rejected: AtomicU64,
    handshakes_rejected: AtomicU64,
    sessionless_connections_expired: AtomicU64,
    large_requests_rejected: AtomicU64,
    throttled_ops: AtomicU64,
    stale_requests_dropped: AtomicU64,
    unserved_bytes_rejected: AtomicU64,
    unsuccessful_handshakes: AtomicU64,
}

impl Limits {
    /// Returns all counts. `hits` are those that turns count, under the engine lock.
    pub fn counts(&self, hits: LimitHits) -> LimitCounts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        LimitCounts {
            connection_rejected: read(&self.connections_rejected)
                + read(&self.connections_per_address_rejected)
                + read(&self.open_files_rejected)
                + read(&self.handshakes_rejected),
            sessionless_connections_expired: read(&self.sessionless_connections_expired),
            large_requests_rejected: read(&self.large_requests_rejected),
            throttled_ops: read(&self.throttled_ops),
            stale_requests_dropped: read(&self.stale_requests_dropped),
            unserved_bytes_rejected: read(&self.unserved_bytes_rejected),
            sessions_rejected: hits.sessions,
            watches_rejected: hits.watches,
            tree_bytes_rejected: hits.tree_bytes,
            replies_rejected: hits.reply_bytes,
            multi_operations_rejected: hits.multi_operations,
            acls_rejected: hits.acl_entries,
            identities_rejected: hits.identities,
            outboxes_overflowed: hits.outboxes,
            unsent_bytes_rejected: hits.unsent,
            unsuccessful_handshakes: read(&self.unsuccessful_handshakes),
        }
    }

    /// Resets the counts as `srst` does.
    pub fn reset(&self) {
        for counter in [
            &self.connections_rejected,
            &self.connections_per_address_rejected,
            &self.open_files_rejected,
            &self.handshakes_rejected,
            &self.sessionless_connections_expired,
            &self.large_requests_rejected,
            &self.throttled_ops,
            &self.stale_requests_dropped,
            &self.unserved_bytes_rejected,
            &self.unsuccessful_handshakes,
        ] {
            counter.store(0, Ordering::Relaxed);
        }
    }

    /// Counts a connection that was refused when accepted.
    pub(crate) fn refused(&self, setting: &str, max: usize, address: std::net::IpAddr) {
        // A count for each limit: each is named in the log.
        let rejected = match setting {
            "connections_max" => &self.connections_rejected,
            "connections_per_address_max" => &self.connections_per_address_rejected,
            _ => &self.open_files_rejected,
        };
        if count(rejected, 1) {
            tracing::warn!(%address, setting, max, "limit reached: a connection is refused");
        }
    }

    /// Counts connections that were closed because they did not finish the handshake in time.
    pub(crate) fn expired(&self, config: &Config, connections: u64) {
        if connections > 0 && count(&self.sessionless_connections_expired, connections) {
            let max_ms = config.handshake_timeout.as_millis();
            tracing::warn!(
                setting = "handshake_timeout",
                max_ms,
                "limit reached: a connection is closed"
            );
        }
    }

    /// Admits a handshake, or fails if there is no token for it.
    pub(crate) fn admit(
        &self,
        config: &Config,
        now_ms: impl FnOnce() -> u64,
    ) -> Result<(), Breach> {
        let tokens = config.connection_throttle_tokens;
        if tokens == 0 || self.throttle.take(config, now_ms()) {
            return Ok(());
        }
        if count(&self.handshakes_rejected, 1) {
            tracing::warn!(
                setting = "connection_throttle_tokens",
                max = tokens,
                "limit reached: a handshake is refused"
            );
        }
        Err(Breach::ConnectionThrottle)
    }

    /// Admits a whole request of this length, or fails if large requests take too much memory.
    pub(crate) fn admit_request(&self, config: &Config, length: usize) -> Result<(), Breach> {
        if is_large(config, length)
            && self.held_large_bytes.load(Ordering::Relaxed) + length
                > config.large_request_bytes_max
        {
            return Err(self.reject_large(config));
        }
        Ok(())
    }

    /// Counts one connection's unserved input in place of its previous size.
    ///
    /// # Errors
    /// When all connections together have too much of it. Then this one's is not counted.
    pub(crate) fn hold(
        &self,
        config: &Config,
        held: &mut Held,
        memory_bytes: usize,
        input: &[u8],
    ) -> Result<(), Breach> {
        let result = self.try_hold(config, held, memory_bytes, input);
        if result == Err(Breach::UnservedBytes) {
            self.reject_unserved(config, 1);
        }
        result
    }

    fn try_hold(
        &self,
        config: &Config,
        held: &mut Held,
        memory_bytes: usize,
        input: &[u8],
    ) -> Result<(), Breach> {
        let wanted = Held {
            bytes: memory_bytes,
            large_bytes: large_bytes(config, input),
        };
        if *held == wanted {
            return Ok(());
        }
        self.release(held);
        *held = wanted;
        let held_bytes = self.held_bytes.fetch_add(wanted.bytes, Ordering::Relaxed) + wanted.bytes;
        let held_large_bytes = self
            .held_large_bytes
            .fetch_add(wanted.large_bytes, Ordering::Relaxed)
            + wanted.large_bytes;
        let breach = if held_bytes > config.unserved_bytes_max {
            Breach::UnservedBytes
        } else if wanted.large_bytes > 0 && held_large_bytes > config.large_request_bytes_max {
            self.reject_large(config)
        } else {
            return Ok(());
        };
        self.release(held);
        Err(breach)
    }

    /// Stops counting a connection's unserved input, because it is served or dropped.
    pub(crate) fn release(&self, held: &mut Held) {
        let Held { bytes, large_bytes } = std::mem::take(held);
        if bytes > 0 {
            self.held_bytes.fetch_sub(bytes, Ordering::Relaxed);
        }
        if large_bytes > 0 {
            self.held_large_bytes
                .fetch_sub(large_bytes, Ordering::Relaxed);
        }
    }

    /// Counts one connection's unserved input in place of its previous size. If all connections
    /// together have too much, calls `free` with this input's number and the number of bytes to
    /// free from input that has waited longer. `free` returns how many bytes it has freed, and of
    /// how many connections.
    ///
    /// # Errors
    /// When there is still too much, because this input has waited longest. Then it is not counted.
    pub(crate) fn hold_rest(
        &self,
        config: &Config,
        held: &mut Held,
        outbox: &Outbox,
        memory_bytes: usize,
        input: &[u8],
        free: impl FnOnce(u64, usize) -> (usize, u64),
    ) -> Result<(), Breach> {
        let since = match outbox.held_since() {
            0 => self.held_number.fetch_add(1, Ordering::Relaxed) + 1,
            since => since,
        };
        // A connection that needed room may have taken it meanwhile.
        held.bytes = outbox.take_held();
        let mut result = self.try_hold(config, held, memory_bytes, input);
        if result == Err(Breach::UnservedBytes) {
            let bytes_max = config.unserved_bytes_max;
            let (freed, closed) = free(since, memory_bytes.saturating_add(bytes_max / 8));
            self.held_bytes.fetch_sub(freed, Ordering::Relaxed);
            self.reject_unserved(config, closed);
            result = self.hold(config, held, memory_bytes, input);
        }
        if result.is_ok() {
            outbox.set_held(held.bytes, since);
        }
        result
    }

    /// Stops counting a connection's unserved input, which [`Limits::hold_rest`] counted.
    pub(crate) fn release_rest(&self, held: &mut Held, outbox: &Outbox) {
        held.bytes = outbox.take_held();
        outbox.set_held(0, 0);
        self.release(held);
    }

    fn reject_large(&self, config: &Config) -> Breach {
        if count(&self.large_requests_rejected, 1) {
            tracing::warn!(
                setting = "large_request_bytes_max",
                max = config.large_request_bytes_max,
                threshold = config.large_request_threshold,
                "limit reached: a connection is closed"
            );
        }
        Breach::LargeRequests
    }

    fn reject_unserved(&self, config: &Config, connections: u64) {
        if connections > 0 && count(&self.unserved_bytes_rejected, connections) {
            tracing::warn!(
                setting = "unserved_bytes_max",
                max = config.unserved_bytes_max,
                "limit reached: connections whose input waits longest are closed"
            );
        }
    }

    /// Counts those of the served inputs whose reply was THROTTLEDOP.
    ///
    /// Inputs refused for another reason do not count, such as a path outside the universe.
    pub(crate) fn throttled(&self, config: &Config, served: &[Input]) {
        let is_throttled = |input: &&Input| {
            matches!(
                input,
                Input::Refused {
                    error: ErrorCode::ThrottledOp,
                    ..
                }
            )
        };
        let requests = served.iter().filter(is_throttled).count();
        if requests > 0 && count(&self.throttled_ops, requests as u64) {
            let max_ms = config.throttled_op_wait_time.as_millis();
            tracing::warn!(
                setting = "throttled_op_wait_time",
                max_ms,
                "limit reached: a request is not served"
            );
        }
    }

    /// Counts a failed TLS handshake.
    #[cfg(feature = "tls")]
    pub(crate) fn handshake_failed(&self) {
        count(&self.unsuccessful_handshakes, 1);
    }

    /// Counts the requests in the unserved input of a connection that has ended.
    pub(crate) fn dropped(&self, input: &[u8]) {
        let requests = frames(input).filter(|frame| frame.is_whole).count();
        if requests > 0 {
            count(&self.stale_requests_dropped, requests as u64);
        }
    }
}

/// Refuses requests that have waited too long: their reply will be THROTTLEDOP.
///
/// Requests that ZooKeeper does not queue, or never throttles, are still served.
///
/// Source: `Request.isThrottlable`; `docs/zookeeper-protocol.md` section 17.2, observed on a live
/// 3.9.5.
pub(crate) fn throttle(inputs: &mut [Input]) {
    for input in inputs {
        match input {
            Input::Request {
                request:
                    Request::Ping
                    | Request::CloseSession
                    | Request::Auth { .. }
                    | Request::Sasl { .. }
                    // Not for clients: always treated as unknown operations.
                    | Request::CreateSession
                    | Request::Check { .. },
                ..
            } => {}
            Input::Request { .. } | Input::Undecodable { .. } => {
                input.refuse(ErrorCode::ThrottledOp);
            }
            _ => {}
        }
    }
}

/// Adds to a counter. Returns whether to log: the first time, then ever more rarely, because a
/// client may hit a limit in a loop.
fn count(counter: &AtomicU64, more: u64) -> bool {
    let before = counter.fetch_add(more, Ordering::Relaxed);
    before.checked_ilog2() != (before + more).checked_ilog2()
}

const fn is_large(config: &Config, length: usize) -> bool {
    config.large_request_threshold > 0 && length > config.large_request_threshold
}

fn large_bytes(config: &Config, input: &[u8]) -> usize {
    if config.large_request_threshold == 0 {
        return 0;
    }
    frames(input)
        .filter(|frame| is_large(config, frame.length))
        .map(|frame| frame.length)
        .sum()
}

/// A frame at the start of unserved input.
struct Frame {
    /// The length in its prefix.
    length: usize,
    is_whole: bool,
}

/// Splits an input into frames, up to the first with an invalid length prefix.
fn frames(input: &[u8]) -> impl Iterator<Item = Frame> {
    let mut rest = input;
    std::iter::from_fn(move || {
        let prefix = rest.first_chunk::<{ frame::PREFIX_BYTES }>()?;
        let length = usize::try_from(i32::from_be_bytes(*prefix)).ok()?;
        let body = &rest[frame::PREFIX_BYTES..];
        let is_whole = body.len() >= length;
        rest = body.get(length..).unwrap_or_default();
        Some(Frame { length, is_whole })
    })
}

#[cfg(test)]
mod tests {
    use minikeeper_engine::ConnId;
    use minikeeper_protocol::Xid;

    use super::*;

    #[test]
    fn log_lines_become_rarer() {
        let counter = AtomicU64::new(0);
        let due: Vec<_> = (1..=20).filter(|_| count(&counter, 1)).collect();
        assert_eq!(due, [1, 2, 4, 8, 16]);
        assert!(count(&counter, 100));
        assert!(!count(&counter, 1));
    }

    /// The reply to a late request with a path outside its universe is NONODE, which is no
    /// throttling.
    #[test]
    fn requests_refused_for_another_reason_are_not_throttled() {
        let refused = |error| Input::Refused {
            conn: ConnId(0),
            xid: Xid(1),
            error,
            request: None,
        };
        let (limits, config) = (Limits::default(), Config::default());
        let served = [ErrorCode::NoNode, ErrorCode::ThrottledOp].map(refused);
        limits.throttled(&config, &served);
        assert_eq!(limits.counts(LimitHits::default()).throttled_ops, 1);
    }

    #[test]
    fn held_bytes_are_counted_once_and_released() {
        let config = Config {
            unserved_bytes_max: 100,
            ..Config::default()
        };
        let limits = Limits::default();
        let (mut first, mut second) = (Held::default(), Held::default());
        assert_eq!(limits.hold(&config, &mut first, 60, b""), Ok(()));
        assert_eq!(limits.hold(&config, &mut first, 70, b""), Ok(()));
        let breach = Err(Breach::UnservedBytes);
        assert_eq!(limits.hold(&config, &mut second, 31, b""), breach);
        assert_eq!(limits.hold(&config, &mut second, 30, b""), Ok(()));
        assert_eq!(limits.hold(&config, &mut second, 31, b""), breach);
        limits.release(&mut first);
        limits.release(&mut first);
        assert_eq!(limits.hold(&config, &mut second, 100, b""), Ok(()));
        limits.release(&mut second);
        assert_eq!(limits.held_bytes.load(Ordering::Relaxed), 0);
        assert_eq!(
            limits.counts(LimitHits::default()).unserved_bytes_rejected,
            2
        );
    }

    #[test]
    fn large_request_counts_as_soon_as_its_prefix_has_arrived() {
        let config = Config {
            large_request_threshold: 10,
            large_request_bytes_max: 25,
            ..Config::default()
        };
        let mut input = vec![0, 0, 0, 10];
        input.extend([0; 10]);
        assert_eq!(large_bytes(&config, &input), 0);
        input.extend([0, 0, 0, 11]);
        assert_eq!(large_bytes(&config, &input), 11);
        input.extend([0; 11]);
        input.extend([0, 0, 0, 14, 0]);
        assert_eq!(large_bytes(&config, &input), 25);
        assert_eq!(frames(&input).filter(|frame| frame.is_whole).count(), 2);
        let limits = Limits::default();
        let mut held = Held::default();
        assert_eq!(limits.hold(&config, &mut held, 1, &input), Ok(()));
        assert_eq!(limits.admit_request(&config, 10), Ok(()));
        let breach = Err(Breach::LargeRequests);
        assert_eq!(limits.admit_request(&config, 11), breach);
        let mut other = Held::default();
        assert_eq!(limits.hold(&config, &mut other, 1, &[0, 0, 0, 11]), breach);
        limits.release(&mut held);
        assert_eq!(limits.hold(&config, &mut other, 1, &[0, 0, 0, 11]), Ok(()));
        assert_eq!(
            limits.counts(LimitHits::default()).large_requests_rejected,
            2
        );
        // A prefix that closes the connection begins no frame.
        assert_eq!(frames(&[0xff; 20]).count(), 0);
    }
}
