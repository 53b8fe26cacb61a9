//! The version that the server reports.

/// The version in ZooKeeper's form, so that client tools can parse it: the protocol's
/// version, then ours.
pub(crate) const VERSION: &str = concat!(
    "3.9.5-minikeeper-",
    env!("CARGO_PKG_VERSION"),
    ", built on 2026-11-21 00:00 UTC"
);
