//! Redis on loopback.
