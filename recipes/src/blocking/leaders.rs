//! The blocking leader latch.

use std::time::Duration;

use minikeeper_client::{Client as AsyncClient, Error};

use crate::{
    CloseMode, FencingToken, LatchError, LatchOptions, Leadership, Participant,
    blocking::{Blocking, Client, waits},
};

/// A contender for leadership, compatible with Curator's; see [`LeaderLatch`](crate::LeaderLatch).
///
/// # Examples
/// ```
/// # let server = minikeeper::blocking::Server::builder().start()?;
/// # let client = minikeeper_recipes::blocking::Client::connect(&server.connect_string())?;
/// use std::time::Duration;
///
/// use minikeeper_recipes::blocking::LeaderLatch;
///
/// let first = LeaderLatch::start(&client, "/leaders/billing", "host 7")?;
/// println!("leading with token {}", first.wait()?);
/// let second = LeaderLatch::start(&client, "/leaders/billing", "host 8")?;
/// assert_eq!(second.wait_timeout(Duration::from_millis(10))?, None);
/// first.close()?;
/// second.wait()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type LeaderLatch = Blocking<crate::LeaderLatch<AsyncClient>>;

impl LeaderLatch {
    /// Starts to contend for leadership at this path. Other clients can read the id.
    ///
    /// # Errors
    /// [`Error::Path`] if the path is invalid, [`Error::InRuntime`], [`Error::Interrupted`].
    pub fn start(client: &Client, path: &str, id: &str) -> Result<Self, Error> {
        Self::start_with(client, path, id, LatchOptions::default())
    }

    /// Like [`Self::start`], with these options.
    ///
    /// # Errors
    /// Those of [`Self::start`].
    pub fn start_with(
        client: &Client,
        path: &str,
        id: &str,
        options: LatchOptions,
    ) -> Result<Self, Error> {
        let start = async { crate::LeaderLatch::start_with(client.to_async(), path, id, options) };
        let latch = client.session.wait("LeaderLatch::start", start)?;
        Ok(client.bind(latch))
    }

    /// Like [`Self::wait`], and waits at most this long; `None` if the latch does not lead by then.
    ///
    /// # Errors
    /// Those of [`Self::wait`].
    pub fn wait_timeout(&self, within: Duration) -> Result<Option<FencingToken>, LatchError> {
        let wait = async {
            let waited = tokio::time::timeout(within, self.object.wait());
            waited.await.ok().transpose()
        };
        self.session.wait("LeaderLatch::wait_timeout", wait)
    }

    /// Returns a stream of changes of leadership. If the latch leads now, that is the first change.
    #[must_use]
    pub fn changes(&self) -> LeadershipChanges {
        self.with(self.object.changes())
    }
}

waits! { LeaderLatch of "crate" {
    wait wait() -> FencingToken, LatchError;
    wait participants() -> Vec<Participant>, Error;
    wait leader() -> Option<Participant>, Error;
    finish close() -> (), Error;
    finish close_with(mode: CloseMode) -> (), Error;
} }

/// A stream of changes of leadership. Returned by [`LeaderLatch::changes`].
pub type LeadershipChanges = Blocking<crate::LeadershipChanges>;

impl LeadershipChanges {
    /// Waits for the next change; `None` once the latch is closed or has failed.
    ///
    /// # Errors
    /// [`Error::InRuntime`], [`Error::Interrupted`].
    #[expect(
        clippy::should_implement_trait,
        reason = "it is no iterator: it can fail"
    )]
    pub fn next(&mut self) -> Result<Option<Leadership>, Error> {
        let next = async { Ok(self.object.next().await) };
        self.session.wait("LeadershipChanges::next", next)
    }
}
