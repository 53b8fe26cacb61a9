//! Sessions the server does not hear: a long pause of their clients, seen from its side.

use minikeeper_protocol::SessionId;

use crate::{
    faults::{error::FaultError, fault::Fault},
    turn::fault_turn,
    universe::{
        Universe,
        session_selector::{NoSession, Who},
        state::Shared,
    },
};

impl Universe {
    /// Hears these sessions no more: what they send is not answered, changes nothing and is no sign
    /// of life, so that they expire in time, as those of a process in a long pause do. Their
    /// connections stay. Returns how many are meant.
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
    pub fn silence(&self, who: impl Into<Who>) -> Result<usize, FaultError> {
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

    /// Hears these sessions again. Returns how many were not heard.
    ///
    /// # Errors
    /// When none of them was silenced. Where that is fine, say `.unwrap_or(0)`.
    pub fn unsilence(&self, who: impl Into<Who>) -> Result<usize, NoSession> {
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

/// Hears a session no more, until that is taken back.
fn silence(shared: &Shared, session: SessionId) -> Result<(), FaultError> {
    if silencing(shared, session).is_none() {
        shared.turns.faults.add(Fault::silence(session))?;
        shared.turns.heed.tell_turned();
    }
    Ok(())
}

/// Hears a session again; whether it was not heard.
fn unsilence(shared: &Shared, session: SessionId) -> bool {
    silencing(shared, session).is_some_and(|id| fault_turn::remove(shared, Some(id)) > 0)
}

/// The number of the fault by which a session is not heard.
fn silencing(shared: &Shared, session: SessionId) -> Option<u64> {
    let mut faults = shared.turns.faults.infos().into_iter();
    faults
        .find(|info| info.fault.silences(session))
        .map(|info| info.id)
}
