//! The table of reports: the four-letter word that prints each, and AdminServer's command that returns it.
//!
//! Source: `docs/zookeeper-protocol.md` sections 18.2 and 19.

use std::sync::atomic::Ordering;

#[cfg(feature = "control")]
use {
    crate::admin::commands::*,
    minikeeper_core::order,
    serde_json::{Map, Value, json},
};

use minikeeper_core::state::words::Word;

use crate::admin::four_letter::{
    client_words::{self, watches, watches_by_connection, watches_by_path},
    server_words, words,
};

/// A report. To add one, add it to `REPORTS`.
#[derive(Debug)]
pub(crate) struct Report {
    /// The word, if there is one.
    pub(crate) words: &'static [Word],
    /// The command, if there is one.
    #[cfg(feature = "control")]
    pub(crate) commands: &'static [Command],
}

macro_rules! reports {
    ($(
        [$($word:expr)?] $($access:ident $needs_server:literal $($name:literal)|+ => $answer:expr)?;
    )*) => {
        pub(crate) const REPORTS: &[Report] = &[$(Report {
            words: &[$($word)?],
            #[cfg(feature = "control")]
            commands: &[$(Command {
                names: &[$($name),+],
                access: Access::$access,
                needs_server: $needs_server,
                answer: $answer,
            })?],
        }),*];
    };
}

// In square brackets the word; then what the command does, whether it fails while the server is down, its name and aliases, and
// what answers it. The word is an alias, too.
reports! {
    [Word::new("conf", |shared, server, _| server_words::conf(shared, server))]
    Read true "configuration" | "config" => |shared, _, server| {
        named(server_words::configuration(shared, server))
    };
    [Word::new("crst", |shared, _, _| client_words::crst(shared))]
    Change true "connection_stat_reset" => |shared, _, _| {
        client_words::crst(shared);
        Map::new()
    };
    [Word::new("cons", |shared, _, _| client_words::cons(shared)).exposing_clients()]
    Read true "connections" => |shared, _, _| connections(shared, client_words::Row::full);
    [Word::new("dirs", |shared, _, _| server_words::dirs(shared))]
    Read true "dirs" => |shared, _, _| {
        let (_, bytes) = shared.config.data_place();
        object(json!({"datadir_size": bytes, "logdir_size": bytes}))
    };
    [Word::new("dump", |shared, _, _| client_words::dump(shared)).exposing_clients()]
    Read true "dump" => |shared, _, _| dump(shared);
    [Word::new("envi", |_, _, _| server_words::envi())]
    Read false "environment" | "env" => |_, _, _| {
        let pairs = server_words::environment().into_iter();
        order::collect(pairs.map(|(key, value)| (key.to_owned(), value.into())))
    };
    [Word::new("gtmk", |shared, _, _| shared.trace_mask.load(Ordering::Relaxed).to_string())]
    Read false "get_trace_mask" => |shared, _, _| {
        object(json!({"tracemask": shared.trace_mask.load(Ordering::Relaxed)}))
    };
    [Word::new("hash", |shared, _, _| server_words::hash(shared))]
    Read true "hash" => |shared, _, _| hash(shared);
    [] Read true "initial_configuration" | "icfg" => |shared, _, _| initial_configuration(shared);
    [Word::new("isro", |shared, server, _| server_words::isro(shared, server))]
    Read true "is_read_only" => |shared, _, server| {
        object(json!({"read_only": server_words::is_read_only(shared, server)}))
    };
    [] Read true "last_snapshot" | "lsnp" => |shared, _, _| last_snapshot(shared);
    [] Read true "leader" | "lead" => |shared, _, _| leader(shared);
    [Word::new("mntr", |shared, server, _| server_words::mntr(shared, server))]
    Read false "monitor" => |shared, _, server| monitor(shared, server);
    [] Change true "observer_connection_stat_reset" | "orst" => |_, _, _| Map::new();
    [] Read true "observers" | "obsr" => |_, _, _| {
        object(json!({"synced_observers": 0, "observers": []}))
    };
    [] Credentials true "restore" | "rest" => |_, _, _| Map::new();
    [Word::new("ruok", |_, _, _| "imok".to_owned())]
    Read true "ruok" => |_, _, _| Map::new();
    [Word::new("srvr", |shared, server, _| server_words::srvr(shared, server))]
    Read true "server_stats" => |shared, _, server| server_stats(shared, server);
    [Word::new("stmk", |shared, _, after| words::set_trace_mask(shared, after))]
    Change false "set_trace_mask" => set_trace_mask;
    [] Credentials true "snapshot" | "snap" => |_, _, _| Map::new();
    [Word::new("srst", |shared, _, _| server_words::srst(shared))]
    Change true "stat_reset" => |shared, _, _| {
        server_words::srst(shared);
        Map::new()
    };
    [Word::new("stat", |shared, server, _| client_words::stat(shared, server))]
    Read true "stats" => |shared, _, server| {
        let mut answer = server_stats(shared, server);
        answer.extend(connections(shared, client_words::Row::brief));
        answer
    };
    [] Read false "system_properties" | "sysp" => |_, _, _| system_properties();
    [] Read true "voting_view" => |shared, _, _| voting_view(shared);
    [Word::new("wchs", |shared, _, _| client_words::wchs(shared))]
    Read true "watch_summary" => |shared, _, _| {
        let summary = shared.turns.watch_summary();
        object(json!({
            "num_connections": summary.connections,
            "num_paths": summary.paths,
            "num_total_watches": summary.watches,
        }))
    };
    [Word::new("wchc", |shared, _, _| watches(shared, watches_by_connection(shared))).exposing_clients()]
    Read true "watches" => |shared, _, _| {
        groups("session_id_to_watched_paths", watches_by_connection(shared), id_key, Value::from)
    };
    [Word::new("wchp", |shared, _, _| watches(shared, watches_by_path(shared))).exposing_clients()]
    Read true "watches_by_path" => |shared, _, _| {
        groups("path_to_session_ids", watches_by_path(shared), |path| path, id)
    };
    [] Read false "zabstate" => |_, _, _| object(json!({"voting": false, "zabstate": ""}));
    // Telnet sends this when it is interrupted. It gets no answer.
    [Word { bytes: b"\xff\xf4\xff\xfd", ..Word::new("telnet close", |_, _, _| String::new()) }];
}
