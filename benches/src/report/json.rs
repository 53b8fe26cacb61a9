//! The report as json.
