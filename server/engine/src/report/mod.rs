//! Reads the whole state: invariants, text, listings, digests. Nothing here changes it.

pub(crate) mod check;
pub(crate) mod digest;
pub(crate) mod dump;
pub(crate) mod inspect;
pub(crate) mod session_report;
