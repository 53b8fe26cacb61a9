//! Runs scenarios on the engine, without sockets and on a manual clock.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use minikeeper_engine::{ConnId, Settings};
use minikeeper_protocol::{ConnectRequest, SessionId};

use super::{Incoming, Target};
use crate::drive::{self, Drive, Effect, Sent};

/// An engine as the target of a scenario. Every input ends with a check of all invariants.
#[derive(Debug)]
pub struct OnEngine {
    drive: Drive,
    conns: BTreeMap<String, Conn>,
}

#[derive(Debug)]
struct Conn {
    number: u32,
    is_open: bool,
    inbox: VecDeque<Incoming>,
}

impl Conn {
    fn close(&mut self, drive: &mut Drive) -> Result<(), String> {
        self.inbox.push_back(Incoming::Closed);
        self.is_open = false;
        let after = drive.disconnect(self.number)?;
        if after.is_empty() {
            Ok(())
        } else {
            Err(format!("unexpected effects of a disconnect: {after:?}"))
        }
    }
}

impl OnEngine {
    /// Starts an engine.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            drive: Drive::new(settings),
            conns: BTreeMap::new(),
        }
    }

    fn conn(&self, name: &str) -> Result<&Conn, String> {
        self.conns
            .get(name)
            .ok_or_else(|| format!("no connection {name}"))
    }

    /// Delivers effects to inboxes. Disconnects closed connections, as the shell does.
    fn deliver(&mut self, effects: Vec<Effect>) -> Result<(), String> {
        for effect in effects {
            let found = self
                .conns
                .values_mut()
                .find(|conn| conn.number == effect.conn);
            let conn = found.ok_or_else(|| format!("{effect:?} for an unknown connection"))?;
            match effect.sent {
                Sent::Close(_) => conn.close(&mut self.drive)?,
                sent if !conn.is_open => return Err(format!("{sent:?} on a closed connection")),
                _ => conn.inbox.push_back(Incoming::Message(effect.message)),
            }
        }
        Ok(())
    }
}

impl Target for OnEngine {
    fn zxid(&mut self) -> Result<i64, String> {
        Ok(self.drive.engine().zxid().0)
    }

    fn connect(&mut self, conn: &str, hello: &ConnectRequest) -> Result<(), String> {
        if self.conns.get(conn).is_some_and(|conn| conn.is_open) {
            return Err(format!("{conn} is connected"));
        }
        // A closed connection of this name passes on its number; the shell reuses numbers too.
        let unused = u32::try_from(self.conns.len()).expect("scenarios have few connections");
        let number = self.conns.get(conn).map_or(unused, |conn| conn.number);
        let fresh = Conn {
            number,
            is_open: true,
            inbox: VecDeque::new(),
        };
        self.conns.insert(conn.to_owned(), fresh);
        let effects = self.drive.connect(number, hello)?;
        self.deliver(effects)
    }

    fn send(&mut self, conn: &str, message: &Bytes) -> Result<(), String> {
        self.conn(conn)?;
        let Some(conn) = self.conns.get_mut(conn).filter(|conn| conn.is_open) else {
            return Ok(());
        };
        // The shell closes a connection over a message that it can neither decode nor reply to.
        if drive::decode(ConnId(conn.number), message).is_err() {
            return conn.close(&mut self.drive);
        }
        let effects = self.drive.message(conn.number, message)?;
        self.deliver(effects)
    }

    fn receive(&mut self, conn: &str) -> Result<Option<Incoming>, String> {
        self.conn(conn)?;
        Ok(self
            .conns
            .get_mut(conn)
            .and_then(|conn| conn.inbox.pop_front()))
    }

    fn disconnect(&mut self, conn: &str) -> Result<(), String> {
        let number = self.conn(conn)?.number;
        if let Some(conn) = self.conns.get_mut(conn) {
            conn.is_open = false;
            conn.inbox.clear();
        }
        let effects = self.drive.disconnect(number)?;
        self.deliver(effects)
    }

    fn expire(&mut self, session: SessionId) -> Result<(), String> {
        let effects = self.drive.expire(session)?;
        self.deliver(effects)
    }

    fn advance(&mut self, by_ms: u64) -> Result<(), String> {
        let effects = self.drive.advance(by_ms)?;
        self.deliver(effects)
    }
}
