//! The report as html.

/// Not written yet.
#[must_use]
pub fn html(_report: &super::Report) -> String {
    String::new()
}
