//! Lists, expires, disconnects and silences sessions.

use std::{sync::Arc, time::Duration};

use minikeeper_engine::ConnId;
use minikeeper_protocol::SessionId;

use crate::{
    faults::{error::FaultError, fault::Fault},
    turn::{core::Look, fault_turn, outbox::Close},
    universe::{
        Universe, flush_wait,
        session_info::SessionInfo,
        session_selector::{NoSession, SessionSelector},
        state::UniverseState,
    },
};

/// How long clients that have been told of an expiry may take to be written to. A bound for a
/// machine that stands still, never a delay.
const TOLD_WITHIN: Duration = Duration::from_secs(10);

/// The maximum number of sessions that an error lists.
const LISTED_MAX: usize = 10;

/// A client says by its first path which universe its session belongs to. Until then the session
/// belongs to none ([`SessionInfo::is_unbound`]). The verbs that take a [`SessionSelector`] find it
/// from every universe of its server by its id, or by its address with the port. If there is one
/// universe beside the server's own, [`sessions`](Universe::sessions) lists it there too, and it is
/// found in any way; if there are several it might be that of another one's client.
impl Universe {
    /// Expires sessions: deletes their ephemerals, notifies watchers, closes connections. Returns
    /// how many sessions matched; all of them expire in one turn.
    ///
    /// When this returns, the state has changed and the events are with the watchers' connections,
    /// whose tasks write them as soon as the runtime lets them. [`Universe::expire_told`] waits
    /// until they have; so does [`blocking::Server::expire`](crate::blocking::Server::expire).
    ///
    /// # Errors
    /// When no session is meant, since a test that ends no session tests nothing. Where that is
    /// fine, say `.unwrap_or(0)`.
    ///
    /// # Examples
    /// ```no_run
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// let server = minikeeper::Server::builder().start().await?;
    /// // The holder of the lock loses it now, in whatever process it is.
    /// server.expire("/locks/lock-0000000007")?;
    /// server.expire("digest:alice")?;
    /// for session in server.sessions() {
    ///     server.expire(session.id)?;
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn expire(&self, who: impl Into<SessionSelector>) -> Result<usize, NoSession> {
        let who = who.into();
        let mut count = self.shared.turns.expire(|look| who.find(look));
        if count == 0
            && let Some(root) = self.elsewhere()
        {
            let is_only = self.is_only();
            count = (root.turns).expire(|look| who.find_unbound(look, is_only));
        }
        self.met(count, "expire", "session", who)
    }

    /// Expires sessions as [`Universe::expire`] does, and resolves when every watcher's events are
    /// in its socket: a client in another process need only read.
    ///
    /// A client that does not read, so that its socket is full, is not waited for.
    ///
    /// # Errors
    /// Those of [`Universe::expire`].
    ///
    /// # Examples
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// let server = minikeeper::Server::builder().start().await?;
    /// assert_eq!(server.expire_told("127.0.0.1").await.unwrap_or(0), 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn expire_told(&self, who: impl Into<SessionSelector>) -> Result<usize, NoSession> {
        let count = self.expire(who)?;
        if !flush_wait::told(&self.shared, TOLD_WITHIN).await {
            tracing::warn!("some clients could not be told of an expiry in time");
        }
        Ok(count)
    }

    /// Closes the connections of sessions; the sessions live on. Returns how many had one.
    ///
    /// # Errors
    /// When none of them has a connection. Where that is fine, say `.unwrap_or(0)`.
    ///
    /// # Examples
    /// ```no_run
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// let server = minikeeper::Server::builder().start().await?;
    /// server.disconnect("127.0.0.1")?; // every client of this machine has to reconnect
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn disconnect(&self, who: impl Into<SessionSelector>) -> Result<usize, NoSession> {
        let who = who.into();
        let mut count = self.shared.turns.disconnect(|look| who.find(look));
        if count == 0
            && let Some(root) = self.elsewhere()
        {
            let is_only = self.is_only();
            count = (root.turns).disconnect(|look| who.find_unbound(look, is_only));
        }
        self.met(count, "disconnect", "connected session", who)
    }

    /// Closes every connection; the sessions live on.
    pub fn disconnect_all(&self) {
        self.shared.turns.close_all(Close::Asked);
    }

    /// Finds the sessions that match. An empty list is no error.
    #[must_use]
    pub fn find_sessions(&self, who: impl Into<SessionSelector>) -> Vec<SessionId> {
        let (mut sessions, unbound) = self.find(&who.into());
        sessions.extend(unbound);
        sessions
    }

    /// The sessions that are meant: of this universe, or, where there are none, of those that
    /// belong to none yet.
    pub(super) fn find(&self, who: &SessionSelector) -> (Vec<SessionId>, Vec<SessionId>) {
        let ids = |found: Vec<(SessionId, Option<ConnId>)>| found.into_iter().map(|(id, _)| id);
        let is_only = self.is_only();
        let sessions: Vec<_> = ids(self.shared.turns.look(|look| who.find(&look))).collect();
        let unbound = match self.elsewhere() {
            Some(root) if sessions.is_empty() => {
                ids(root.turns.look(|look| who.find_unbound(&look, is_only))).collect()
            }
            _ => Vec::new(),
        };
        (sessions, unbound)
    }

    /// Where the sessions are that belong to no universe yet, unless it is here.
    pub(super) fn elsewhere(&self) -> Option<&UniverseState> {
        (!Arc::ptr_eq(&self.shared, &self.root)).then_some(&*self.root)
    }

    /// Whether this is the only universe beside the server's own.
    fn is_only(&self) -> bool {
        self.elsewhere().is_some() && self.root.server.universes.is_one()
    }

    /// The number of sessions that a verb has matched, if any.
    pub(super) fn met(
        &self,
        count: usize,
        verb: &'static str,
        wanted: &'static str,
        who: SessionSelector,
    ) -> Result<usize, NoSession> {
        if count > 0 {
            return Ok(count);
        }
        Err(NoSession {
            verb,
            who,
            wanted,
            seen: self.seen(&self.sessions()),
        })
    }

    /// Describes the sessions for an error, and those that could not match because they have no
    /// universe.
    pub(super) fn seen(&self, sessions: &[SessionInfo]) -> String {
        let mut text = listed(sessions);
        if let Some(root) = self.elsewhere()
            && !self.is_only()
        {
            let unbound = sessions_of(root)
                .iter()
                .filter(|info| info.is_unbound)
                .count();
            if unbound > 0 {
                text.push_str(&format!(
                    "; {unbound} of the server belong to no universe yet, as they have sent no \
                     path: name one by id or by address and port"
                ));
            }
        }
        text
    }

    /// Lists every session, connected or not, ordered by id. If this is the only universe beside
    /// the server's own, the list includes connected sessions that belong to no universe yet
    /// ([`SessionInfo::is_unbound`]).
    ///
    /// # Examples
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// let server = minikeeper::Server::builder().start().await?;
    /// for session in server.sessions() {
    ///     println!("{} from {:?} owns {:?}", session.id, session.address, session.ephemerals);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn sessions(&self) -> Vec<SessionInfo> {
        let mut sessions = sessions_of(&self.shared);
        match self.elsewhere() {
            Some(root) if self.is_only() => {
                let known: Vec<_> = sessions.iter().map(|info| info.id).collect();
                let others = sessions_of(root).into_iter();
                // A fork knows sessions of the server's own universe by the same id.
                let is_meant = |info: &SessionInfo| info.is_unbound && !known.contains(&info.id);
                sessions.extend(others.filter(is_meant));
            }
            Some(_) => {}
            None => {
                let is_used = self.root.server.universes.is_used();
                for session in &mut sessions {
                    session.is_unbound &= is_used;
                }
            }
        }
        sessions.sort_unstable_by_key(|info| info.id);
        let mut faults = self.faults();
        if let Some(root) = self.elsewhere() {
            faults.extend(root.turns.faults.infos());
        }
        for session in &mut sessions {
            session.is_silenced = faults.iter().any(|info| info.fault.silences(session.id));
        }
        sessions
    }
}

fn sessions_of(shared: &UniverseState) -> Vec<SessionInfo> {
    let is_root = shared.turns.prefix().is_empty();
    shared.turns.look(|look| {
        let elapsed_ms = shared.turns.clock().elapsed_ms();
        let Look {
            engine, members, ..
        } = &look;
        let member = |conn: ConnId| members.get(conn.0 as usize);
        let info = |report: minikeeper_engine::SessionReport| {
            let is_unbound = is_root && report.conn.is_some_and(|conn| look.is_unbound(conn));
            let connection = report.conn.and_then(member);
            SessionInfo {
                is_unbound,
                ..SessionInfo::new(report, connection, elapsed_ms)
            }
        };
        engine.session_reports().map(info).collect()
    })
}

/// Sessions in a sentence.
fn listed(sessions: &[SessionInfo]) -> String {
    if sessions.is_empty() {
        return "there are no sessions".to_owned();
    }
    let mut text = match sessions.len() {
        1 => "there is 1 session".to_owned(),
        count => format!("there are {count} sessions"),
    };
    for (index, info) in sessions.iter().take(LISTED_MAX).enumerate() {
        text.push_str(if index == 0 { ": " } else { ", " });
        text.push_str(&info.id.to_string());
        match info.address {
            Some(address) => text.push_str(&format!(" from {address}")),
            None if info.is_connected => {}
            None => text.push_str(" without a connection"),
        }
        if info.is_silenced {
            text.push_str(", silenced");
        }
        if info.is_unbound {
            text.push_str(", of no universe yet");
        }
    }
    if sessions.len() > LISTED_MAX {
        text.push_str(", ...");
    }
    text
}

impl Universe {
    /// Ignores what these sessions send: it gets no reply, changes nothing and does not keep them
    /// alive, so that they expire in time, like those of a process in a long pause. Their
    /// connections stay. Returns how many matched.
    ///
    /// # Errors
    /// When no session is meant ([`FaultError::NoSession`]), or there are too many faults: each
    /// session takes one.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    /// use minikeeper_client::{Client, CreateMode};
    /// let server = minikeeper::Server::builder().manual_clock().start().await?;
    /// let client = Client::connect(&server.connect_string()).await?;
    /// client.create("/alive", b"", CreateMode::Ephemeral).await?;
    /// assert_eq!(server.silence("/alive")?, 1);
    /// server.advance(Duration::from_secs(60));
    /// assert!(server.get("/alive").is_none());
    /// # Ok(()) }
    /// ```
    pub fn silence(&self, who: impl Into<SessionSelector>) -> Result<usize, FaultError> {
        let who = who.into();
        let (sessions, unbound) = self.find(&who);
        for session in sessions.iter().chain(&unbound) {
            silence(&self.shared, *session)?;
        }
        if let Some(root) = self.elsewhere() {
            // Here once they have shown that they belong here, there until then.
            for session in &unbound {
                silence(root, *session)?;
            }
        }
        let count = sessions.len() + unbound.len();
        Ok(self.met(count, "silence", "session", who)?)
    }

    /// Listens to these sessions again. Returns how many were silenced.
    ///
    /// # Errors
    /// When none of them was silenced. Where that is fine, say `.unwrap_or(0)`.
    pub fn unsilence(&self, who: impl Into<SessionSelector>) -> Result<usize, NoSession> {
        let who = who.into();
        let unsilenced = |session: &SessionId| {
            let here = unsilence(&self.shared, *session);
            let there = self
                .elsewhere()
                .is_some_and(|root| unsilence(root, *session));
            here || there
        };
        let count = self
            .find_sessions(who.clone())
            .iter()
            .filter(|id| unsilenced(id))
            .count();
        self.met(count, "unsilence", "silenced session", who)
    }
}

/// Silences a session until that is undone.
fn silence(shared: &UniverseState, session: SessionId) -> Result<(), FaultError> {
    if silencing(shared, session).is_none() {
        shared.turns.faults.add(Fault::silence(session))?;
        shared.turns.activity.notify_turned();
    }
    Ok(())
}

/// Hears a session again; whether it was not heard.
fn unsilence(shared: &UniverseState, session: SessionId) -> bool {
    silencing(shared, session).is_some_and(|id| fault_turn::remove(shared, Some(id)) > 0)
}

/// The number of the fault by which a session is not heard.
fn silencing(shared: &UniverseState, session: SessionId) -> Option<u64> {
    let mut faults = shared.turns.faults.infos().into_iter();
    faults
        .find(|info| info.fault.silences(session))
        .map(|info| info.id)
}
