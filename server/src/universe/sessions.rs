//! Sessions and connections: seen, and ended by hand.

use std::time::Duration;

use minikeeper_engine::ConnId;
use minikeeper_protocol::SessionId;

use crate::{
    core_state::Look, faults::fault::Fault, outbox::Close, session_info::SessionInfo, telling,
    universe::Universe, who::Who,
};

/// How long clients that have been told of an expiry may take to be written to. A bound for a
/// machine that stands still, never a delay.
const TOLD_WITHIN: Duration = Duration::from_secs(10);

impl Universe {
    /// Ends sessions as if their time were up: ephemerals gone, watchers told, connections closed.
    /// Returns whether there was such a session; all that are meant are ended, in one go.
    ///
    /// When this returns, the state has changed and the events are with the watchers' connections,
    /// whose tasks write them as soon as the runtime lets them. [`Universe::expire_told`] waits
    /// until they have; so does [`blocking::Server::expire`](crate::blocking::Server::expire).
    ///
    /// # Examples
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// let server = minikeeper::Server::builder().start().await?;
    /// // Whoever holds the lock loses it now, wherever their process is.
    /// server.expire("/locks/lock-0000000007");
    /// server.expire("digest:alice");
    /// for session in server.sessions() {
    ///     server.expire(session.id);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn expire(&self, who: impl Into<Who>) -> bool {
        self.expire_all(&who.into()) > 0
    }

    /// As [`Universe::expire`], and when this resolves, every watcher's events are in its socket:
    /// a client in another process need only read. Returns how many sessions were ended.
    ///
    /// A client that does not read, so that its socket is full, is not waited for.
    ///
    /// # Examples
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// let server = minikeeper::Server::builder().start().await?;
    /// assert_eq!(server.expire_told("127.0.0.1").await, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn expire_told(&self, who: impl Into<Who>) -> usize {
        let count = self.expire_all(&who.into());
        if !telling::told(&self.shared, TOLD_WITHIN).await {
            tracing::warn!("some clients could not be told of an expiry in time");
        }
        count
    }

    fn expire_all(&self, who: &Who) -> usize {
        self.shared.turns.expire(|look| who.find(look))
    }

    /// Cuts the connections of sessions, which live on. Returns whether any of them had one.
    ///
    /// # Examples
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// let server = minikeeper::Server::builder().start().await?;
    /// server.disconnect("127.0.0.1"); // every client of this machine has to reconnect
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn disconnect(&self, who: impl Into<Who>) -> bool {
        let who = who.into();
        self.shared.turns.disconnect(|look| who.find(look)) > 0
    }

    /// Cuts every connection; all sessions live on.
    pub fn disconnect_all(&self) {
        self.shared.turns.close_all(Close::Asked);
    }

    /// The sessions that are meant.
    #[must_use]
    pub fn find_sessions(&self, who: impl Into<Who>) -> Vec<SessionId> {
        let who = who.into();
        let found = self.shared.turns.look(|look| who.find(&look));
        found.into_iter().map(|(id, _)| id).collect()
    }

    /// Every session, connected or not.
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
        let turns = &self.shared.turns;
        let mut sessions: Vec<_> = turns.look(
            |Look {
                 engine, members, ..
             }| {
                let elapsed_ms = turns.clock().elapsed_ms();
                let member = |conn: ConnId| members.get(conn.0 as usize);
                let info = |report: minikeeper_engine::SessionReport| {
                    let connection = report.conn.and_then(member);
                    SessionInfo::new(report, connection, elapsed_ms)
                };
                engine.session_reports().map(info).collect()
            },
        );
        let faults = self.faults();
        for session in &mut sessions {
            let silence = Fault::silence(session.id);
            session.is_silenced = faults.iter().any(|info| info.fault == silence);
        }
        sessions
    }
}
