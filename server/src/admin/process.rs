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

/// The figures of the process that Prometheus' client libraries report.
#[cfg(feature = "control")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProcessFigures {
    /// The processor time of user and system. Unit: seconds.
    pub(crate) cpu_seconds: f64,
    /// When it started, since 1970. Unit: seconds.
    pub(crate) started_seconds: f64,
    pub(crate) virtual_bytes: u64,
    pub(crate) resident_bytes: u64,
}

/// Returns the figures of this process; `None` if the system does not report them.
#[cfg(feature = "control")]
#[expect(
    clippy::cast_precision_loss,
    reason = "times since the start of a host have far fewer than 53 bits"
)]
pub(crate) fn figures() -> Option<ProcessFigures> {
    /// The unit of Linux' times: `USER_HZ`, on every architecture that Rust supports.
    const TICKS_PER_SECOND: f64 = 100.0;
    let stat = first_line("/proc/self/stat")?;
    // The name of the program, in parentheses, may contain blanks.
    let (_, after_name) = stat.rsplit_once(") ")?;
    let fields: Vec<_> = after_name.split(' ').collect();
    // The manual numbers the fields from 1, and the first one here is its third.
    let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
    let (user, system, started) = (field(14)?, field(15)?, field(22)?);
    let booted = number_after("/proc/stat", "btime")?;
    Some(ProcessFigures {
        cpu_seconds: (user + system) as f64 / TICKS_PER_SECOND,
        started_seconds: booted as f64 + started as f64 / TICKS_PER_SECOND,
        virtual_bytes: field(23)?,
        resident_bytes: number_after("/proc/self/status", "VmRSS:")? << 10,
    })
}
