//! The system's figures for this process and its host. Read on request, never cached.

use std::fs;

fn first_line(path: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    text.lines().next().map(str::to_owned)
}

pub(crate) fn host_name() -> Option<String> {
    first_line("/proc/sys/kernel/hostname")
}

pub(crate) fn os_version() -> Option<String> {
    first_line("/proc/sys/kernel/osrelease")
}

/// The number of open files; 0 if the system does not report it.
pub(crate) fn open_files() -> u64 {
    const PATH: &str = "/proc/self/fd";
    // Since 6.2, Linux reports the number as the folder's size; older versions report 0.
    match fs::metadata(PATH).map_or(0, |folder| folder.len()) {
        0 => fs::read_dir(PATH).map_or(0, |files| files.count() as u64),
        files => files,
    }
}

/// The maximum number of open files; 0 if the system does not report it.
pub(crate) fn open_files_max() -> u64 {
    number_after("/proc/self/limits", "Max open files").unwrap_or(0)
}

/// The host's free and total memory, and the resident memory of this process, in MiB.
pub(crate) fn memory_mib() -> [u64; 3] {
    const HOST: &str = "/proc/meminfo";
    [
        (HOST, "MemAvailable:"),
        (HOST, "MemTotal:"),
        ("/proc/self/status", "VmRSS:"),
    ]
    .map(|(path, key)| number_after(path, key).unwrap_or(0) >> 10)
}

/// Returns the number after a key at the start of a line.
fn number_after(path: &str, key: &str) -> Option<u64> {
    let text = fs::read_to_string(path).ok()?;
    let value = text.lines().find_map(|line| line.strip_prefix(key))?;
    value.split_whitespace().next()?.parse().ok()
}
