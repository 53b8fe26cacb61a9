//! The table of AdminServer's commands: names, and the function that answers each.
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
use minikeeper_engine::{Engine, Listing};
use minikeeper_protocol::SessionId;
use serde_json::{Map, Value, json};

use crate::{
    admin::{
        four_letter::{
            client_words::{self, Row},
            java_text, server_words,
        },
        metrics::{self, MetricsSnapshot, Number},
        version::VERSION,
    },
    data,
    ensemble::ServerMode,
    order,
    peer::Peer,
    state::{UniverseState, reachability::Phase},
    turn::stats::Counters,
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

/// A command. To add one, add it to `COMMANDS`.
#[derive(Debug)]
pub(crate) struct Command {
    /// The name that answers and the list show, then its aliases.
    names: &'static [&'static str],
    pub(crate) access: Access,
    /// Whether it fails while the server is down.
    needs_server: bool,
    answer: fn(&UniverseState, &Parameters, u8) -> Map<String, Value>,
}

/// The decoded names and values of a query.
pub(crate) type Parameters = [(String, String)];

/// An answer: always an object with `command` and `error`.
#[derive(Debug)]
pub(crate) struct CommandAnswer {
    pub(crate) status: StatusCode,
    pub(crate) body: Map<String, Value>,
}

macro_rules! commands {
    ($($access:ident $needs_server:literal $($name:literal)|+ => $answer:expr;)*) => {
        const COMMANDS: &[Command] = &[$(Command {
            names: &[$($name),+],
            access: Access::$access,
            needs_server: $needs_server,
            answer: $answer,
        }),*];
    };
}

commands! {
    Read true "configuration" | "conf" | "config" => |shared, _, server| configuration(shared, server);
    Change true "connection_stat_reset" | "crst" => |shared, _, _| {
        client_words::crst(shared);
        Map::new()
    };
    Read true "connections" | "cons" => |shared, _, _| connections(shared, full);
    Read true "dirs" => |shared, _, _| {
        let (_, bytes) = shared.config.data_place();
        object(json!({"datadir_size": bytes, "logdir_size": bytes}))
    };
    Read true "dump" => |shared, _, _| dump(shared);
    Read false "environment" | "env" | "envi" => |_, _, _| {
        let pairs = server_words::environment().into_iter();
        order::collect(pairs.map(|(key, value)| (key.to_owned(), value.into())))
    };
    Read false "get_trace_mask" | "gtmk" => |shared, _, _| {
        object(json!({"tracemask": shared.trace_mask.load(Ordering::Relaxed)}))
    };
    Read true "hash" => |shared, _, _| hash(shared);
    Read true "initial_configuration" | "icfg" => |shared, _, _| initial_configuration(shared);
    Read true "is_read_only" | "isro" => |shared, _, server| {
        object(json!({"read_only": is_read_only(shared, server)}))
    };
    Read true "last_snapshot" | "lsnp" => |shared, _, _| last_snapshot(shared);
    Read true "leader" | "lead" => |shared, _, _| leader(shared);
    Read false "monitor" | "mntr" => |shared, _, server| monitor(shared, server);
    Change true "observer_connection_stat_reset" | "orst" => |_, _, _| Map::new();
    Read true "observers" | "obsr" => |_, _, _| {
        object(json!({"synced_observers": 0, "observers": json!([])}))
    };
    Credentials true "restore" | "rest" => |_, _, _| Map::new();
    Read true "ruok" => |_, _, _| Map::new();
    Read true "server_stats" | "srvr" => |shared, _, server| server_stats(shared, server);
    Change false "set_trace_mask" | "stmk" => set_trace_mask;
    Credentials true "snapshot" | "snap" => |_, _, _| Map::new();
    Change true "stat_reset" | "srst" => |shared, _, _| {
        server_words::srst(shared);
        Map::new()
    };
    Read true "stats" | "stat" => |shared, _, server| {
        let mut answer = server_stats(shared, server);
        answer.extend(connections(shared, brief));
        answer
    };
    Read false "system_properties" | "sysp" => |_, _, _| system_properties();
    Read true "voting_view" => |shared, _, _| voting_view(shared);
    Read true "watch_summary" | "wchs" => |shared, _, _| {
        let summary = shared.turns.watch_summary();
        object(json!({
            "num_connections": summary.connections,
            "num_paths": summary.paths,
            "num_total_watches": summary.watches,
        }))
    };
    Read true "watches" | "wchc" => |shared, _, _| {
        let room = client_words::room(&shared.config);
        let listing = shared.turns.inspect(|engine| engine.watches_by_connection(room));
        let mut answer = Map::new();
        let left_out = put_groups(&mut answer, "session_id_to_watched_paths", listing, id_key, Value::from);
        put_left_out(&mut answer, left_out);
        answer
    };
    Read true "watches_by_path" | "wchp" => |shared, _, _| {
        let room = client_words::room(&shared.config);
        let listing = shared.turns.watches_by_path(room);
        let mut answer = Map::new();
        let left_out = put_groups(&mut answer, "path_to_session_ids", listing, |path| path, id);
        put_left_out(&mut answer, left_out);
        answer
    };
    Read false "zabstate" => |_, _, _| object(json!({"voting": false, "zabstate": ""}));
}

/// Returns the first name of every command, sorted.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    COMMANDS.iter().map(|command| command.names[0])
}

/// Returns the command with this name or alias.
pub(crate) fn find(name: &str) -> Option<&'static Command> {
    COMMANDS
        .iter()
        .find(|command| command.names.contains(&name))
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
fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

/// Session ids are numbers in AdminServer's JSON.
fn id(session: SessionId) -> Value {
    session.0.into()
}

fn id_key(session: SessionId) -> String {
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

/// Says how many rows were omitted, if any were. ZooKeeper has no such key.
fn put_left_out(answer: &mut Map<String, Value>, left_out: usize) {
    if left_out > 0 {
        answer.insert("left_out".to_owned(), left_out.into());
    }
}

fn configuration(shared: &UniverseState, server: u8) -> Map<String, Value> {
    let config = &shared.config;
    let (dir, _) = config.data_place();
    let ensemble = &shared.server.ensemble;
    let addresses = ensemble.addresses(server);
    let mut answer = object(json!({
        "client_port": server_words::port(addresses.plain),
        "data_dir": dir,
        "data_log_dir": dir,
        "tick_time": config.tick_time_ms,
        "max_client_cnxns": config.connections_per_address_max,
        "min_session_timeout": config.timeout_min_ms(),
        "max_session_timeout": config.timeout_max_ms(),
        "server_id": ensemble.server_id(server),
        "client_port_listen_backlog": server_words::backlog(config),
    }));
    if let Some(address) = addresses.secure {
        answer.insert("secure_client_port".to_owned(), address.port().into());
    }
    answer
}

fn is_read_only(shared: &UniverseState, server: u8) -> bool {
    shared.server.ensemble.mode(server) == ServerMode::ReadOnly
}

/// A standalone server has no leader.
fn leader(shared: &UniverseState) -> Map<String, Value> {
    let ensemble = &shared.server.ensemble;
    match ensemble.leader().filter(|_| ensemble.len() > 1) {
        None => object(json!({"error": "server is not initialized"})),
        Some(leader) => object(json!({
            "is_leader": true,
            "leader_id": leader,
            "leader_ip": ensemble.addresses(leader).client().ip().to_string(),
        })),
    }
}

fn voting_view(shared: &UniverseState) -> Map<String, Value> {
    let ensemble = &shared.server.ensemble;
    let ids = ensemble.ids().filter(|_| ensemble.len() > 1);
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
fn initial_configuration(shared: &UniverseState) -> Map<String, Value> {
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

fn brief(row: &Row) -> Value {
    json!({
        "remote_socket_address": address(&row.stats.peer),
        "interest_ops": row.interest(),
        // Requests wait only in socket buffers.
        "outstanding_requests": 0,
        "packets_received": row.stats.received,
        "packets_sent": row.sent(),
    })
}

fn full(row: &Row) -> Value {
    let (session, timeout_ms) = row.session.unwrap_or((SessionId::NONE, 0));
    let stats = &row.stats;
    let mut fields = object(brief(row));
    fields.extend(object(json!({
        "session_id": id(session),
        "last_operation": stats.last_op.text(),
        "established": stats.established_ms,
        "session_timeout": timeout_ms,
        "last_cxid": stats.last_xid.map_or(-1, |xid| xid.0),
        "last_zxid": stats.last_zxid.0,
        "last_response_time": stats.last_reply_ms,
        "last_latency": stats.latency_last_ms,
        "min_latency": row.latency_min_ms(),
        "avg_latency": stats.latency_avg_ms(),
        "max_latency": stats.latency_max_ms,
    })));
    fields.into()
}

/// Lists connections. A server with two ports does not know which one a connection came to: all are
/// under `connections`.
fn connections(shared: &UniverseState, describe: fn(&Row) -> Value) -> Map<String, Value> {
    let (rows, left_out) = client_words::rows(shared);
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

fn dump(shared: &UniverseState) -> Map<String, Value> {
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

fn hash(shared: &UniverseState) -> Map<String, Value> {
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

fn last_snapshot(shared: &UniverseState) -> Map<String, Value> {
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

fn monitor(shared: &UniverseState, server: u8) -> Map<String, Value> {
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

fn server_stats(shared: &UniverseState, server: u8) -> Map<String, Value> {
    let snapshot = MetricsSnapshot::take(shared);
    let (counters, latency) = (&snapshot.counters, &snapshot.latency);
    let (_, bytes) = shared.config.data_place();
    let sizes = response_sizes(counters);
    object(json!({
        "version": VERSION,
        "read_only": is_read_only(shared, server),
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

fn set_trace_mask(shared: &UniverseState, parameters: &Parameters, _: u8) -> Map<String, Value> {
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
fn system_properties() -> Map<String, Value> {
    let pairs = server_words::environment().into_iter();
    let host = pairs.filter(|(key, _)| ["os.name", "os.arch", "os.version"].contains(key));
    order::collect(host.map(|(key, value)| (key.to_owned(), value.into())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_listed_once_and_first_names_are_sorted() {
        let all: Vec<_> = COMMANDS.iter().flat_map(|command| command.names).collect();
        let distinct: std::collections::BTreeSet<_> = all.iter().collect();
        assert_eq!(all.len(), distinct.len());
        assert!(names().is_sorted());
        assert_eq!(names().count(), 28);
        for name in all {
            assert!(find(name).is_some(), "{name}");
        }
    }
}
