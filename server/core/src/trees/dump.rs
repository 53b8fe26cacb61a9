//! Prints a tree with its sessions and watches as text: equal trees give equal text.

use std::{collections::BTreeMap, fmt::Write as _};

use minikeeper_engine::{Engine, Life, SessionReport};
use minikeeper_protocol::{Acl, AclList, SessionId, Stat};

use super::access::entry_bytes;

use crate::order;

/// The prefix of the paths of quotas, which clients set.
const QUOTAS: &[u8] = b"/zookeeper/quota/";

/// Prints znodes, then sessions, then watches.
///
/// Without ids, omits everything that depends on the time and order of changes: zxids, times,
/// versions and session ids. Sessions are then numbered in the order of what they own, so that
/// only equal sessions could change places.
pub fn dump(engine: &Engine, mut sessions: Vec<SessionReport>, with_ids: bool) -> String {
    let image = engine.image();
    for session in &mut sessions {
        // The order of creation, which the dump does not show.
        order::sort_by(&mut session.ephemerals, Ord::cmp);
    }
    if with_ids {
        order::sort_by_key(&mut sessions, |session| session.id);
    } else {
        order::sort_by(&mut sessions, |one, other| {
            contents(one).cmp(&contents(other))
        });
    }
    let labels = (sessions.iter().zip(1..)).map(|(session, number)| match with_ids {
        true => (session.id, session.id.to_string()),
        false => (session.id, usize::to_string(&number)),
    });
    let labels: BTreeMap<SessionId, String> = order::collect(labels);
    let mut znodes: Vec<_> = image.znodes().collect();
    order::sort_by(&mut znodes, |one, other| {
        names(one.path).cmp(names(other.path))
    });
    let mut out = String::new();
    if with_ids {
        put(&mut out, format_args!("zxid {}\n", image.zxid()));
    }
    for znode in znodes {
        if is_system(znode.path) {
            continue;
        }
        put(&mut out, format_args!("znode {}", name(znode.path)));
        match znode.data {
            None => out.push_str(" null"),
            Some(data) => put(&mut out, format_args!(" {}", quoted(data))),
        }
        match znode.life() {
            Life::Persistent => {}
            Life::Container => out.push_str(" container"),
            Life::Ttl { ms } => put(&mut out, format_args!(" ttl {ms} ms")),
            Life::Session(id) => {
                let label = labels.get(&id).map_or("0", String::as_str);
                put(&mut out, format_args!(" session {label}"));
            }
        }
        let acl = image.access_list(znode.acl);
        if let Some(acl) = acl.filter(|acl| **acl != AclList::world_all()) {
            let entries: Vec<_> = acl.entries().map(|entry| access_name(&entry)).collect();
            put(&mut out, format_args!(" acl {}", entries.join(",")));
        }
        if with_ids
            && let Ok(path) = std::str::from_utf8(znode.path)
            && let Some((_, stat)) = engine.get(path)
        {
            put_stat(&mut out, &stat);
        }
        out.push('\n');
    }
    let mut watches: BTreeMap<(&str, usize), Vec<&str>> = BTreeMap::new();
    for (number, session) in sessions.iter().enumerate() {
        let state = match session.conn {
            Some(_) => "connected",
            None => "disconnected",
        };
        let (label, timeout_ms) = (&labels[&session.id], session.timeout_ms);
        put(
            &mut out,
            format_args!("session {label} {state} timeout {timeout_ms} ms\n"),
        );
        for (path, kind) in &session.watches {
            let kinds = watches.entry((path, number)).or_default();
            kinds.push(kind.name());
        }
    }
    let mut watches: Vec<_> = watches.into_iter().collect();
    order::sort_by(&mut watches, |((one, _), _), ((other, _), _)| {
        names(one.as_bytes()).cmp(names(other.as_bytes()))
    });
    for ((path, number), kinds) in watches {
        let (path, kinds) = (name(path.as_bytes()), kinds.join("+"));
        let label = &labels[&sessions[number].id];
        put(
            &mut out,
            format_args!("watch {path} {kinds} session {label}\n"),
        );
    }
    out
}

/// Returns all that the dump shows of a session, besides its id.
fn contents(session: &SessionReport) -> impl Ord + '_ {
    let SessionReport {
        timeout_ms,
        conn,
        ephemerals,
        watches,
        ..
    } = session;
    // Sessions with ephemerals come first, by the first of them.
    (
        ephemerals.is_empty(),
        ephemerals,
        watches,
        timeout_ms,
        conn.is_none(),
    )
}

/// Returns the names in a path. Their order puts a znode before its children, and its children
/// before its next sibling.
pub fn names(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.split(|byte| *byte == b'/')
        .filter(|name| !name.is_empty())
}

/// Appends what depends on the time and order of changes.
fn put_stat(out: &mut String, stat: &Stat) {
    let Stat {
        czxid,
        mzxid,
        pzxid,
        ctime_ms,
        mtime_ms,
        version,
        cversion,
        aversion,
        ..
    } = stat;
    put(
        out,
        format_args!(
            " czxid {czxid} mzxid {mzxid} pzxid {pzxid} ctime {ctime_ms} ms mtime {mtime_ms} ms \
             version {version} cversion {cversion} aversion {aversion}"
        ),
    );
}

fn put(out: &mut String, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text)
        .expect("writing to a string cannot fail");
}

/// Returns whether a znode belongs to the server and is no quota.
fn is_system(path: &[u8]) -> bool {
    path == b"/zookeeper" || path.starts_with(b"/zookeeper/") && !path.starts_with(QUOTAS)
}

/// Formats a path; quoted if it could be confused with the text after it.
fn name(path: &[u8]) -> String {
    plain(path, &[' ', '"', '\\'])
}

/// Formats an entry of an access list; quoted if it could be confused with the text after it.
fn access_name(entry: &Acl) -> String {
    plain(&entry_bytes(entry), &[' ', '"', '\\', ','])
}

/// Formats text without quotes if it contains none of these symbols and nothing invisible.
fn plain(bytes: &[u8], special: &[char]) -> String {
    // Formatting for debugging escapes what is invisible, as well as quotes and backslashes.
    let is_visible = |text: &str| format!("{text:?}").len() == text.len() + 2;
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.contains(special) && is_visible(text) => text.to_owned(),
        _ => quoted(bytes),
    }
}

/// Formats text in quotes, other bytes as `bytes "\x00\xff"`. Different bytes never look alike.
fn quoted(data: &[u8]) -> String {
    let is_plain = |text: &str| !text.contains(|c: char| c.is_control() && !"\n\r\t".contains(c));
    match std::str::from_utf8(data) {
        Ok(text) if is_plain(text) => format!("{text:?}"),
        _ => format!("bytes \"{}\"", data.escape_ascii()),
    }
}
