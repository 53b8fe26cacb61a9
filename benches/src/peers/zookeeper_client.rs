//! The lock of the crate zookeeper-client.
