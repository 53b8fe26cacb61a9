//! Compares expectations of a scenario with received messages, field by field, as text.

use std::collections::BTreeMap;

use minikeeper_protocol::{
    AclList, ConnectResponse, ErrorCode, EventKind, MultiResult, Reply, SessionId, Stat, Ustring,
    Zxid,
};

use super::{
    Env, Got, KnownDifferences,
    operation::{group, list_items},
    token::Token,
};
use crate::drive::Sent;

/// The fields of a message, as text.
pub(super) type Facts = BTreeMap<String, String>;

/// The fields that are zxids.
pub(super) const ZXIDS: [&str; 4] = ["zxid", "czxid", "mzxid", "pzxid"];

/// The other fields. Any other name is an error in the script.
const FIELDS: [&str; 20] = [
    "path", "data", "version", "cversion", "aversion", "owner", "length", "children", "ctime",
    "mtime", "names", "acl", "count", "paths", "token", "error", "timeout", "session", "readonly",
    "ids",
];

#[derive(Debug)]
pub(super) struct Expectation {
    /// `ok`, an error's name, `event`, `connected`, `refused`, `closed`, `nothing`, `results`,
    /// `broken_off`.
    kind: String,
    fields: Facts,
    /// The results of a multi.
    results: Vec<Facts>,
    known: KnownDifferences,
}

impl Expectation {
    pub(super) fn parse(words: &[Token], env: &Env, is_dry: bool) -> Result<Self, String> {
        let mut words = words;
        let mut kind = "ok".to_owned();
        if let [first, rest @ ..] = words
            && !first.is_quoted
            && (is_kind(&first.text()) || is_error(&first.text()))
        {
            kind = first.text();
            words = rest;
        }
        let mut fields = Facts::new();
        if kind == "event" {
            let [event, rest @ ..] = words else {
                return Err("an event needs a kind and a path".to_owned());
            };
            if !["created", "deleted", "changed", "children"].contains(&event.text().as_str()) {
                return Err(format!("unknown event {}", event.text()));
            }
            fields.insert("event".to_owned(), event.text());
            words = rest;
        }
        let mut results = Vec::new();
        if kind == "results" || kind == "broken_off" {
            let end = words
                .iter()
                .position(|word| word.is("}"))
                .ok_or("results need { }")?;
            for part in group(&words[..=end])? {
                results.push(result(&part, env, is_dry)?);
            }
            words = &words[end + 1..];
        }
        add_fields(words, env, is_dry, &mut fields)?;
        Ok(Self {
            kind,
            fields,
            results,
            known: KnownDifferences::default(),
        })
    }

    /// Removes the expectations that an older ZooKeeper does not meet.
    pub(super) fn without(mut self, known: KnownDifferences) -> Self {
        if known.events_without_zxid && self.kind == "event" {
            self.fields.remove("zxid");
        }
        without_stats(&mut self.results, known);
        self.known = known;
        self
    }

    pub(super) fn check(&self, got: &Got, env: &Env) -> Result<(), String> {
        let (kind, facts, mut results) = facts_of(got, env);
        without_stats(&mut results, self.known);
        let fault = || {
            let (expected, results_wanted) = (&self.fields, &self.results);
            format!(
                "expected {} {expected:?} {results_wanted:?}\n  got      {kind} {facts:?} {results:?}",
                self.kind
            )
        };
        // `ok` also matches results of a multi, without checking them.
        let is_kind = self.kind == kind || self.kind == "ok" && kind == "results";
        if !is_kind || !holds(&self.fields, &facts) {
            return Err(fault());
        }
        if self.kind == "results" || self.kind == "broken_off" {
            let count = self.results.len();
            let all = self
                .results
                .iter()
                .zip(&results)
                .all(|(wanted, got)| holds(wanted, got));
            if count != results.len() || !all {
                return Err(fault());
            }
        }
        Ok(())
    }
}

/// Turns every create2 in a multi into a create.
fn without_stats(results: &mut [Facts], known: KnownDifferences) {
    for result in results {
        let kind = result.get("kind").map(String::as_str);
        if known.create2_in_multi_is_create && kind == Some("create2") {
            result.retain(|name, _| name == "path");
            result.insert("kind".to_owned(), "create".to_owned());
        }
    }
}

fn is_kind(word: &str) -> bool {
    [
        "ok",
        "event",
        "connected",
        "refused",
        "closed",
        "nothing",
        "results",
        "broken_off",
    ]
    .contains(&word)
}

fn is_error(word: &str) -> bool {
    ErrorCode::ALL.iter().any(|error| error.name() == word)
}

/// Parses one result of a multi: its kind or an error, then fields.
fn result(words: &[Token], env: &Env, is_dry: bool) -> Result<Facts, String> {
    let [kind, rest @ ..] = words else {
        return Err("a result needs a kind".to_owned());
    };
    let text = kind.text();
    let kinds = [
        "create", "create2", "delete", "set", "check", "data", "names", "undone",
    ];
    if !kinds.contains(&text.as_str()) && !is_error(&text) {
        return Err(format!("unknown result {text}"));
    }
    let mut facts = Facts::from([("kind".to_owned(), text)]);
    add_fields(rest, env, is_dry, &mut facts)?;
    Ok(facts)
}

/// Parses fields: `/path`, `"data"`, `null`, `zxid+1`, `name=value`.
fn add_fields(words: &[Token], env: &Env, is_dry: bool, facts: &mut Facts) -> Result<(), String> {
    for word in words {
        let text = word.text();
        let (name, value) = match word.option() {
            Some((name, value)) if ZXIDS.contains(&name.as_str()) => {
                let zxid = env.zxid(&value.text(), is_dry)?;
                (name, zxid.0.to_string())
            }
            Some((name, value)) if FIELDS.contains(&name.as_str()) => {
                let value = match name.as_str() {
                    "data" | "path" | "token" => escaped(value.value().as_deref()),
                    "names" | "paths" | "ids" => sorted(list_items(&value.text())?),
                    _ => value.text(),
                };
                (name, value)
            }
            Some((name, _)) => return Err(format!("unknown field {name}")),
            None if !word.is_quoted && text.starts_with('/') => {
                ("path".to_owned(), escaped(word.value().as_deref()))
            }
            None if word.is_quoted || word.is("null") => {
                ("data".to_owned(), escaped(word.value().as_deref()))
            }
            None => ("zxid".to_owned(), env.zxid(&text, is_dry)?.0.to_string()),
        };
        facts.insert(name, value);
    }
    Ok(())
}

fn holds(expected: &Facts, got: &Facts) -> bool {
    expected.iter().all(|(name, wanted)| {
        let found = got.get(name);
        // `mtime=ctime` compares two fields of the message.
        found == Some(wanted) || (found.is_some() && name != wanted && found == got.get(wanted))
    })
}

fn escaped(bytes: Option<&[u8]>) -> String {
    bytes.map_or_else(
        || "null".to_owned(),
        |bytes| format!("\"{}\"", bytes.escape_ascii()),
    )
}

fn sorted(mut items: Vec<String>) -> String {
    items.sort();
    items.join(",")
}

pub(super) fn facts_of(got: &Got, env: &Env) -> (String, Facts, Vec<Facts>) {
    let mut facts = Facts::new();
    let mut results = Vec::new();
    let kind = match got {
        Got::Nothing => "nothing",
        Got::Closed | Got::Sent(Sent::Close(_)) => "closed",
        Got::Sent(Sent::Connected(response)) => connected(response, env, &mut facts),
        Got::Sent(Sent::Event { kind, path, zxid }) => {
            let name = match kind {
                EventKind::Created => "created",
                EventKind::Deleted => "deleted",
                EventKind::DataChanged => "changed",
                EventKind::ChildrenChanged => "children",
            };
            add(&mut facts, "event", name);
            add(&mut facts, "path", escaped(Some(path.as_bytes())));
            add(&mut facts, "zxid", zxid.0);
            "event"
        }
        Got::Sent(Sent::BrokenOff {
            zxid,
            error,
            results: list,
            ..
        }) => {
            add(&mut facts, "zxid", zxid.0);
            add(&mut facts, "error", error.name());
            results = list
                .iter()
                .map(|result| result_facts(result, env))
                .collect();
            "broken_off"
        }
        Got::Sent(Sent::Reply { zxid, outcome, .. }) => {
            add(&mut facts, "zxid", zxid.0);
            match outcome {
                Err(error) => error.name(),
                Ok(Reply::Multi(list)) => {
                    results = list
                        .iter()
                        .map(|result| result_facts(result, env))
                        .collect();
                    "results"
                }
                Ok(reply) => {
                    reply_facts(reply, env, &mut facts);
                    "ok"
                }
            }
        }
    };
    (kind.to_owned(), facts, results)
}

fn add(facts: &mut Facts, name: &str, value: impl ToString) {
    facts.insert(name.to_owned(), value.to_string());
}

fn connected(response: &ConnectResponse, env: &Env, facts: &mut Facts) -> &'static str {
    add(facts, "timeout", response.timeout_ms);
    add(facts, "session", owner(response.session_id, env));
    let read_only = response.read_only;
    add(
        facts,
        "readonly",
        read_only.map_or("none", |yes| if yes { "yes" } else { "no" }),
    );
    let is_zero = response.password.as_deref() == Some(&[0; 16]);
    let has_password = response
        .password
        .as_ref()
        .is_some_and(|password| password.len() == 16);
    match (response.timeout_ms, response.session_id) {
        (0, SessionId::NONE) if is_zero => "refused",
        (1.., SessionId(1..)) if has_password && !is_zero => "connected",
        _ => "malformed handshake",
    }
}

/// Returns the connection of a session; `0` for no session.
fn owner(session: SessionId, env: &Env) -> String {
    if session == SessionId::NONE {
        return "0".to_owned();
    }
    let mut known = env.sessions.iter();
    known
        .find(|(_, (id, _))| *id == session)
        .map_or_else(|| "another".to_owned(), |(conn, _)| conn.clone())
}

fn names(names: &[Ustring]) -> String {
    sorted(
        names
            .iter()
            .map(|name| name.to_str_lossy().into_owned())
            .collect(),
    )
}

fn acl(list: &AclList) -> String {
    let text = |text: Option<Ustring>| {
        text.map_or_else(|| "~".to_owned(), |text| text.to_str_lossy().into())
    };
    let entries = list.entries().map(|entry| {
        format!(
            "{}@{}:{}",
            entry.perms.0,
            text(entry.scheme),
            text(entry.id)
        )
    });
    format!("[{}]", entries.collect::<Vec<_>>().join(","))
}

fn stat_facts(stat: &Stat, env: &Env, facts: &mut Facts) {
    let zxid = |zxid: Zxid| zxid.0;
    add(facts, "czxid", zxid(stat.czxid));
    add(facts, "mzxid", zxid(stat.mzxid));
    add(facts, "pzxid", zxid(stat.pzxid));
    add(facts, "ctime", stat.ctime_ms);
    add(facts, "mtime", stat.mtime_ms);
    add(facts, "version", stat.version);
    add(facts, "cversion", stat.cversion);
    add(facts, "aversion", stat.aversion);
    add(facts, "owner", owner(stat.ephemeral_owner, env));
    add(facts, "length", stat.data_length);
    add(facts, "children", stat.num_children);
}

fn reply_facts(reply: &Reply, env: &Env, facts: &mut Facts) {
    match reply {
        Reply::Empty | Reply::WatchAdded | Reply::Multi(_) => {}
        Reply::ClientInfos(list) => {
            let text = |text: &Ustring| text.to_str_lossy().into_owned();
            let ids = list
                .iter()
                .map(|info| format!("{}:{}", text(&info.scheme), text(&info.user)));
            add(facts, "ids", sorted(ids.collect()));
        }
        Reply::Path(path) => {
            add(facts, "path", escaped(path.as_ref().map(Ustring::as_bytes)));
        }
        Reply::PathStat(path, stat) => {
            add(facts, "path", escaped(Some(path.as_bytes())));
            stat_facts(stat, env, facts);
        }
        Reply::Stat(stat) => stat_facts(stat, env, facts),
        Reply::Data(data, stat) => {
            add(facts, "data", escaped(data.as_deref()));
            stat_facts(stat, env, facts);
        }
        Reply::Children(list) => add(facts, "names", names(list)),
        Reply::Children2(list, stat) => {
            add(facts, "names", names(list));
            stat_facts(stat, env, facts);
        }
        Reply::Acl(list, stat) => {
            add(facts, "acl", acl(list));
            stat_facts(stat, env, facts);
        }
        Reply::Ephemerals(paths) => add(facts, "paths", names(paths)),
        Reply::Count(count) => add(facts, "count", count),
        Reply::Token(token) => add(facts, "token", escaped(token.as_deref())),
    }
}

fn result_facts(result: &MultiResult, env: &Env) -> Facts {
    let mut facts = Facts::new();
    let kind = match result {
        MultiResult::Create { path } => {
            add(&mut facts, "path", escaped(Some(path.as_bytes())));
            "create"
        }
        MultiResult::Create2 { path, stat } => {
            add(&mut facts, "path", escaped(Some(path.as_bytes())));
            stat_facts(stat, env, &mut facts);
            "create2"
        }
        MultiResult::Delete => "delete",
        MultiResult::SetData { stat } => {
            stat_facts(stat, env, &mut facts);
            "set"
        }
        MultiResult::Check => "check",
        MultiResult::GetData { data, stat } => {
            add(&mut facts, "data", escaped(data.as_deref()));
            stat_facts(stat, env, &mut facts);
            "data"
        }
        MultiResult::GetChildren { names: list } => {
            add(&mut facts, "names", names(list));
            "names"
        }
        MultiResult::Error(None) => "undone",
        MultiResult::Error(Some(error)) => error.name(),
    };
    add(&mut facts, "kind", kind);
    facts
}
