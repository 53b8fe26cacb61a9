//! What a client sees to without anybody waiting for it.

use minikeeper_protocol::Ustring;

use crate::{
    client::Client,
    core::{cleanup::Target, outcome::Epoch},
    error::Error,
    paths,
};

impl Client {
    /// Sees to it that a znode made in this epoch goes, without waiting: in its session until it
    /// is gone, in the next once. Does nothing on a closed client, whose session is over anyway.
    ///
    /// # Errors
    /// When the path breaks a rule.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
    /// # use minikeeper_client::CreateMode;
    /// let created = client.create("/a", b"", CreateMode::Ephemeral).stamped().await?;
    /// client.clean_up(created.epoch, "/a")?;
    /// while client.clean_ups_pending() > 0 {
    ///     tokio::task::yield_now().await;
    /// }
    /// assert!(client.exists("/a").await?.is_none());
    /// # Ok(()) }
    /// ```
    pub fn clean_up(&self, epoch: Epoch, path: &str) -> Result<(), Error> {
        let path = paths::full(self.shared.chroot.as_ref(), path, false)?;
        self.hand_over(epoch, Target::Named(path));
        Ok(())
    }

    /// The same for a znode whose creation was not answered: any child of `parent` whose name
    /// begins with `prefix`. It is looked for in its own session only, after a sync.
    ///
    /// # Errors
    /// When the path breaks a rule.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
    /// # use minikeeper_client::CreateMode;
    /// let mode = CreateMode::EphemeralSequential;
    /// let created = client.create("/id7-", b"", mode).stamped().await?;
    /// // As if the answer, and with it the number, had been lost:
    /// client.clean_up_unanswered(created.epoch, "/", "id7-")?;
    /// while client.clean_ups_pending() > 0 {
    ///     tokio::task::yield_now().await;
    /// }
    /// assert!(client.exists("/id7-0000000000").await?.is_none());
    /// # Ok(()) }
    /// ```
    pub fn clean_up_unanswered(
        &self,
        epoch: Epoch,
        parent: &str,
        prefix: &str,
    ) -> Result<(), Error> {
        let parent = paths::full(self.shared.chroot.as_ref(), parent, false)?;
        let prefix = Ustring::from(prefix);
        self.hand_over(epoch, Target::Prefixed { parent, prefix });
        Ok(())
    }

    fn hand_over(&self, epoch: Epoch, target: Target) {
        self.shared
            .with_rearm(|inner, now| inner.core.clean_up(now, epoch, target));
        self.shared.flush();
    }

    /// How many clean-ups are not done yet.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
    /// assert_eq!(client.clean_ups_pending(), 0);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn clean_ups_pending(&self) -> usize {
        self.shared.with(|inner, _| inner.core.clean_ups_pending())
    }

    /// How many clean-ups were given up because the server does not permit them.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
    /// assert_eq!(client.clean_ups_forbidden(), 0);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn clean_ups_forbidden(&self) -> u64 {
        self.shared
            .with(|inner, _| inner.core.clean_ups_forbidden())
    }
}
