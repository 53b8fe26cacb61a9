//! Words about the process: envi.
//!
//! Source: `docs/zookeeper-protocol.md` section 18.6.

use crate::admin::{process, version::VERSION};

/// What the original prints for a property that is not set.
const NONE: &str = "<NA>";

/// The keys of the original in its order. There is no Java machine, and the library reads no
/// environment; the memory is that of the host (free, max) and of this process (total).
pub(crate) fn envi() -> String {
    let [free, max, total] = process::memory_mib().map(|mib| format!("{mib}MB"));
    let host_name = process::host_name();
    let os_version = process::os_version();
    let or_none = |value: &Option<String>| value.clone().unwrap_or_else(|| NONE.to_owned());
    // As Java names them.
    let os_name = match std::env::consts::OS {
        "linux" => "Linux",
        "macos" => "Mac OS X",
        other => other,
    };
    let os_arch = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        other => other,
    };
    let mut text = String::from("Environment:\n");
    for (key, value) in [
        ("zookeeper.version", VERSION),
        ("host.name", &or_none(&host_name)),
        ("java.version", NONE),
        ("java.vendor", NONE),
        ("java.home", NONE),
        ("java.class.path", NONE),
        ("java.library.path", NONE),
        ("java.io.tmpdir", NONE),
        ("java.compiler", NONE),
        ("os.name", os_name),
        ("os.arch", os_arch),
        ("os.version", &or_none(&os_version)),
        ("user.name", NONE),
        ("user.home", NONE),
        ("user.dir", NONE),
        ("os.memory.free", &free),
        ("os.memory.max", &max),
        ("os.memory.total", &total),
    ] {
        text.push_str(&format!("{key}={value}\n"));
    }
    text
}
