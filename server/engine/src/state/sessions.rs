//! The session table: id, timeout, connection and ephemerals of each live session.
//!
//! Source: `docs/zookeeper-protocol.md` sections 6 and 14.

use std::collections::BTreeSet;

use hashbrown::HashTable;
use minikeeper_protocol::{SessionId, Zxid, connect::PASSWORD_BYTES};
use slab::Slab;

use crate::{
    hashing::TableHasher,
    input::{ConnId, Now},
    state::{
        expiry_queue::ExpiryQueue,
        keys::{SessionKey, ZnodeId},
    },
    work,
};

#[derive(Clone, Debug)]
pub(crate) struct Session {
    pub(crate) id: SessionId,
    /// The timeout negotiated by the last handshake.
    pub(crate) timeout_ms: u32,
    /// The timeout negotiated by the handshake that opened the session, which is the one saved.
    pub(crate) opened_timeout_ms: u32,
    /// The connection of the session; `None` between two connections.
    pub(crate) conn: Option<ConnId>,
    /// Whether it has ever owned an ephemeral, even one deleted since.
    pub(crate) had_ephemerals: bool,
    /// Its ephemerals in the order of creation, in which they are also deleted.
    pub(crate) ephemerals: BTreeSet<(Zxid, ZnodeId)>,
}

#[derive(Clone, Debug)]
pub(crate) struct Sessions {
    table: Slab<Session>,
    /// By id; never iterated.
    index: HashTable<SessionKey>,
    hasher: TableHasher,
    expiry: ExpiryQueue,
    /// The id of the next new session.
    pub(crate) next_id: SessionId,
    /// The session touched last and when, because a batch touches one session many times.
    touched: (SessionKey, u64),
}

impl std::ops::Index<SessionKey> for Sessions {
    type Output = Session;

    fn index(&self, key: SessionKey) -> &Session {
        &self.table[key.0 as usize]
    }
}

impl std::ops::IndexMut<SessionKey> for Sessions {
    fn index_mut(&mut self, key: SessionKey) -> &mut Session {
        &mut self.table[key.0 as usize]
    }
}

impl Sessions {
    pub(crate) fn new(tick_ms: Option<u32>, first_id: SessionId, hash_seed: [u64; 2]) -> Self {
        Self {
            table: Slab::new(),
            index: HashTable::new(),
            hasher: TableHasher::new(hash_seed, b"sessions"),
            expiry: ExpiryQueue::new(tick_ms),
            next_id: first_id,
            touched: (SessionKey::NONE, 0),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    pub(crate) fn find(&self, id: SessionId) -> Option<SessionKey> {
        self.index
            .find(self.hasher.hash_one(id), |key| self[*key].id == id)
            .copied()
    }

    /// Opens a session with the next id.
    pub(crate) fn open(&mut self, now: Now, timeout_ms: u32, conn: ConnId) -> SessionKey {
        let id = self.next_id;
        self.next_id = SessionId(id.0 + 1);
        self.insert(id, timeout_ms, Some(conn), now.elapsed_ms)
    }

    /// Adds a session of an earlier process, with its full timeout from the start of this one.
    pub(crate) fn adopt(&mut self, id: SessionId, timeout_ms: u32) {
        self.insert(id, timeout_ms, None, 0);
    }

    /// Adds a session that another engine has opened.
    pub(crate) fn take_over(
        &mut self,
        id: SessionId,
        timeout_ms: u32,
        conn: ConnId,
        now: Now,
    ) -> SessionKey {
        self.insert(id, timeout_ms, Some(conn), now.elapsed_ms)
    }

    /// Undoes the close of a session, which has its full timeout from now on.
    pub(crate) fn restore(&mut self, session: Session, now: Now) -> SessionKey {
        self.store(session, now.elapsed_ms)
    }

    fn insert(
        &mut self,
        id: SessionId,
        timeout_ms: u32,
        conn: Option<ConnId>,
        elapsed_ms: u64,
    ) -> SessionKey {
        let session = Session {
            id,
            timeout_ms,
            opened_timeout_ms: timeout_ms,
            conn,
            had_ephemerals: false,
            ephemerals: BTreeSet::new(),
        };
        self.store(session, elapsed_ms)
    }

    fn store(&mut self, session: Session, elapsed_ms: u64) -> SessionKey {
        let (id, timeout_ms) = (session.id, session.timeout_ms);
        let key = self.table.insert(session);
        let key = SessionKey(u32::try_from(key).expect("sessions_max is far below"));
        let (table, hasher) = (&self.table, &self.hasher);
        self.index.insert_unique(hasher.hash_one(id), key, |key| {
            hasher.hash_one(table[key.0 as usize].id)
        });
        self.expiry.insert(key, elapsed_ms, timeout_ms);
        key
    }

    /// Resumes the session with another timeout.
    pub(crate) fn resume(&mut self, key: SessionKey, now: Now, timeout_ms: u32) {
        self[key].timeout_ms = timeout_ms;
        self.touched = (SessionKey::NONE, 0);
        self.touch(key, now);
    }

    /// Moves the deadline, because a message has arrived from the client.
    #[inline]
    pub(crate) fn touch(&mut self, key: SessionKey, now: Now) {
        if self.touched != (key, now.elapsed_ms) {
            self.move_deadline(key, now);
        }
    }

    #[inline(never)]
    fn move_deadline(&mut self, key: SessionKey, now: Now) {
        self.touched = (key, now.elapsed_ms);
        let timeout_ms = self[key].timeout_ms;
        self.expiry.touch(key, now.elapsed_ms, timeout_ms);
    }

    /// Removes a session. The caller deletes its ephemerals first.
    pub(crate) fn close(&mut self, key: SessionKey) -> Session {
        self.touched = (SessionKey::NONE, 0);
        self.expiry.remove(key);
        let id = self[key].id;
        self.index
            .find_entry(self.hasher.hash_one(id), |other| *other == key)
            .expect("every session is in the index")
            .remove();
        self.table.remove(key.0 as usize)
    }

    /// Returns a copy without ephemerals, which takes time in proportion to the sessions alone.
    pub(crate) fn without_ephemerals(&self) -> Self {
        let copy = |(key, session): (usize, &Session)| {
            work::visit();
            let session = Session {
                ephemerals: BTreeSet::new(),
                ..*session
            };
            (key, session)
        };
        Self {
            table: self.table.iter().map(copy).collect(),
            index: self.index.clone(),
            hasher: self.hasher.clone(),
            expiry: self.expiry.clone(),
            ..*self
        }
    }

    /// Detaches every session from its connection.
    pub(crate) fn part_all(&mut self) {
        for (_, session) in &mut self.table {
            session.conn = None;
        }
    }

    pub(crate) fn first_due(&mut self, now: Now) -> Option<SessionKey> {
        self.expiry.first_due(now.elapsed_ms)
    }

    /// Returns when to look for due sessions; there may be none then.
    pub(crate) fn look_ms(&self) -> Option<u64> {
        self.expiry.first_bucket_ms()
    }

    /// Returns when the first session is due.
    pub(crate) fn next_deadline_ms(&mut self) -> Option<u64> {
        self.expiry.next_deadline_ms()
    }

    pub(crate) fn deadline_ms(&self, key: SessionKey) -> u64 {
        self.expiry.deadline_ms(key)
    }

    /// Returns every session, in the order of the table.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (SessionKey, &Session)> {
        self.table.iter().map(|(key, session)| {
            (
                SessionKey(u32::try_from(key).expect("keys are made from u32")),
                session,
            )
        })
    }

    pub(crate) const fn expiry(&self) -> &ExpiryQueue {
        &self.expiry
    }
}

/// Computes the password of a session: a fixed function of its id, so that it need not be stored,
/// and a session imported from ZooKeeper stays valid.
///
/// Source: `docs/zookeeper-protocol.md` section 6.7; ZooKeeper uses `java.util.Random`, seeded with
/// the id.
pub(crate) fn password(id: SessionId) -> [u8; PASSWORD_BYTES] {
    const MULTIPLIER: u64 = 0x5_DEEC_E66D;
    const MASK: u64 = (1 << 48) - 1;
    let mut state = ((id.0.cast_unsigned() ^ 0xB341_5C00) ^ MULTIPLIER) & MASK;
    let mut password = [0; PASSWORD_BYTES];
    for chunk in password.chunks_exact_mut(4) {
        state = state.wrapping_mul(MULTIPLIER).wrapping_add(0xB) & MASK;
        chunk.copy_from_slice(&(state >> 16).to_le_bytes()[..4]);
    }
    password
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn password_equals_the_captured_one() {
        // Captured from a live server (`docs/zookeeper-protocol.md` section 6.7).
        let hex: String = password(SessionId(0x0100_000d_6068_0000))
            .iter()
            .map(|b| format!("{b:02x}"))
            .collect();
        assert_eq!(hex, "2ae5e00d6f80f2711835f9b3d07391de");
    }

    #[test]
    fn touched_session_is_due_later() {
        let mut sessions = Sessions::new(Some(1000), SessionId(1), [0, 0]);
        let at = |elapsed_ms| Now {
            elapsed_ms,
            wall_ms: 0,
        };
        let first = sessions.open(at(0), 2000, ConnId(0));
        let second = sessions.open(at(0), 2000, ConnId(1));
        assert_eq!(sessions.next_deadline_ms(), Some(3000));
        sessions.touch(first, at(1500));
        assert_eq!(sessions.first_due(at(2999)), None);
        assert_eq!(sessions.first_due(at(3000)), Some(second));
        sessions.close(second);
        assert_eq!(sessions.next_deadline_ms(), Some(4000));
        assert_eq!(sessions.deadline_ms(first), 4000);
    }
}
