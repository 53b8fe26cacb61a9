//! The resident memory of this process.

use std::fs;

/// Returns the resident memory, in KiB; 0 where the system does not report it.
pub(crate) fn resident_kib() -> u64 {
    status("VmRSS:")
}

/// Returns the peak of the resident memory, in KiB; 0 where the system does not report it.
pub(crate) fn resident_max_kib() -> u64 {
    status("VmHWM:")
}

fn status(key: &str) -> u64 {
    let text = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let value = text.lines().find_map(|line| line.strip_prefix(key));
    let number = value.and_then(|value| value.split_whitespace().next()?.parse().ok());
    number.unwrap_or(0)
}
