//! The report as text.
