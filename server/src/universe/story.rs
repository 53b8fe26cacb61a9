//! Reads the story of a universe.

use crate::{
    story::{ENTRIES_MAX, Story},
    universe::{Universe, panics::StoryGuard},
};

impl Universe {
    /// Reads everything that helps to understand a failed test: locks, sessions, faults with their
    /// hits, the clock, the newest entries of the journal.
    ///
    /// Each part shows one instant. The journal is read last, so it has what clients did while the
    /// other parts were read.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use minikeeper_client::{Client, CreateMode};
    /// let server = minikeeper::Server::builder().start().await?;
    /// let client = Client::connect(&server.connect_string()).await?;
    /// client.create("/a", b"", CreateMode::Ephemeral).await?;
    /// let story = server.story().with_title("an ephemeral");
    /// assert_eq!(story.sessions[0].ephemerals, ["/a"]);
    /// assert!(story.to_string().contains("/a EPHEMERAL -> OK"));
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn story(&self) -> Story {
        let (locks, sessions, faults) = (self.locks(), self.sessions(), self.faults());
        let copied = self.shared.turns.journal(|journal| {
            let next = journal.next_number();
            journal.copy(next.saturating_sub(ENTRIES_MAX))
        });
        Story {
            title: String::new(),
            failure: String::new(),
            server: self.connect_string(),
            at: self.now(),
            locks,
            sessions,
            faults,
            oldest: copied.as_ref().map_or(0, |copied| copied.oldest),
            next: copied.as_ref().map_or(0, |copied| copied.next),
            entries: copied.map_or_else(Vec::new, |copied| copied.entries().collect()),
        }
    }
    /// Returns a guard that tells the story when a panic drops it, with the settings of
    /// [`Config::stories`](crate::Config::stories).
    ///
    /// A server does so itself, but locals are dropped in the reverse order of their declarations: the
    /// server's clients first, which release their locks. Declare the guard after the clients.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use minikeeper_client::Client;
    /// let server = minikeeper::Server::builder().start().await?;
    /// let client = Client::connect(&server.connect_string()).await?;
    /// let _story = server.story_on_panic();
    /// assert!(client.exists("/missing").await?.is_none()); // if this fails, the story has the session
    /// # Ok(()) }
    /// ```
    pub fn story_on_panic(&self) -> StoryGuard {
        StoryGuard(self.clone())
    }
}
