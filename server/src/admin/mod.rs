//! Reports for administrators: four-letter words, and the metrics they print.

pub(crate) mod four_letter;
pub(crate) mod metrics;
pub(crate) mod process;
pub(crate) mod version;
