//! etcd on loopback.
