//! Scenarios: small readable scripts of requests, replies and events, run on any [`Target`].
//!
//! ```text
//! # `docs/zookeeper-protocol.md` section 10.8: identical data increments the version and fires
//! case setData with the same bytes
//! connect a
//! connect b
//! a create /x "d" -> /x zxid+1
//! b getData /x watch -> "d" version=0
//! a setData /x "d" -1 -> version=1 zxid+1
//! b <- event changed /x zxid+1
//! ```
//!
//! | line | meaning |
//! | --- | --- |
//! | `case <title>` | starts a new server |
//! | `deviates` | ZooKeeper behaves differently; the difference is deliberate (`docs/zookeeper-protocol.md` section 26) |
//! | `since 3.9.5 <reason>` | ZooKeeper before that version behaves differently |
//! | `connect a [timeout=ms] [session=b] [password=wrong\|null\|long] [seen=zxid+1] [readonly=none\|yes]` | a handshake; without `session=` for a new session |
//! | `reconnect a` | drops the connection, and resumes its session on a new one |
//! | `disconnect a`, `expire a`, `advance 4000ms` | drops the connection; expires its session; advances the clock |
//! | `mark m` | `$m` is the newest zxid from here on, `$m+1` the next one |
//! | `a <operation> <arguments> [xid=n] [-> <expectation>]` | a request, and the next thing `a` receives |
//! | `a <- <expectation>` | the next thing `a` receives |
//!
//! An expectation is `event <kind> <path>`, `closed`, `nothing`, `connected ...`, `refused ...`,
//! the name of an error, or, for success, fields of the reply: a path, quoted data, `name=value`. A
//! multi has `results { ... ; ... }`, a multiRead that stopped midway `broken_off { ... }`.
//! `zxid+n` or `zxid-n` alone is the zxid of the header, relative to the newest one before the last
//! line that was not an expectation. At the end of a case no message may be left to receive.
//! Listings are sorted before they are compared.
//!
//! The differences behind `since`: `docs/zookeeper-protocol.md` section 23.

mod engine;
mod env;
mod expect;
mod line;
mod operation;
mod render;
mod token;

use std::{
    collections::{BTreeMap, VecDeque},
    fmt,
};

use bytes::Bytes;
use minikeeper_protocol::{ConnectRequest, ConnectResponse, OpCode, Reader, SessionId, Xid};

pub use engine::OnEngine;
pub(crate) use env::Env;
pub(crate) use line::{Action, Line};
pub(crate) use operation::{hello, message};
pub(crate) use render::{MARK, expectation};
pub(crate) use token::{Token, tokens as plain_words};

use crate::drive::{Sent, parse};
use expect::Expectation;
use line::parse_line;

/// What a connection receives next.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Incoming {
    /// A message without its length prefix.
    Message(Bytes),
    /// The end of the connection.
    Closed,
}

pub use minikeeper_core::replay::canonical::KnownDifferences;

/// A newly started server on which scenarios run.
pub trait Target {
    /// The newest zxid.
    ///
    /// # Errors
    /// When the server is broken.
    fn zxid(&mut self) -> Result<i64, String>;
    /// Opens a connection and sends the handshake. Replaces a closed connection of this name.
    ///
    /// # Errors
    /// When a connection of this name is open, or the server is broken.
    fn connect(&mut self, conn: &str, hello: &ConnectRequest) -> Result<(), String>;
    /// Sends a message, given without its length prefix. Does nothing if the connection is closed.
    ///
    /// # Errors
    /// When the connection never existed, or the server is broken.
    fn send(&mut self, conn: &str, message: &Bytes) -> Result<(), String>;
    /// Returns the next message or end of a connection; `None` if there is none.
    ///
    /// # Errors
    /// When the connection never existed.
    fn receive(&mut self, conn: &str) -> Result<Option<Incoming>, String>;
    /// Drops a connection.
    ///
    /// # Errors
    /// When the connection does not exist, or the server is broken.
    fn disconnect(&mut self, conn: &str) -> Result<(), String>;
    /// Expires a session before its timeout.
    ///
    /// # Errors
    /// When the server is broken.
    fn expire(&mut self, session: SessionId) -> Result<(), String>;
    /// Advances the clock.
    ///
    /// # Errors
    /// When the server is broken.
    fn advance(&mut self, by_ms: u64) -> Result<(), String>;
    /// What the server leaves out.
    fn known(&self) -> KnownDifferences {
        KnownDifferences::default()
    }
}

/// A file of scenarios.
#[derive(Debug)]
pub struct Script {
    file: String,
    /// The cases in order.
    pub cases: Vec<Case>,
}

/// One case: a title and its lines.
#[derive(Debug)]
pub struct Case {
    /// What it shows.
    pub title: String,
    /// Whether ZooKeeper is known to behave differently.
    pub deviates: bool,
    /// The first version of ZooKeeper that passes, and what earlier ones do.
    pub since: Option<(String, String)>,
    lines: Vec<Line>,
}

/// A line that does not parse, or an expectation that a server does not meet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault(String);

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Fault {}

impl Script {
    /// Parses a file of scenarios.
    ///
    /// # Errors
    /// The first line that does not parse, with file and number.
    pub fn parse(file: &str, text: &str) -> Result<Self, Fault> {
        let mut cases: Vec<Case> = Vec::new();
        for (index, text) in text.lines().enumerate() {
            let text = text.trim();
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            let number = index + 1;
            let fault = |what: String| Fault(format!("{file}:{number}: {what}: {text}"));
            if let Some(title) = text.strip_prefix("case ") {
                cases.push(Case {
                    title: title.to_owned(),
                    deviates: false,
                    since: None,
                    lines: Vec::new(),
                });
                continue;
            }
            let case = cases
                .last_mut()
                .ok_or_else(|| fault("line before the first case".to_owned()))?;
            if text == "deviates" {
                case.deviates = true;
                continue;
            }
            if let Some(since) = text.strip_prefix("since ") {
                let (version, reason) = since
                    .split_once(' ')
                    .ok_or_else(|| fault("since needs a version and a reason".to_owned()))?;
                case.since = Some((version.to_owned(), reason.to_owned()));
                continue;
            }
            let (action, expected) = parse_line(text).map_err(fault)?;
            case.lines.push(Line {
                number,
                text: text.to_owned(),
                action,
                expected,
            });
        }
        Ok(Self {
            file: file.to_owned(),
            cases,
        })
    }

    /// Runs every case on a new server.
    ///
    /// # Errors
    /// The first expectation that is not met: file, line, what was expected, what was received.
    pub fn run<T: Target>(&self, mut start: impl FnMut() -> T) -> Result<(), Fault> {
        for case in &self.cases {
            self.run_case(case, &mut start())?;
        }
        Ok(())
    }

    /// Runs one case.
    ///
    /// # Errors
    /// As [`Script::run`].
    pub fn run_case(&self, case: &Case, target: &mut impl Target) -> Result<(), Fault> {
        let mut run = Run {
            target,
            env: Env::default(),
            pending: BTreeMap::new(),
            next_xid: 1,
        };
        for line in &case.lines {
            run.line(line).map_err(|what| {
                let (file, number, text, title) =
                    (&self.file, line.number, &line.text, &case.title);
                Fault(format!("{file}:{number}: {title}\n  {text}\n  {what}"))
            })?;
        }
        run.nothing_left()
            .map_err(|what| Fault(format!("{}: {}: at the end {what}", self.file, case.title)))
    }
}

/// An unanswered message: the xid and operation of a request, or `None` for a handshake.
type Pending = Option<(Xid, Option<OpCode>)>;

/// A running case.
struct Run<'a, T> {
    target: &'a mut T,
    env: Env,
    /// The unanswered messages of each connection.
    pending: BTreeMap<String, VecDeque<Pending>>,
    next_xid: i32,
}

impl<T: Target> Run<'_, T> {
    fn line(&mut self, line: &Line) -> Result<(), String> {
        if !matches!(line.action, Action::Receive(_)) {
            self.env.zxid = self.target.zxid()?;
        }
        let conn = match &line.action {
            Action::Connect {
                conn,
                options,
                drops_first,
            } => {
                if *drops_first {
                    self.target.disconnect(conn)?;
                    self.pending.remove(conn);
                }
                let hello = hello(options, &self.env, false)?;
                self.target.connect(conn, &hello)?;
                self.pending.insert(conn.clone(), VecDeque::from([None]));
                conn
            }
            Action::Disconnect(conn) => {
                self.pending.remove(conn);
                return self.target.disconnect(conn);
            }
            Action::Expire(conn) => {
                let known = self.env.sessions.get(conn);
                let (session, _) = known.ok_or_else(|| format!("{conn} has no session"))?;
                return self.target.expire(*session);
            }
            Action::Advance(by_ms) => return self.target.advance(*by_ms),
            Action::Mark(name) => {
                self.env.marks.insert(name.clone(), self.env.zxid);
                return Ok(());
            }
            Action::Request { conn, words } => {
                let xid = Xid(self.next_xid);
                self.next_xid += 1;
                let (message, xid, op) = message(words, &self.env, xid, false)?;
                self.target.send(conn, &message)?;
                let pending = self.pending.entry(conn.clone()).or_default();
                pending.push_back(Some((xid, op)));
                conn
            }
            Action::Receive(conn) => conn,
        };
        match &line.expected {
            Some(expected) => self.expect(conn, expected),
            None => Ok(()),
        }
    }

    fn expect(&mut self, conn: &str, expected: &[Token]) -> Result<(), String> {
        let expected = Expectation::parse(expected, &self.env, false)?.without(self.target.known());
        let got = match self.target.receive(conn)? {
            None => Got::Nothing,
            Some(Incoming::Closed) => Got::Closed,
            Some(Incoming::Message(message)) => Got::Sent(self.take(conn, &message)?),
        };
        if let Got::Sent(Sent::Connected(response)) = &got
            && response.session_id != SessionId::NONE
        {
            let password = response.password.clone().unwrap_or_default();
            let session = (response.session_id, password);
            self.env.sessions.insert(conn.to_owned(), session);
        }
        expected.check(&got, &self.env)
    }

    /// Decodes a message, and removes the request that it replies to.
    fn take(&mut self, conn: &str, message: &Bytes) -> Result<Sent, String> {
        let pending = self.pending.entry(conn.to_owned()).or_default();
        if pending.front() == Some(&None) {
            pending.pop_front();
            return ConnectResponse::decode(&mut Reader::new(message))
                .map(Sent::Connected)
                .map_err(|error| format!("handshake response: {error}"));
        }
        let op = pending.front().copied().flatten().and_then(|(_, op)| op);
        let sent = parse(message, op)?;
        if let Sent::Reply { xid, .. } | Sent::BrokenOff { xid, .. } = &sent {
            let (expected, op) = pending
                .pop_front()
                .flatten()
                .ok_or("reply without a request")?;
            let expected = if op == Some(OpCode::Ping) {
                Xid::PING
            } else {
                expected
            };
            if *xid != expected {
                return Err(format!("expected xid {expected}\n  got      xid {xid}"));
            }
        }
        Ok(sent)
    }

    fn nothing_left(&mut self) -> Result<(), String> {
        let conns: Vec<_> = self.pending.keys().cloned().collect();
        for conn in conns {
            match self.target.receive(&conn)? {
                None | Some(Incoming::Closed) => {}
                Some(Incoming::Message(message)) => {
                    let sent = self.take(&conn, &message)?;
                    return Err(format!("{conn} received {sent:?}"));
                }
            }
        }
        Ok(())
    }
}

/// What a connection received, if anything.
#[derive(Debug)]
pub(crate) enum Got {
    Sent(Sent),
    Closed,
    Nothing,
}
