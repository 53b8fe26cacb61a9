//! What the system says about the memory of this process.

use std::fs;

/// How much is resident, in KiB; 0 where the system does not say.
pub(crate) fn resident_kib() -> u64 {
    status("VmRSS:")
}

/// The most that was resident, in KiB; 0 where the system does not say.
pub(crate) fn resident_max_kib() -> u64 {
    status("VmHWM:")
}

fn status(key: &str) -> u64 {
    let text = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let value = text.lines().find_map(|line| line.strip_prefix(key));
    let number = value.and_then(|value| value.split_whitespace().next()?.parse().ok());
    number.unwrap_or(0)
}
