//! Apache ZooKeeper on loopback.
