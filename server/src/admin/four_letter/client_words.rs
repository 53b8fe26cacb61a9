//! Words about connections, sessions and watches: cons, stat, crst, dump, wchs, wchc, wchp.
//!
//! Source: `docs/zookeeper-protocol.md` sections 18.2 to 18.4, 18.7 and 18.8; ZooKeeper's
//! `ExpiryQueue`.

use std::collections::BTreeMap;

use minikeeper_engine::{ConnId, Now, Room};
use minikeeper_protocol::SessionId;

use super::{java_text, server_words};
use crate::{
    clock::Clock,
    config::Config,
    outbox::OutboxView,
    peer::Peer,
    state::UniverseState,
    turn::{core::LockedState, stats::ConnStats},
};

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

    /// Prints the short form. `queued` is 0 because requests wait only in socket buffers.
    fn brief(&self) -> String {
        format!(
            " {}[{}](queued=0,recved={},sent={}",
            java_text::address(&self.stats.peer),
            self.interest(),
            self.stats.received,
            self.sent(),
        )
    }

    /// Returns the number of frames sent to it.
    pub(crate) fn sent(&self) -> u64 {
        self.stats.sent + u64::from(self.outbox.events)
    }

    /// Returns the shortest latency; 0 before the first one.
    pub(crate) const fn latency_min_ms(&self) -> u32 {
        match self.stats.latency_min_ms {
            u32::MAX => 0,
            ms => ms,
        }
    }

    fn full(&self) -> String {
        let mut text = self.brief();
        let Some((session, timeout_ms)) = self.session else {
            return text;
        };
        let stats = &self.stats;
        let lcxid = match stats.last_xid {
            Some(xid) => format!(",lcxid=0x{:x}", xid.0),
            None => String::new(),
        };
        let latency_min_ms = self.latency_min_ms();
        text.push_str(&format!(
            ",sid={session},lop={},est={},to={timeout_ms}{lcxid},lzxid={},lresp={},llat={},\
             minlat={latency_min_ms},avglat={},maxlat={}",
            stats.last_op.text(),
            stats.established_ms,
            stats.last_zxid,
            stats.last_reply_ms,
            stats.latency_last_ms,
            stats.latency_avg_ms(),
            stats.latency_max_ms,
        ));
        text
    }
}

pub(crate) fn cons(shared: &UniverseState) -> String {
    let (rows, left_out) = rows(shared);
    let mut text = String::new();
    for row in rows {
        text.push_str(&row.full());
        text.push_str(")\n");
    }
    text.push('\n');
    add_left_out(&mut text, left_out, &shared.config);
    text
}

pub(crate) fn stat(shared: &UniverseState, server: u8) -> String {
    let (rows, left_out) = rows(shared);
    let mut text = server_words::version_line() + "Clients:\n";
    for row in rows {
        text.push_str(&row.brief());
        text.push_str(")\n");
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
    for group in sessions.groups {
        let (count, deadline) = (group.rows_total, at(group.head));
        text.push_str(&format!("{count} expire at {deadline}:\n"));
        for session in group.rows {
            text.push_str(&format!("\t{session}\n"));
        }
    }
    text.push_str(&format!(
        "ephemeral nodes dump:\nSessions with Ephemerals ({}):\n",
        ephemerals.groups_total
    ));
    for group in ephemerals.groups {
        text.push_str(&format!("{}:\n", group.head));
        for path in group.rows {
            text.push_str(&format!("\t{path}\n"));
        }
    }
    let (connections, left_out) = connections(shared, now);
    let total: usize = connections.values().map(|bucket| bucket.total).sum();
    text.push_str(&format!(
        "Connections dump:\nConnections Sets ({})/({total}):\n",
        connections.len()
    ));
    for (deadline_ms, bucket) in connections {
        let (count, deadline) = (bucket.total, at(deadline_ms));
        text.push_str(&format!("{count} expire at {deadline}:\n"));
        for (peer, session) in bucket.rows {
            let ip = java_text::address(&peer);
            text.push_str(&format!("\tip: {ip} sessionId: {session}\n"));
        }
    }
    let left_out = sessions.left_out + ephemerals.left_out + left_out;
    add_left_out(&mut text, left_out, &shared.config);
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

pub(crate) fn wchc(shared: &UniverseState) -> String {
    let room = room(&shared.config);
    let listing = shared
        .turns
        .inspect(|engine| engine.watches_by_connection(room));
    let mut text = String::new();
    for group in listing.groups {
        text.push_str(&format!("{}\n", group.head));
        for path in group.rows {
            text.push_str(&format!("\t{path}\n"));
        }
    }
    text.push('\n');
    add_left_out(&mut text, listing.left_out, &shared.config);
    text
}

pub(crate) fn wchp(shared: &UniverseState) -> String {
    let room = room(&shared.config);
    let listing = shared.turns.watches_by_path(room);
    let mut text = String::new();
    for group in listing.groups {
        text.push_str(&format!("{}\n", group.head));
        for session in group.rows {
            text.push_str(&format!("\t{session}\n"));
        }
    }
    text.push('\n');
    add_left_out(&mut text, listing.left_out, &shared.config);
    text
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
