//! dump: which sessions and connections expire when, and who owns which ephemerals.
//!
//! Source: `docs/zookeeper-protocol.md` section 18.7; the original's `ExpiryQueue`.

use std::collections::BTreeMap;

use minikeeper_engine::{ConnId, Now};
use minikeeper_protocol::SessionId;

use super::{
    java_text,
    rows::{add_left_out, connection_rows_max, room},
};
use crate::{
    clock::Clock,
    turn::{
        core::Look,
        stats::{ConnStats, Peer},
    },
    universe::state::Shared,
};

/// The connections that expire at the same time.
#[derive(Default)]
struct Bucket {
    total: usize,
    rows: Vec<(Peer, SessionId)>,
}

/// The parts have room for `four_letter_rows_max` lines each.
pub(crate) fn dump(shared: &Shared) -> String {
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

/// By the time at which the original would close connections that have kept silent, rounded as
/// there; and how many there was no room for.
fn connections(shared: &Shared, now: Now) -> (BTreeMap<u64, Bucket>, usize) {
    let handshake_ms = shared.config.handshake_timeout.as_millis();
    let interval_ms = u64::try_from(handshake_ms).unwrap_or(u64::MAX).max(1);
    let heard_ms = |stats: &ConnStats| {
        let age_ms = now.wall_ms.saturating_sub(stats.established_ms);
        let established_ms = now.elapsed_ms.saturating_sub(age_ms.max(0).cast_unsigned());
        established_ms.max(stats.last_reply_ms)
    };
    let rows_max = connection_rows_max(&shared.config);
    shared.turns.look(
        |Look {
             engine, members, ..
         }| {
            let mut buckets: BTreeMap<u64, Bucket> = BTreeMap::new();
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
