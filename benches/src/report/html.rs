//! The report as html.
