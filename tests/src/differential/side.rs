//! One of the two servers, with its connections.

use std::{
    collections::{BTreeMap, VecDeque},
    net::SocketAddr,
};

use bytes::Bytes;
use minikeeper_protocol::{
    ConnectRequest, ConnectResponse, OpCode, Reader, ReplyHeader, SessionId, Xid,
};

use super::{
    canonical::{self, Names},
    known::KnownDifferences,
    link::{Got, Link, closes, is_event},
    server::Server,
};
use crate::{
    drive::{Sent, parse},
    scenario::{Action, Env, Line, Token, hello, message},
};

/// What a connection waits for: the response to a handshake, or the reply to this operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Pending {
    Hello,
    Request(Option<OpCode>),
}

#[derive(Debug)]
struct Conn {
    link: Link,
    pending: VecDeque<Pending>,
    /// The session that it resumes or was given.
    session: SessionId,
}

/// One frame, end or silence of a connection.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The normal form, which is compared.
    pub canonical: Vec<u8>,
    /// Whether it is a watch event.
    pub is_event: bool,
    /// The decoded frame, for messages and for scenarios.
    pub(crate) got: Result<Sent, Got>,
}

/// A server, its connections by name, and the state that lines refer to.
pub struct Side<'s> {
    server: &'s mut dyn Server,
    address: SocketAddr,
    conns: BTreeMap<String, Conn>,
    names: Names,
    known: KnownDifferences,
    pub(crate) env: Env,
    next_xid: i32,
}

impl<'s> Side<'s> {
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
            names: Names::default(),
            known,
            env: Env::default(),
            next_xid: 1,
        })
    }

    /// Whether the connection exists, and its end has not been seen.
    #[must_use]
    pub fn is_open(&self, name: &str) -> bool {
        self.conns
            .get(name)
            .is_some_and(|conn| !conn.link.is_over())
    }

    /// Whether a session of this name was ever opened.
    #[must_use]
    pub fn has_session(&self, name: &str) -> bool {
        self.env.sessions.contains_key(name)
    }

    /// The newest zxid of the server.
    ///
    /// # Errors
    /// When the server is broken.
    pub(crate) fn newest_zxid(&mut self) -> Result<i64, String> {
        self.server.zxid()
    }

    /// The names of the connections.
    pub(crate) fn names(&self) -> Vec<String> {
        self.conns.keys().cloned().collect()
    }

    /// Sends the requests of these lines with one write. Returns `false` if they do not apply.
    ///
    /// # Errors
    /// When connecting to the server fails.
    pub(crate) fn begin(&mut self, lines: &[Line]) -> Result<bool, String> {
        let [line, ..] = lines else { return Ok(false) };
        match &line.action {
            Action::Connect {
                conn,
                options,
                drops_first,
            } => {
                if *drops_first {
                    if !self.is_open(conn) {
                        return Ok(false);
                    }
                    self.conns.remove(conn);
                }
                let Ok(hello) = hello(options, &self.env, false) else {
                    return Ok(false);
                };
                if self.is_open(conn) {
                    return Ok(false);
                }
                self.connect(conn, &hello)?;
                Ok(true)
            }
            Action::Request { conn, .. } => self.begin_requests(conn, lines),
            Action::Disconnect(conn) => Ok(self.is_open(conn)),
            Action::Expire(conn) => Ok(self.has_session(conn)),
            Action::Advance(_) => Ok(true),
            Action::Mark(_) | Action::Receive(_) => {
                Err("a history cannot contain marks or expectations".to_owned())
            }
        }
    }

    fn connect(&mut self, name: &str, hello: &ConnectRequest) -> Result<(), String> {
        let link = Link::open(self.address, hello)
            .map_err(|error| format!("cannot connect to {}: {error}", self.server.name()))?;
        let conn = Conn {
            link,
            pending: VecDeque::from([Pending::Hello]),
            session: hello.session_id,
        };
        self.conns.insert(name.to_owned(), conn);
        Ok(())
    }

    fn begin_requests(&mut self, name: &str, lines: &[Line]) -> Result<bool, String> {
        if !self.is_open(name) || lines.iter().any(|line| self.has_ambiguous_since(line)) {
            return Ok(false);
        }
        let mut messages = Vec::new();
        let mut pending = Vec::new();
        for line in lines {
            if let Action::Request { words, .. } = &line.action {
                let xid = Xid(self.next_xid);
                self.next_xid += 1;
                let (message, _, op) = message(words, &self.env, xid, false)?;
                messages.push(message);
                pending.push(Pending::Request(op));
            }
        }
        if let Some(conn) = self.conns.get_mut(name) {
            conn.pending.extend(pending);
            conn.link.send(&messages);
        }
        Ok(true)
    }

    /// Whether the zxid of a setWatches belongs to changes of unspecified order.
    fn has_ambiguous_since(&self, line: &Line) -> bool {
        let Action::Request { words, .. } = &line.action else {
            return false;
        };
        let since = words.iter().filter_map(Token::option);
        since
            .filter(|(name, _)| name == "since")
            .filter_map(|(_, zxid)| self.env.zxid(&zxid.text(), false).ok())
            .any(|zxid| self.names.is_open(zxid.0))
    }

    /// Waits until the server has completed these lines.
    ///
    /// # Errors
    /// When the server is broken.
    pub(crate) fn finish(&mut self, lines: &[Line]) -> Result<(), String> {
        let [line, ..] = lines else { return Ok(()) };
        match &line.action {
            Action::Connect { conn, .. } => self.finish_connect(conn),
            Action::Request { conn, .. } => {
                if let Some(conn) = self.conns.get_mut(conn) {
                    conn.link.await_replies(lines.len());
                }
            }
            Action::Disconnect(conn) => {
                self.conns.remove(conn);
            }
            Action::Expire(conn) => {
                let session = self.env.sessions.get(conn).map(|(id, _)| *id);
                let session = session.ok_or("no such session")?;
                if self.server.expire(session)? {
                    self.await_end_of(session, None);
                }
                self.env.zxid = self.server.zxid()?;
            }
            Action::Advance(by_ms) => {
                let before = self.server.zxid()?;
                for session in self.server.advance(*by_ms)? {
                    self.await_end_of(session, None);
                }
                let after = self.server.zxid()?;
                self.names.join_zxids(before, after);
                self.env.zxid = after;
            }
            Action::Mark(_) | Action::Receive(_) => {}
        }
        Ok(())
    }

    fn finish_connect(&mut self, name: &str) {
        let Some(conn) = self.conns.get_mut(name) else {
            return;
        };
        conn.link.await_handshake();
        let (resumed, is_over) = (conn.session, conn.link.is_over());
        // The connection that had the session is closed, unless the handshake was ignored.
        if resumed != SessionId::NONE && !is_over {
            self.await_end_of(resumed, Some(name));
        }
    }

    fn await_end_of(&mut self, session: SessionId, but: Option<&str>) {
        for (name, conn) in &mut self.conns {
            if conn.session == session && Some(name.as_str()) != but {
                conn.link.await_end();
            }
        }
    }

    /// Waits on every connection for everything that the server has sent.
    pub(crate) fn barrier(&mut self) {
        for conn in self.conns.values_mut() {
            conn.link.barrier();
        }
    }

    /// Returns what a connection has received since the last call.
    pub(crate) fn collect(&mut self, name: &str) -> Vec<Seen> {
        let mut all = Vec::new();
        while let Some(got) = self.conns.get_mut(name).and_then(|conn| conn.link.take()) {
            match got {
                Got::Message(message) => {
                    let (seen, ends) = self.see(name, &message);
                    all.push(seen);
                    if ends && let Some(conn) = self.conns.get_mut(name) {
                        conn.link.await_end();
                    }
                }
                other => all.push(Seen {
                    canonical: format!("{other:?}").into_bytes(),
                    is_event: false,
                    got: Err(other),
                }),
            }
        }
        all
    }

    /// Decodes a message. Returns also whether the connection ends after it.
    fn see(&mut self, name: &str, message: &Bytes) -> (Seen, bool) {
        let conn = self.conns.get_mut(name).expect("it received something");
        if conn.pending.front() == Some(&Pending::Hello) {
            conn.pending.pop_front();
            let canonical = canonical::handshake(message, &mut self.names);
            let response = ConnectResponse::decode(&mut Reader::new(message));
            let is_refused = self.note_session(name, response.as_ref().ok());
            let got = response.map(Sent::Connected);
            let seen = Seen {
                canonical,
                is_event: false,
                got: got.map_err(|_| Got::Message(message.clone())),
            };
            return (seen, is_refused);
        }
        let is_event = is_event(message);
        let pending = if is_event {
            None
        } else {
            conn.pending.pop_front()
        };
        let op = match pending {
            Some(Pending::Request(op)) => op,
            _ => None,
        };
        let canonical = canonical::frame(message, op, &self.names, &self.known);
        let mut ends = false;
        if let (false, Ok(header)) = (is_event, ReplyHeader::decode(&mut Reader::new(message))) {
            self.env.zxid = self.env.zxid.max(header.zxid.0);
            ends = closes(op, message);
        }
        let seen = Seen {
            canonical,
            is_event,
            got: parse(message, op).map_err(|_| Got::Message(message.clone())),
        };
        (seen, ends)
    }

    /// Records a session. Returns whether the handshake was refused.
    fn note_session(&mut self, name: &str, response: Option<&ConnectResponse>) -> bool {
        let Some(response) = response else {
            return false;
        };
        let id = response.session_id;
        if id == SessionId::NONE {
            return true;
        }
        let conn = self.conns.get_mut(name).expect("it received a response");
        if conn.session == SessionId::NONE {
            // A new session takes a zxid.
            self.env.zxid += 1;
        }
        conn.session = id;
        let password = response.password.clone().unwrap_or_default();
        self.env.sessions.insert(name.to_owned(), (id, password));
        false
    }
}
