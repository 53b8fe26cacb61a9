//! Words about connections: cons, stat, crst.
//!
//! Source: `docs/zookeeper-protocol.md` sections 18.2 to 18.4.

use minikeeper_engine::ConnId;
use minikeeper_protocol::SessionId;

use super::{
    java_text,
    rows::{add_left_out, connection_rows_max},
    server_words,
};
use crate::{
    turn::{core::Look, outbox::OutboxView, stats::ConnStats},
    universe::state::Shared,
};

/// What one line is made of.
struct Row {
    stats: ConnStats,
    outbox: OutboxView,
    /// Id and timeout.
    session: Option<(SessionId, u32)>,
}

/// Rows up to the bound, and how many were left out. Copied, so that the text is made without
/// the lock.
fn rows(shared: &Shared) -> (Vec<Row>, usize) {
    let rows_max = connection_rows_max(&shared.config);
    shared.turns.look(
        |Look {
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
    /// As the selector of the original would be interested: 1 reads, 4 has output that waits.
    const fn interest(&self) -> u8 {
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

    /// Requests wait only in the buffers of sockets, so none is queued.
    fn brief(&self) -> String {
        format!(
            " {}[{}](queued=0,recved={},sent={}",
            java_text::address(&self.stats.peer),
            self.interest(),
            self.stats.received,
            self.stats.sent + u64::from(self.outbox.events),
        )
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
        let latency_min_ms = match stats.latency_min_ms {
            u32::MAX => 0,
            ms => ms,
        };
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

pub(crate) fn cons(shared: &Shared) -> String {
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

pub(crate) fn stat(shared: &Shared) -> String {
    let (rows, left_out) = rows(shared);
    let mut text = server_words::version_line() + "Clients:\n";
    for row in rows {
        text.push_str(&row.brief());
        text.push_str(")\n");
    }
    text.push('\n');
    text.push_str(&server_words::summary(shared));
    add_left_out(&mut text, left_out, &shared.config);
    text
}

pub(crate) fn crst(shared: &Shared) -> String {
    shared.turns.reset_connections();
    "Connection stats reset.\n".to_owned()
}
