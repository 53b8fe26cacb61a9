//! Words about the whole server: srvr, conf, dirs, hash, mntr, srst, envi.
//!
//! Source: `docs/zookeeper-protocol.md` sections 18.2, 18.3, 18.5 and 20.1.

use std::{fmt::Write as _, net::SocketAddr};

use minikeeper_core::{
    config::Config, ensemble::ServerMode, state::UniverseState, turn::stats::Counters,
};

use super::java_text;
use crate::admin::{
    fields::{self, ReportField, number},
    metrics::{self, MetricsSnapshot, Number},
    process,
    version::VERSION,
};

/// Returns the first line of srvr and stat.
pub(crate) fn version_line() -> String {
    format!("Zookeeper version: {VERSION}\n")
}

/// Returns the last lines of srvr and stat.
pub(crate) fn summary(shared: &UniverseState, server: u8) -> String {
    let snapshot = MetricsSnapshot::take(shared);
    let (counters, latency) = (&snapshot.counters, &snapshot.latency);
    let role = shared.server.ensemble.role(server);
    // Proposals are not counted: there are none.
    let proposals = match role {
        "leader" => "Proposal sizes last/min/max: -1/-1/-1\n",
        _ => "",
    };
    format!(
        "Latency min/avg/max: {}/{}/{}\n\
         Received: {}\nSent: {}\nConnections: {}\nOutstanding: 0\nZxid: {}\n\
         Mode: {role}\nNode count: {}\n{proposals}",
        latency.min_ms(),
        java_text::double(latency.avg_ms()),
        latency.max_ms(),
        counters.packets_received,
        counters.packets_sent,
        snapshot.connections,
        snapshot.zxid,
        snapshot.znodes(),
    )
}

pub(crate) fn srvr(shared: &UniverseState, server: u8) -> String {
    version_line() + &summary(shared, server)
}

pub(crate) fn isro(shared: &UniverseState, server: u8) -> String {
    let is_read_only = is_read_only(shared, server);
    String::from(if is_read_only { "ro" } else { "rw" })
}

pub(crate) fn is_read_only(shared: &UniverseState, server: u8) -> bool {
    shared.server.ensemble.mode(server) == ServerMode::ReadOnly
}

pub(crate) fn conf(shared: &UniverseState, server: u8) -> String {
    let pairs = fields::pairs(configuration(shared, server)).map(|pair| pair + "\n");
    pairs.collect()
}

/// Returns ZooKeeper's settings in its order. Without a data directory, its name is empty.
pub(crate) fn configuration(shared: &UniverseState, server: u8) -> [ReportField; 12] {
    let config = &shared.config;
    let (dir, bytes) = config.data_place();
    let ensemble = &shared.server.ensemble;
    let addresses = ensemble.addresses(server);
    let secure = addresses.secure.map_or("", |_| "secure_client_port");
    let (min_ms, max_ms) = (config.timeout_min_ms(), config.timeout_max_ms());
    let connections_max = config.connections_per_address_max;
    [
        number("clientPort", "client_port", port(addresses.plain)),
        number("secureClientPort", secure, port(addresses.secure)),
        ("dataDir", "data_dir", dir.clone(), None),
        number("dataDirSize", "", bytes),
        ("dataLogDir", "data_log_dir", dir, None),
        number("dataLogSize", "", bytes),
        number("tickTime", "tick_time", config.tick_time_ms),
        number("maxClientCnxns", "max_client_cnxns", connections_max),
        number("minSessionTimeout", "min_session_timeout", min_ms),
        number("maxSessionTimeout", "max_session_timeout", max_ms),
        number(
            "clientPortListenBacklog",
            "client_port_listen_backlog",
            backlog(config),
        ),
        number("serverId", "server_id", ensemble.server_id(server)),
    ]
}

/// Returns the port of an address as ZooKeeper prints it: -1 for none.
pub(crate) fn port(address: Option<SocketAddr>) -> i32 {
    address.map_or(-1, |address| address.port().into())
}

/// Returns the backlog as ZooKeeper prints it: -1 if it is not set.
pub(crate) fn backlog(config: &Config) -> i64 {
    let is_set = config.listen_backlog != Config::default().listen_backlog;
    if is_set {
        config.listen_backlog.into()
    } else {
        -1
    }
}

/// Prints the sizes of snapshots and logs. Both are in one folder, which counts twice, as in ZooKeeper.
pub(crate) fn dirs(shared: &UniverseState) -> String {
    let (_, bytes) = shared.config.data_place();
    format!("datadir_size: {bytes}\nlogdir_size: {bytes}\n")
}

/// Prints recent digests of the tree; nothing if the engine does not record them.
pub(crate) fn hash(shared: &UniverseState) -> String {
    let digests = shared.turns.inspect(minikeeper_engine::Engine::digests);
    let mut text = String::new();
    for (zxid, digest) in digests {
        // Java prints it as a signed number.
        let digest = digest.cast_signed();
        writeln!(text, "{:x}: {digest}", zxid.0).expect("writing to a string cannot fail");
    }
    text
}

pub(crate) fn srst(shared: &UniverseState) -> String {
    shared.turns.recount(Counters::reset);
    shared.limits.reset();
    "Server stats reset.\n".to_owned()
}

pub(crate) fn mntr(shared: &UniverseState, server: u8) -> String {
    let role = shared.server.ensemble.role(server);
    let mut text = format!("zk_version\t{VERSION}\nzk_server_state\t{role}\n");
    metrics::each_number(&MetricsSnapshot::take(shared), |key, number| {
        let value = match number {
            Number::Integer(value) => value.to_string(),
            Number::Double(value) => java_text::double(value),
        };
        writeln!(text, "zk_{key}\t{value}").expect("writing to a string cannot fail");
    });
    text
}

/// The text that ZooKeeper prints for an unset property.
const NONE: &str = "<NA>";

pub(crate) fn envi() -> String {
    let mut text = String::from("Environment:\n");
    for (key, value) in environment() {
        text.push_str(&format!("{key}={value}\n"));
    }
    text
}

/// Returns ZooKeeper's keys in its order. There is no JVM, and the library does not read the
/// environment. The memory is that of the host (free, max) and of this process (total).
pub(crate) fn environment() -> [(&'static str, String); 18] {
    let [free, max, total] = process::memory_mib().map(|mib| format!("{mib}MB"));
    let host_name = process::host_name();
    let os_version = process::os_version();
    let or_none = |value: Option<String>| value.unwrap_or_else(|| NONE.to_owned());
    let none = || NONE.to_owned();
    // Java's names of systems and processors.
    let os_name = match std::env::consts::OS {
        "linux" => "Linux",
        "macos" => "Mac OS X",
        other => other,
    };
    let os_arch = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        other => other,
    };
    [
        ("zookeeper.version", VERSION.to_owned()),
        ("host.name", or_none(host_name)),
        ("java.version", none()),
        ("java.vendor", none()),
        ("java.home", none()),
        ("java.class.path", none()),
        ("java.library.path", none()),
        ("java.io.tmpdir", none()),
        ("java.compiler", none()),
        ("os.name", os_name.to_owned()),
        ("os.arch", os_arch.to_owned()),
        ("os.version", or_none(os_version)),
        ("user.name", none()),
        ("user.home", none()),
        ("user.dir", none()),
        ("os.memory.free", free),
        ("os.memory.max", max),
        ("os.memory.total", total),
    ]
}
