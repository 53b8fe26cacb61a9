//! etcd's own lock.
