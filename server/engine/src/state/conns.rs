//! The session and the identities of each connection, in eight bytes.
//!
//! `watches.rs` has the watches of a connection.

use crate::{
    input::ConnId,
    state::keys::{IdentitiesId, SessionKey},
};

/// One connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Conn {
    /// NONE before the handshake, and after the connection is detached from its session.
    pub(crate) session: SessionKey,
    /// NONE after the connection is detached from its session.
    pub(crate) identities: IdentitiesId,
}

impl Conn {
    const NONE: Self = Self {
        session: SessionKey::NONE,
        identities: IdentitiesId::NONE,
    };
}

/// The connections, by number.
#[derive(Debug, Default)]
pub(crate) struct Conns {
    table: Vec<Conn>,
}

impl Conns {
    /// Returns a connection if it has a session.
    pub(crate) fn get(&self, conn: ConnId) -> Option<Conn> {
        let conn = *self.table.get(conn.0 as usize)?;
        (conn.session != SessionKey::NONE).then_some(conn)
    }

    /// Returns a connection if it is known, with or without a session.
    pub(crate) fn announced(&self, conn: ConnId) -> Option<Conn> {
        let conn = *self.table.get(conn.0 as usize)?;
        (conn.identities != IdentitiesId::NONE).then_some(conn)
    }

    pub(crate) fn set(&mut self, conn: ConnId, to: Conn) {
        let index = conn.0 as usize;
        if index >= self.table.len() {
            self.table.resize(index + 1, Conn::NONE);
        }
        self.table[index] = to;
    }

    /// Removes and returns a connection's entry.
    pub(crate) fn take(&mut self, conn: ConnId) -> Conn {
        match self.table.get_mut(conn.0 as usize) {
            Some(entry) => std::mem::replace(entry, Conn::NONE),
            None => Conn::NONE,
        }
    }

    /// Returns every known connection.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (ConnId, Conn)> + '_ {
        (0..)
            .zip(&self.table)
            .filter(|(_, conn)| conn.identities != IdentitiesId::NONE)
            .map(|(index, conn)| (ConnId(index), *conn))
    }
}
