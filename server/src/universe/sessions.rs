//! Lists, expires, disconnects and silences sessions.

use std::{sync::Arc, time::Duration};

use minikeeper_core::{
    faults::{error::FaultError, fault::Fault},
    order,
    outbox::Close,
    session_selector::{NoSession, SessionSelector},
    state::{UniverseState, fault_turn, session_info::SessionInfo},
};
use minikeeper_engine::ConnId;
use minikeeper_protocol::SessionId;

use crate::universe::{Universe, flush_wait};

/// The maximum wait for the events of an expiry to reach their sockets. A bound for a machine that
/// hangs, never a delay.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(10);

/// The maximum number of sessions that an error lists.
const LISTED_MAX: usize = 10;

/// The first path that a client sends decides which universe its session belongs to. Until then the
/// session is unbound: it belongs to none ([`SessionInfo::is_unbound`]). Methods that take a
/// [`SessionSelector`] find an unbound session from every universe of the server by its id, or by
/// its address with the port. If there is only one universe beside the server's own,
/// [`sessions`](Universe::sessions) lists the session there too, and any selector finds it. With
/// several, the session might turn out to be another universe's.
impl Universe {
    /// Expires sessions: deletes their ephemerals, notifies watchers, closes connections. Returns
    /// how many sessions matched; all of them expire in one turn.
    ///
    /// When this returns, the state has changed and the events are queued for the watchers, whose
    /// tasks write them as soon as the runtime lets them. [`Universe::expire_and_flush`] waits until
    /// they have; so does [`blocking::Server::expire`](crate::blocking::Server::expire).
    ///
    /// # Errors
    /// When no session matches, because a test that ends no session tests nothing. Where that is
    /// fine, add `.unwrap_or(0)`.
    ///
    /// # Examples
    /// ```no_run
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = minikeeper::Server::builder().start().await?;
    /// // The holder of the lock loses it now, whichever process it is in.
    /// server.expire("/locks/lock-0000000007")?;
    /// server.expire("digest:alice")?;
    /// for session in server.sessions() {
    ///     server.expire(session.id)?;
    /// }
    /// # Ok(()) }
    /// ```
    pub fn expire(&self, who: impl Into<SessionSelector>) -> Result<usize, NoSession> {
        let who = who.into();
        let mut count = self.shared.turns.expire(|locked| locked.find(&who));
        if count == 0
            && let Some(root) = self.elsewhere()
        {
            let is_only = self.is_only();
            count = (root.turns).expire(|locked| locked.find_unbound(&who, is_only));
        }
        self.some_or_error(count, "expire", "session", who)
    }

    /// Expires sessions as [`Universe::expire`] does, and resolves once the events are in the
    /// watchers' sockets: a client in another process need only read.
    ///
    /// Does not wait for a client that has stopped reading, so that its socket is full.
    ///
    /// # Errors
    /// Those of [`Universe::expire`].
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = minikeeper::Server::builder().start().await?;
    /// assert_eq!(server.expire_and_flush("127.0.0.1").await.unwrap_or(0), 0);
    /// # Ok(()) }
    /// ```
    pub async fn expire_and_flush(
        &self,
        who: impl Into<SessionSelector>,
    ) -> Result<usize, NoSession> {
        let count = self.expire(who)?;
        if !flush_wait::events_written(&self.shared, FLUSH_TIMEOUT).await {
            tracing::warn!("some clients could not be sent the events of an expiry in time");
        }
        Ok(count)
    }

    /// Closes the connections of sessions; the sessions live on. Returns how many were connected.
    ///
    /// # Errors
    /// When no connected session matches. Where that is fine, add `.unwrap_or(0)`.
    ///
    /// # Examples
    /// ```no_run
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = minikeeper::Server::builder().start().await?;
    /// server.disconnect("127.0.0.1")?; // every client on this machine has to reconnect
    /// # Ok(()) }
    /// ```
    pub fn disconnect(&self, who: impl Into<SessionSelector>) -> Result<usize, NoSession> {
        let who = who.into();
        let mut count = self.shared.turns.disconnect(|locked| locked.find(&who));
        if count == 0
            && let Some(root) = self.elsewhere()
        {
            let is_only = self.is_only();
            count = (root.turns).disconnect(|locked| locked.find_unbound(&who, is_only));
        }
        self.some_or_error(count, "disconnect", "connected session", who)
    }

    /// Closes every connection of the universe; the sessions live on. If there is only one universe
    /// beside the server's own, connections with unbound sessions count as its.
    pub fn disconnect_all(&self) {
        self.shared.turns.close_all(Close::Asked);
        if self.is_only()
            && let Some(root) = self.elsewhere()
        {
            root.turns.disconnect(|locked| {
                let sessions = locked.engine.sessions();
                sessions
                    .filter(|(_, _, conn)| conn.is_some_and(|conn| locked.is_unbound(conn)))
                    .map(|(id, _, conn)| (id, conn))
                    .collect()
            });
        }
    }

    /// Returns the sessions that match. Finding none is not an error.
    #[must_use]
    pub fn find_sessions(&self, who: impl Into<SessionSelector>) -> Vec<SessionId> {
        let (mut sessions, unbound) = self.find(&who.into());
        sessions.extend(unbound);
        sessions
    }

    /// Finds the matching sessions of this universe and, only if there are none, the matching
    /// unbound sessions.
    pub(super) fn find(&self, who: &SessionSelector) -> (Vec<SessionId>, Vec<SessionId>) {
        let ids = |found: Vec<(SessionId, Option<ConnId>)>| found.into_iter().map(|(id, _)| id);
        let is_only = self.is_only();
        let sessions: Vec<_> = ids(self.shared.turns.read(|locked| locked.find(who))).collect();
        let unbound = match self.elsewhere() {
            Some(root) if sessions.is_empty() => {
                ids(root.turns.read(|locked| locked.find_unbound(who, is_only))).collect()
            }
            _ => Vec::new(),
        };
        (sessions, unbound)
    }

    /// Returns the server's own universe, which has the unbound sessions, unless this is it.
    pub(super) fn elsewhere(&self) -> Option<&UniverseState> {
        (!Arc::ptr_eq(&self.shared, &self.root)).then_some(&*self.root)
    }

    /// Returns whether this is the only universe beside the server's own.
    fn is_only(&self) -> bool {
        self.elsewhere().is_some() && self.root.server.universes.is_one()
    }

    /// Returns the number of sessions that a verb has matched.
    ///
    /// # Errors
    /// When it is 0.
    pub(super) fn some_or_error(
        &self,
        count: usize,
        verb: &'static str,
        wanted: &'static str,
        who: SessionSelector,
    ) -> Result<usize, NoSession> {
        if count > 0 {
            return Ok(count);
        }
        let seen = self.seen(&self.sessions());
        Err(NoSession::new(verb, wanted, who, seen))
    }

    /// Describes these sessions for an error, and counts the unbound ones that could not match.
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
                    "; {unbound} on the server belong to no universe yet, because they have sent \
                     no path: select one by id or by address and port"
                ));
            }
        }
        text
    }

    /// Lists all sessions by id, connected or not. If this is the only universe beside the server's
    /// own, the list includes connected sessions that belong to no universe yet
    /// ([`SessionInfo::is_unbound`]).
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = minikeeper::Server::builder().start().await?;
    /// for session in server.sessions() {
    ///     println!("{} from {:?} owns {:?}", session.id, session.address, session.ephemerals);
    /// }
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn sessions(&self) -> Vec<SessionInfo> {
        let mut sessions = sessions_of(&self.shared);
        match self.elsewhere() {
            Some(root) if self.is_only() => {
                let known: Vec<_> = sessions.iter().map(|info| info.id).collect();
                let others = sessions_of(root).into_iter();
                // A fork has sessions with the ids of those in the server's own universe.
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
        order::sort_by_key(&mut sessions, |info| info.id);
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
    let reports = shared.turns.session_reports(|locked, report| {
        let is_unbound = is_root && report.conn.is_some_and(|conn| locked.is_unbound(conn));
        let member = report
            .conn
            .and_then(|conn| locked.members.get(conn.0 as usize));
        let elapsed_ms = shared.turns.clock().elapsed_ms();
        let mut info = SessionInfo::new(report, member, elapsed_ms);
        info.is_unbound = is_unbound;
        info
    });
    let whole = reports.into_iter().map(|(report, info)| info.with(report));
    whole.collect()
}

/// Lists sessions in a sentence.
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
    /// Ignores everything that these sessions send: it gets no reply, changes nothing and does not
    /// keep them alive. So they expire at their timeout, like those of a process in a long pause.
    /// Their connections stay open. Returns how many matched.
    ///
    /// # Errors
    /// When no session matches ([`FaultError::NoSession`]), or there are too many faults: each
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
            // The fault here acts once they belong here, the one there until then.
            for session in &unbound {
                silence(root, *session)?;
            }
        }
        let count = sessions.len() + unbound.len();
        Ok(self.some_or_error(count, "silence", "session", who)?)
    }

    /// Ends the silence of these sessions. Returns how many were silenced.
    ///
    /// # Errors
    /// When no silenced session matches. Where that is fine, add `.unwrap_or(0)`.
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
        self.some_or_error(count, "unsilence", "silenced session", who)
    }
}

/// Silences a session until [`unsilence`].
fn silence(shared: &UniverseState, session: SessionId) -> Result<(), FaultError> {
    if silencing(shared, session).is_none() {
        shared.turns.faults.add(Fault::silence(session))?;
        shared.turns.activity.notify_turned();
    }
    Ok(())
}

/// Ends the silence of a session. Returns whether it was silenced.
fn unsilence(shared: &UniverseState, session: SessionId) -> bool {
    silencing(shared, session).is_some_and(|id| fault_turn::remove(shared, Some(id)) > 0)
}

/// Returns the number of the fault that silences a session.
fn silencing(shared: &UniverseState, session: SessionId) -> Option<u64> {
    let mut faults = shared.turns.faults.infos().into_iter();
    faults
        .find(|info| info.fault.silences(session))
        .map(|info| info.id)
}
