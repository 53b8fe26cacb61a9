//! Prints a tree with its sessions and watches as text: equal trees give equal text.

use std::{collections::BTreeMap, fmt::Write as _};

use minikeeper_engine::{Engine, Life};
use minikeeper_protocol::{AclList, SessionId};

use super::text_of;

/// The prefix of the paths of quotas, which clients set.
const QUOTAS: &[u8] = b"/zookeeper/quota/";

/// Prints znodes by path, then sessions, then watches. Omits everything that depends on the time
/// and order of changes: zxids, times, versions and session ids. Sessions are numbered in the order
/// of their ids.
pub(crate) fn dump(engine: &Engine) -> String {
    let mut reports: Vec<_> = engine.session_reports().collect();
    reports.sort_unstable_by_key(|report| report.id);
    let numbers: BTreeMap<SessionId, usize> =
        (reports.iter().map(|report| report.id)).zip(1..).collect();
    let image = engine.image();
    let mut znodes: Vec<_> = image.znodes().collect();
    znodes.sort_unstable_by_key(|znode| znode.path.to_vec());
    let mut out = String::new();
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
                let number = numbers.get(&id).copied().unwrap_or_default();
                put(&mut out, format_args!(" session {number}"));
            }
        }
        let acl = image.access_list(znode.acl);
        if let Some(acl) = acl.filter(|acl| **acl != AclList::world_all()) {
            put(&mut out, format_args!(" acl {}", text_of(acl).join(",")));
        }
        out.push('\n');
    }
    let mut watches: BTreeMap<(&str, usize), Vec<&str>> = BTreeMap::new();
    for (report, number) in reports.iter().zip(1..) {
        let state = match report.conn {
            Some(_) => "connected",
            None => "disconnected",
        };
        let timeout_ms = report.timeout_ms;
        put(
            &mut out,
            format_args!("session {number} {state} timeout {timeout_ms} ms\n"),
        );
        for (path, kind) in &report.watches {
            let kinds = watches.entry((path, number)).or_default();
            kinds.push(kind.name());
        }
    }
    for ((path, number), kinds) in watches {
        let (path, kinds) = (name(path.as_bytes()), kinds.join("+"));
        put(
            &mut out,
            format_args!("watch {path} {kinds} session {number}\n"),
        );
    }
    out
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
    match std::str::from_utf8(path) {
        Ok(path) if !path.contains([' ', '"', '\\']) && !path.contains(char::is_control) => {
            path.to_owned()
        }
        _ => quoted(path),
    }
}

/// Formats text in quotes, other bytes as `bytes "\x00\xff"`.
fn quoted(data: &[u8]) -> String {
    let is_plain = |text: &str| !text.contains(|c: char| c.is_control() && !"\n\r\t".contains(c));
    match std::str::from_utf8(data) {
        Ok(text) if is_plain(text) => format!("{text:?}"),
        _ => format!("bytes \"{}\"", data.escape_ascii()),
    }
}
