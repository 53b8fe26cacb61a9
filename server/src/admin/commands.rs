//! AdminServer's commands. `admin/reports.rs` lists them.
//!
//! Keys and types are those of ZooKeeper 3.9.5, standalone; `tests/interop/admin/run` compares them
//! with a live one. The data is that of the four-letter words.
//!
//! Source: `docs/zookeeper-protocol.md` section 19; ZooKeeper's `Commands` and `CommandBase`.

use std::{
    sync::atomic::Ordering,
    time::{Duration, UNIX_EPOCH},
};

use hyper::StatusCode;
use minikeeper_core::{
    data, order,
    peer::Peer,
    state::{UniverseState, reachability::Phase},
    turn::stats::Counters,
};
use minikeeper_engine::{Engine, Listing};
use minikeeper_protocol::SessionId;
use serde_json::{Map, Value, json};

use crate::admin::{
    fields::ReportField,
    four_letter::{
        client_words::{self, Row},
        java_text, server_words,
    },
    metrics::{self, MetricsSnapshot, Number},
    reports::REPORTS,
    version::VERSION,
};

/// What a request does to the server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Access {
    Read,
    /// It resets or sets something, though its method is GET, as in ZooKeeper.
    Change,
    /// ZooKeeper asks for credentials; not served here.
    Credentials,
}

/// A command.
#[derive(Debug)]
pub(crate) struct Command {
    /// The name that answers and the list show, then its aliases besides the four-letter word.
    pub(crate) names: &'static [&'static str],
    pub(crate) access: Access,
    /// Whether it fails while the server is down.
    pub(crate) needs_server: bool,
    pub(crate) answer: fn(&UniverseState, &Parameters, u8) -> Map<String, Value>,
}

/// The decoded names and values of a query.
pub(crate) type Parameters = [(String, String)];

/// An answer: always an object with `command` and `error`.
#[derive(Debug)]
pub(crate) struct CommandAnswer {
    pub(crate) status: StatusCode,
    pub(crate) body: Map<String, Value>,
}

/// Returns the first name of every command, sorted.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    let commands = REPORTS.iter().flat_map(|report| report.commands);
    commands.map(Command::name)
}

/// Returns the command with this name or alias.
pub(crate) fn find(name: &str) -> Option<&'static Command> {
    let report = REPORTS.iter().find(|report| {
        let mut names = report.commands.iter().flat_map(|command| command.names);
        names.any(|it| *it == name) || report.words.iter().any(|word| word.name == name)
    });
    report?.commands.first()
}

impl Command {
    /// Returns the first name.
    pub(crate) const fn name(&self) -> &'static str {
        self.names[0]
    }

    /// Answers a request that is admitted. `given` is the name or alias in it; `has_credentials` says whether it has the header
    /// `Authorization`.
    pub(crate) fn run(
        &self,
        shared: &UniverseState,
        given: &str,
        parameters: &Parameters,
        server: u8,
        has_credentials: bool,
    ) -> CommandAnswer {
        let is_up = shared.server.reachability.phase() == Phase::Up && !shared.turns.is_broken();
        if self.needs_server && !is_up {
            let error = "This ZooKeeper instance is not currently serving requests";
            return CommandAnswer::error(StatusCode::OK, given, error);
        }
        if self.access == Access::Credentials {
            return if has_credentials {
                let error = "this server takes and restores snapshots with `minikeeper ctl` \
                             export-data and import-data";
                CommandAnswer::error(StatusCode::SERVICE_UNAVAILABLE, given, error)
            } else {
                let error = "Auth info is missing for the command";
                CommandAnswer::error(StatusCode::UNAUTHORIZED, given, error)
            };
        }
        let mut body = (self.answer)(shared, parameters, server);
        body.insert("command".to_owned(), self.name().into());
        body.entry("error").or_insert(Value::Null);
        CommandAnswer {
            status: StatusCode::OK,
            body,
        }
    }
}

impl CommandAnswer {
    /// An answer with only an error.
    pub(crate) fn error(status: StatusCode, command: &str, error: &str) -> Self {
        let body = object(json!({"command": command, "error": error}));
        Self { status, body }
    }

    /// ZooKeeper's answer for a name that is not in the table.
    pub(crate) fn unknown(name: &str) -> Self {
        Self::error(StatusCode::OK, name, &format!("Unknown command: {name}"))
    }
}

/// Returns the fields of a JSON object.
pub(super) fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

/// Session ids are numbers in AdminServer's JSON.
pub(super) fn id(session: SessionId) -> Value {
    session.0.into()
}

pub(super) fn id_key(session: SessionId) -> String {
    session.0.to_string()
}

/// Puts a listing into an answer, as arrays by key. Returns the number of omitted rows.
fn put_groups<H, R>(
    answer: &mut Map<String, Value>,
    name: &str,
    listing: Listing<H, R>,
    key: impl Fn(H) -> String,
    row: impl Fn(R) -> Value,
) -> usize {
    let mut groups = Map::new();
    for group in listing.groups {
        let rows: Vec<_> = group.rows.into_iter().map(&row).collect();
        groups.insert(key(group.head), rows.into());
    }
    answer.insert(name.to_owned(), groups.into());
    listing.left_out
}

/// Returns the answer with one listing.
pub(super) fn groups<H, R>(
    name: &str,
    listing: Listing<H, R>,
    key: impl Fn(H) -> String,
    row: impl Fn(R) -> Value,
) -> Map<String, Value> {
    let mut answer = Map::new();
    let left_out = put_groups(&mut answer, name, listing, key, row);
    put_left_out(&mut answer, left_out);
    answer
}

/// Says how many rows were omitted, if any were. ZooKeeper has no such key.
fn put_left_out(answer: &mut Map<String, Value>, left_out: usize) {
    if left_out > 0 {
        answer.insert("left_out".to_owned(), left_out.into());
    }
}

/// A standalone server has no leader.
pub(super) fn leader(shared: &UniverseState) -> Map<String, Value> {
    let ensemble = &shared.server.ensemble;
    match ensemble.leader().filter(|_| ensemble.size() > 1) {
        None => object(json!({"error": "server is not initialized"})),
        Some(leader) => object(json!({
            "is_leader": true,
            "leader_id": leader,
            "leader_ip": ensemble.addresses(leader).client().ip().to_string(),
        })),
    }
}

pub(super) fn voting_view(shared: &UniverseState) -> Map<String, Value> {
    let ensemble = &shared.server.ensemble;
    let ids = ensemble.ids().filter(|_| ensemble.size() > 1);
    let entry = |id: u8| {
        let address = ensemble.addresses(id).client();
        let value = json!({
            "server_addresses": [address.to_string()],
            "election_addresses": [address.to_string()],
            "client_address": address.to_string(),
            "learner_type": "participant",
        });
        (id.to_string(), value)
    };
    object(json!({"current_config": order::collect::<Map<_, _>, _>(ids.map(entry))}))
}

/// Returns the settings in the notation of a `zoo.cfg`; ZooKeeper returns the text of its file.
pub(super) fn initial_configuration(shared: &UniverseState) -> Map<String, Value> {
    let config = &shared.config;
    let mut text = format!("tickTime={}\n", config.tick_time_ms);
    if let Some(dir) = &config.data_dir {
        text += &format!("dataDir={}\n", dir.display());
    }
    text += &format!(
        "clientPort={}\nclientPortAddress={}\nmaxClientCnxns={}\nminSessionTimeout={}\n\
         maxSessionTimeout={}\n",
        server_words::port(config.has_plain_port().then_some(config.listen)),
        config.listen.ip(),
        config.connections_per_address_max,
        config.timeout_min_ms(),
        config.timeout_max_ms(),
    );
    object(json!({"initial_configuration": text}))
}

/// Prints an address as Jackson prints Java's.
fn address(peer: &Peer) -> String {
    let text = java_text::address(peer);
    text.strip_prefix('/').unwrap_or(&text).to_owned()
}

/// Returns values under the names of the command.
pub(super) fn named(fields: impl IntoIterator<Item = ReportField>) -> Map<String, Value> {
    let named = fields.into_iter().filter(|(_, name, ..)| !name.is_empty());
    order::collect(named.map(|(_, name, text, number)| {
        let value = number.map_or_else(|| text.into(), Value::from);
        (name.to_owned(), value)
    }))
}

/// Lists connections. A server with two ports does not know which one a connection came to: all are
/// under `connections`.
pub(super) fn connections(
    shared: &UniverseState,
    describe: fn(&Row) -> Vec<ReportField>,
) -> Map<String, Value> {
    let (rows, left_out) = client_words::rows(shared);
    let describe = |row: &Row| -> Value {
        let mut answer = named(describe(row));
        let address = address(&row.stats.peer);
        answer.insert("remote_socket_address".to_owned(), address.into());
        answer.insert("interest_ops".to_owned(), row.interest().into());
        answer.into()
    };
    let rows: Vec<_> = rows.iter().map(describe).collect();
    let (plain, secure) = if shared.config.has_plain_port() {
        (rows, Vec::new())
    } else {
        (Vec::new(), rows)
    };
    let mut answer = Map::new();
    answer.insert("connections".to_owned(), plain.into());
    answer.insert("secure_connections".to_owned(), secure.into());
    put_left_out(&mut answer, left_out);
    answer
}

pub(super) fn dump(shared: &UniverseState) -> Map<String, Value> {
    let room = client_words::room(&shared.config);
    let (sessions, ephemerals) = shared
        .turns
        .inspect(|engine| (engine.expiries(room), engine.ephemerals(room)));
    let mut answer = Map::new();
    let times = "expiry_time_to_session_ids";
    let paths = "session_id_to_ephemeral_paths";
    let left_out = put_groups(&mut answer, times, sessions, |ms| ms.to_string(), id)
        + put_groups(&mut answer, paths, ephemerals, id_key, Value::from);
    put_left_out(&mut answer, left_out);
    answer
}

pub(super) fn hash(shared: &UniverseState) -> Map<String, Value> {
    /// The version of the way to compute digests.
    const DIGEST_VERSION: u32 = 2;
    let digests = shared.turns.inspect(Engine::digests);
    let digests: Vec<_> = digests
        .into_iter()
        .map(|(zxid, digest)| {
            json!({
                "zxid": zxid.0,
                // Java prints it as a signed number.
                "digest": digest.cast_signed(),
                "digest_version": DIGEST_VERSION,
            })
        })
        .collect();
    object(json!({"digests": digests}))
}

pub(super) fn last_snapshot(shared: &UniverseState) -> Map<String, Value> {
    let (zxid, timestamp) = match data::newest_snapshot(shared.config.data_dir.as_deref()) {
        None => (-1, -1),
        Some((zxid, saved_at)) => {
            let since = saved_at.duration_since(UNIX_EPOCH);
            let seconds = since.as_ref().map_or(0, Duration::as_secs);
            (zxid.0, i64::try_from(seconds).unwrap_or(i64::MAX))
        }
    };
    object(json!({"zxid": format!("{zxid:x}"), "timestamp": timestamp}))
}

pub(super) fn monitor(shared: &UniverseState, server: u8) -> Map<String, Value> {
    let mut answer =
        object(json!({"version": VERSION, "server_state": shared.server.ensemble.role(server)}));
    metrics::each_number(&MetricsSnapshot::take(shared), |key, number| {
        let number = match number {
            Number::Integer(value) => value.into(),
            Number::Double(value) => value.into(),
        };
        answer.insert(key, number);
    });
    answer
}

pub(super) fn server_stats(shared: &UniverseState, server: u8) -> Map<String, Value> {
    let snapshot = MetricsSnapshot::take(shared);
    let (counters, latency) = (&snapshot.counters, &snapshot.latency);
    let (_, bytes) = shared.config.data_place();
    let sizes = response_sizes(counters);
    object(json!({
        "version": VERSION,
        "read_only": server_words::is_read_only(shared, server),
        "server_stats": {
            "packets_sent": counters.packets_sent,
            "packets_received": counters.packets_received,
            "fsync_threshold_exceed_count": 0,
            "client_response_stats": sizes,
            "data_dir_size": bytes,
            "log_dir_size": bytes,
            "provider_null": false,
            "last_processed_zxid": snapshot.zxid.0,
            "outstanding_requests": 0,
            "server_state": shared.server.ensemble.role(server),
            "avg_latency": latency.avg_ms(),
            "max_latency": latency.max_ms(),
            "min_latency": latency.min_ms(),
            "num_alive_client_connections": snapshot.connections,
            "auth_failed_count": snapshot.auth_failed(),
            "non_mtlsremote_conn_count": 0,
            "non_mtlslocal_conn_count": 0,
            "uptime": snapshot.uptime_ms,
        },
        "client_response": sizes,
        "node_count": snapshot.znodes(),
    }))
}

/// Returns the sizes of replies and events; -1 before the first.
fn response_sizes(counters: &Counters) -> Value {
    let sizes = &counters.response_sizes;
    if sizes.is_empty() {
        return json!({"last_buffer_size": -1, "min_buffer_size": -1, "max_buffer_size": -1});
    }
    json!({
        "last_buffer_size": sizes.last,
        "min_buffer_size": sizes.min,
        "max_buffer_size": sizes.max,
    })
}

pub(super) fn set_trace_mask(
    shared: &UniverseState,
    parameters: &Parameters,
    _: u8,
) -> Map<String, Value> {
    let given = parameters.iter().find(|(name, _)| name == "traceMask");
    let error = "setTraceMask requires long traceMask argument";
    let Some((_, given)) = given else {
        return object(json!({"error": error}));
    };
    match given.parse::<i64>() {
        Ok(mask) => {
            shared.trace_mask.store(mask, Ordering::Relaxed);
            object(json!({"tracemask": mask}))
        }
        Err(_) => object(json!({"error": format!("{error}, got {given}")})),
    }
}

/// There is no JVM; these are its properties of the host.
pub(super) fn system_properties() -> Map<String, Value> {
    let pairs = server_words::environment().into_iter();
    let host = pairs.filter(|(key, _)| ["os.name", "os.arch", "os.version"].contains(key));
    order::collect(host.map(|(key, value)| (key.to_owned(), value.into())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_listed_once_and_first_names_are_sorted() {
        assert!(names().is_sorted_by(|one, next| one < next));
        assert_eq!(names().count(), 28);
        for report in REPORTS {
            for command in report.commands {
                let words = report.words.iter().map(|word| word.name);
                for name in command.names.iter().copied().chain(words) {
                    let found = find(name).unwrap();
                    assert_eq!(found.name(), command.name(), "{name} is listed twice");
                }
            }
        }
    }
}
