//! The other servers and their locks.
