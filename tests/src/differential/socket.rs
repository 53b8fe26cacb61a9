//! Runs scenarios over sockets.

use std::{collections::BTreeMap, net::SocketAddr};

use bytes::Bytes;
use minikeeper_protocol::{
    ConnectRequest, ConnectResponse, OpCode, Reader, RequestHeader, SessionId,
};

use super::{
    link::{Got, Link, closes},
    server::Server,
};
use crate::scenario::{Incoming, KnownDifferences, Target};

/// A newly started server as the target of a scenario, over TCP.
///
/// Every line waits for its reply. Events are received up to a barrier, which does not keep the
/// session alive ([`Link::barrier`]).
pub struct OnSocket<'s> {
    server: &'s mut dyn Server,
    address: SocketAddr,
    conns: BTreeMap<String, Conn>,
    known: KnownDifferences,
}

struct Conn {
    link: Link,
    session: SessionId,
    /// Whether the response to the handshake is still in the inbox.
    is_new: bool,
}

impl<'s> OnSocket<'s> {
    /// Restarts the server with an empty tree.
    ///
    /// # Errors
    /// When the server does not start.
    pub fn new(server: &'s mut dyn Server, known: KnownDifferences) -> Result<Self, String> {
        let address = server.fresh()?;
        Ok(Self {
            server,
            address,
            conns: BTreeMap::new(),
            known,
        })
    }

    fn conn(&mut self, name: &str) -> Result<&mut Conn, String> {
        self.conns
            .get_mut(name)
            .ok_or_else(|| format!("no connection {name}"))
    }

    fn await_end_of(&mut self, session: SessionId, but: &str) {
        for (name, conn) in &mut self.conns {
            if conn.session == session && name != but {
                conn.link.await_end();
            }
        }
    }
}

impl Target for OnSocket<'_> {
    fn zxid(&mut self) -> Result<i64, String> {
        self.server.zxid()
    }

    fn connect(&mut self, conn: &str, hello: &ConnectRequest) -> Result<(), String> {
        if self
            .conns
            .get(conn)
            .is_some_and(|conn| !conn.link.is_over())
        {
            return Err(format!("{conn} is connected"));
        }
        let mut link = Link::open(self.address, hello)
            .map_err(|error| format!("cannot connect to {}: {error}", self.server.name()))?;
        link.await_handshake();
        if hello.session_id != SessionId::NONE && !link.is_over() {
            self.await_end_of(hello.session_id, conn);
        }
        let fresh = Conn {
            link,
            session: hello.session_id,
            is_new: true,
        };
        self.conns.insert(conn.to_owned(), fresh);
        Ok(())
    }

    fn send(&mut self, conn: &str, message: &Bytes) -> Result<(), String> {
        let link = &mut self.conn(conn)?.link;
        link.send(std::slice::from_ref(message));
        link.await_replies(1);
        let header = RequestHeader::decode(&mut Reader::new(message));
        let op = header.ok().and_then(|header| OpCode::from_code(header.op));
        if matches!(link.newest(), Some(Got::Message(reply)) if closes(op, reply)) {
            link.await_end();
        }
        Ok(())
    }

    fn receive(&mut self, conn: &str) -> Result<Option<Incoming>, String> {
        let conn = self.conn(conn)?;
        let got = match conn.link.take() {
            Some(got) => Some(got),
            None => {
                conn.link.barrier();
                conn.link.take()
            }
        };
        Ok(match got {
            None | Some(Got::Silence) => None,
            Some(Got::Closed) => Some(Incoming::Closed),
            Some(Got::Message(message)) => {
                if std::mem::take(&mut conn.is_new) {
                    note_session(conn, &message);
                }
                Some(Incoming::Message(message))
            }
        })
    }

    fn disconnect(&mut self, conn: &str) -> Result<(), String> {
        self.conn(conn)?.link.cut();
        Ok(())
    }

    fn expire(&mut self, session: SessionId) -> Result<(), String> {
        if self.server.expire(session)? {
            self.await_end_of(session, "");
        }
        Ok(())
    }

    fn advance(&mut self, by_ms: u64) -> Result<(), String> {
        for session in self.server.advance(by_ms)? {
            self.await_end_of(session, "");
        }
        Ok(())
    }

    fn known(&self) -> KnownDifferences {
        self.known
    }
}

fn note_session(conn: &mut Conn, message: &Bytes) {
    if let Ok(response) = ConnectResponse::decode(&mut Reader::new(message)) {
        conn.session = response.session_id;
        if response.session_id == SessionId::NONE {
            conn.link.await_end();
        }
    }
}
