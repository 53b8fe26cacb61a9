//! The report as svg.
