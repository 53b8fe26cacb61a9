//! Looking at a running server from outside.

pub(crate) mod four_letter;
pub(crate) mod metrics;
pub(crate) mod process;
pub(crate) mod version;
