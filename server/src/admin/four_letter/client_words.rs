//! Words about connections, sessions and watches: cons, stat, crst, dump, wchs, wchc, wchp.
//!
//! Source: `docs/zookeeper-protocol.md` sections 18.2 to 18.4, 18.7 and 18.8; ZooKeeper's
//! `ExpiryQueue`.

use std::{collections::BTreeMap, fmt::Display};

use minikeeper_core::{
    clock::Clock,
    config::Config,
    outbox::OutboxView,
    peer::Peer,
    state::UniverseState,
    turn::{core::LockedState, stats::ConnStats},
};
use minikeeper_engine::{ConnId, Listing, Now, Room};
use minikeeper_protocol::SessionId;

use super::{java_text, server_words};
use crate::admin::fields::{self, ReportField, number};

/// The data of one line about a connection.
pub(crate) struct Row {
    pub(crate) stats: ConnStats,
    pub(crate) outbox: OutboxView,
    /// Id and timeout.
    pub(crate) session: Option<(SessionId, u32)>,
}

/// Returns the rows up to the limit, and the number of omitted ones. Copies them, so that the text is
/// built without the lock.
pub(crate) fn rows(shared: &UniverseState) -> (Vec<Row>, usize) {
    let rows_max = connection_rows_max(&shared.config);
    shared.turns.read(
        |LockedState {
             engine, members, ..
         }| {
            let rows: Vec<_> = members
                .iter()
                .take(rows_max)
                .map(|(key, member)| Row {
                    stats: (*member.stats).clone(),
                    outbox: member.outbox.view(),
                    session: u32::try_from(key)
                        .ok()
                        .and_then(|key| engine.session_of(ConnId(key))),
                })
                .collect();
            let left_out = members.len() - rows.len();
            (rows, left_out)
        },
    )
}

impl Row {
    /// Returns the interest set that ZooKeeper's selector would show: 1 to read, 4 for pending output.
    pub(crate) const fn interest(&self) -> u8 {
        if self.stats.is_word {
            0
        } else if self.outbox.is_writing {
            4
        } else if self.outbox.is_filled {
            5
        } else {
            1
        }
    }

    /// Returns what stat says of it.
    pub(crate) fn brief(&self) -> Vec<ReportField> {
        vec![
            // Requests wait only in socket buffers.
            number("queued", "outstanding_requests", 0),
            number("recved", "packets_received", self.stats.received),
            number("sent", "packets_sent", self.sent()),
        ]
    }

    /// Returns what cons says of it.
    pub(crate) fn full(&self) -> Vec<ReportField> {
        let stats = &self.stats;
        let (session, timeout_ms) = self.session.unwrap_or((SessionId::NONE, 0));
        let (lcxid, xid) = stats.last_xid.map_or(("", -1), |xid| ("lcxid", xid.0));
        let zxid = stats.last_zxid;
        let mut fields = self.brief();
        fields.extend([
            ("sid", "session_id", session.to_string(), Some(session.0)),
            ("lop", "last_operation", stats.last_op.text().into(), None),
            number("est", "established", stats.established_ms),
            number("to", "session_timeout", timeout_ms),
            (lcxid, "last_cxid", format!("0x{xid:x}"), Some(xid.into())),
            ("lzxid", "last_zxid", zxid.to_string(), Some(zxid.0)),
            number("lresp", "last_response_time", stats.last_reply_ms),
            number("llat", "last_latency", stats.latency_last_ms),
            number("minlat", "min_latency", self.latency_min_ms()),
            number("avglat", "avg_latency", stats.latency_avg_ms()),
            number("maxlat", "max_latency", stats.latency_max_ms),
        ]);
        fields
    }

    /// Returns a line with these fields.
    fn line(&self, fields: Vec<ReportField>) -> String {
        let (address, interest) = (java_text::address(&self.stats.peer), self.interest());
        let pairs: Vec<_> = fields::pairs(fields).collect();
        format!(" {address}[{interest}]({})\n", pairs.join(","))
    }

    /// Returns the number of frames sent to it.
    fn sent(&self) -> u64 {
        self.stats.sent + u64::from(self.outbox.events)
    }

    /// Returns the shortest latency; 0 before the first one.
    const fn latency_min_ms(&self) -> u32 {
        match self.stats.latency_min_ms {
            u32::MAX => 0,
            ms => ms,
        }
    }
}

pub(crate) fn cons(shared: &UniverseState) -> String {
    let (rows, left_out) = rows(shared);
    let mut text = String::new();
    for row in rows {
        let has_session = row.session.is_some();
        let fields = if has_session { row.full() } else { row.brief() };
        text.push_str(&row.line(fields));
    }
    text.push('\n');
    add_left_out(&mut text, left_out, &shared.config);
    text
}

pub(crate) fn stat(shared: &UniverseState, server: u8) -> String {
    let (rows, left_out) = rows(shared);
    let mut text = server_words::version_line() + "Clients:\n";
    for row in rows {
        text.push_str(&row.line(row.brief()));
    }
    text.push('\n');
    text.push_str(&server_words::summary(shared, server));
    add_left_out(&mut text, left_out, &shared.config);
    text
}

pub(crate) fn crst(shared: &UniverseState) -> String {
    shared.turns.reset_connections();
    "Connection stats reset.\n".to_owned()
}

/// The connections that expire at the same time.
#[derive(Default)]
struct ExpiryBucket {
    total: usize,
    rows: Vec<(Peer, SessionId)>,
}

/// Prints sessions, ephemerals and connections, with up to `four_letter_rows_max` lines for each.
pub(crate) fn dump(shared: &UniverseState) -> String {
    let room = room(&shared.config);
    let now = shared.turns.read_clock(Clock::now);
    let at = |elapsed_ms: u64| {
        let wall_ms = now.wall_ms + (elapsed_ms.cast_signed() - now.elapsed_ms.cast_signed());
        java_text::date(wall_ms)
    };
    let (sessions, sessions_total, ephemerals) = shared.turns.inspect(|engine| {
        (
            engine.expiries(room),
            engine.counts().sessions,
            engine.ephemerals(room),
        )
    });
    let mut text = format!(
        "SessionTracker dump:\nSession Sets ({})/({sessions_total}):\n",
        sessions.groups_total
    );
    let expiring = |ms, count| format!("{count} expire at {}:\n", at(ms));
    let mut left_out = add_groups(&mut text, sessions, expiring);
    text.push_str(&format!(
        "ephemeral nodes dump:\nSessions with Ephemerals ({}):\n",
        ephemerals.groups_total
    ));
    left_out += add_groups(&mut text, ephemerals, |session, _| format!("{session}:\n"));
    let (connections, connections_left_out) = connections(shared, now);
    let total: usize = connections.values().map(|bucket| bucket.total).sum();
    text.push_str(&format!(
        "Connections dump:\nConnections Sets ({})/({total}):\n",
        connections.len()
    ));
    for (deadline_ms, bucket) in connections {
        text.push_str(&expiring(deadline_ms, bucket.total));
        for (peer, session) in bucket.rows {
            let ip = java_text::address(&peer);
            text.push_str(&format!("\tip: {ip} sessionId: {session}\n"));
        }
    }
    add_left_out(&mut text, left_out + connections_left_out, &shared.config);
    text
}

/// Groups connections by the time at which ZooKeeper would close them if they stay silent, rounded as
/// ZooKeeper does. Also returns the number of omitted ones.
fn connections(shared: &UniverseState, now: Now) -> (BTreeMap<u64, ExpiryBucket>, usize) {
    let handshake_ms = shared.config.handshake_timeout.as_millis();
    let interval_ms = u64::try_from(handshake_ms).unwrap_or(u64::MAX).max(1);
    let heard_ms = |stats: &ConnStats| {
        let age_ms = now.wall_ms.saturating_sub(stats.established_ms);
        let established_ms = now.elapsed_ms.saturating_sub(age_ms.max(0).cast_unsigned());
        established_ms.max(stats.last_reply_ms)
    };
    let rows_max = connection_rows_max(&shared.config);
    shared.turns.read(
        |LockedState {
             engine, members, ..
         }| {
            let mut buckets: BTreeMap<u64, ExpiryBucket> = BTreeMap::new();
            let mut room = rows_max;
            for (key, member) in members {
                let session = u32::try_from(key)
                    .ok()
                    .and_then(|key| engine.session_of(ConnId(key)));
                let timeout_ms = session.map_or(interval_ms, |(_, timeout_ms)| timeout_ms.into());
                let deadline_ms = heard_ms(&member.stats).saturating_add(timeout_ms);
                let deadline_ms = (deadline_ms / interval_ms + 1).saturating_mul(interval_ms);
                let bucket = buckets.entry(deadline_ms).or_default();
                bucket.total += 1;
                if let Some(left) = room.checked_sub(1) {
                    room = left;
                    let id = session.map_or(SessionId::NONE, |(id, _)| id);
                    bucket.rows.push((member.stats.peer.clone(), id));
                }
            }
            (buckets, members.len().saturating_sub(rows_max))
        },
    )
}

pub(crate) fn wchs(shared: &UniverseState) -> String {
    let summary = shared.turns.watch_summary();
    format!(
        "{} connections watching {} paths\nTotal watches:{}\n",
        summary.connections, summary.paths, summary.watches
    )
}

pub(crate) fn watches_by_connection(shared: &UniverseState) -> Listing<SessionId, String> {
    let room = room(&shared.config);
    (shared.turns).inspect(|engine| engine.watches_by_connection(room))
}

pub(crate) fn watches_by_path(shared: &UniverseState) -> Listing<String, SessionId> {
    shared.turns.watches_by_path(room(&shared.config))
}

/// Prints the watches of wchc or wchp.
pub(crate) fn watches(
    shared: &UniverseState,
    listing: Listing<impl Display, impl Display>,
) -> String {
    let mut text = String::new();
    let left_out = add_groups(&mut text, listing, |head, _| format!("{head}\n"));
    text.push('\n');
    add_left_out(&mut text, left_out, &shared.config);
    text
}

/// Appends the head of each group, from its value and its number of rows, and the rows. Returns the number of omitted ones.
fn add_groups<H, R: Display>(
    text: &mut String,
    listing: Listing<H, R>,
    head: impl Fn(H, usize) -> String,
) -> usize {
    for group in listing.groups {
        text.push_str(&head(group.head, group.rows_total));
        for row in group.rows {
            text.push_str(&format!("\t{row}\n"));
        }
    }
    listing.left_out
}

/// Returns the limit of one listing in an answer. The text briefly exists twice, and `dump` has three
/// listings.
pub(crate) fn room(config: &Config) -> Room {
    Room {
        rows: config.four_letter_rows_max,
        bytes: config.reply_bytes_max() / 4,
    }
}

/// Returns the limit of rows for lists of connections.
pub(super) fn connection_rows_max(config: &Config) -> usize {
    const ROW_BYTES: usize = 512;
    let Room { rows, bytes } = room(config);
    rows.min(bytes / ROW_BYTES)
}

/// Appends a line that says how many lines were omitted, if any were.
pub(super) fn add_left_out(text: &mut String, left_out: usize, config: &Config) {
    if left_out > 0 {
        text.push_str(&format!(
            "{left_out} more lines are left out (four_letter_rows_max {}, reply_bytes_max {})\n",
            config.four_letter_rows_max,
            config.reply_bytes_max()
        ));
    }
}
