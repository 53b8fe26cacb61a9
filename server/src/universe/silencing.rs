//! Sessions the server does not hear: a long pause of their clients, seen from its side.

use minikeeper_protocol::SessionId;

use crate::{
    faults::{error::FaultError, fault::Fault},
    universe::Universe,
    who::Who,
};

impl Universe {
    /// Hears these sessions no more: what they send is not answered, changes nothing and is no sign
    /// of life, so that they expire in time, as those of a process in a long pause do. Their
    /// connections stay. Returns how many are meant.
    ///
    /// # Errors
    /// When there are too many faults; each session takes one.
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
        let sessions = self.find_sessions(who);
        for session in &sessions {
            if !self.is_silenced(*session) {
                // Lasts until it is taken back.
                let _ = self.inject(Fault::silence(*session))?.keep();
            }
        }
        Ok(sessions.len())
    }

    /// Hears these sessions again. Returns how many were not heard.
    pub fn unsilence(&self, who: impl Into<Who>) -> usize {
        let silenced = |session: &SessionId| {
            let fault = Fault::silence(*session);
            let mut faults = self.faults().into_iter();
            faults.find(|info| info.fault == fault).map(|info| info.id)
        };
        let sessions = self.find_sessions(who);
        let faults: Vec<_> = sessions.iter().filter_map(silenced).collect();
        faults.iter().filter(|id| self.remove_fault(**id)).count()
    }

    fn is_silenced(&self, session: SessionId) -> bool {
        let fault = Fault::silence(session);
        self.faults().iter().any(|info| info.fault == fault)
    }
}
