//! Every change of the connection's state, in order, for whoever wants to know.

use std::{fmt, future::poll_fn, sync::Arc, task::Poll};

use crate::{
    shared::Shared,
    state::{ConnectionState, StateQueue},
};

/// Every change of the connection's state from here on, in order, none merged. Whoever does not
/// look misses the oldest beyond 1,024.
///
/// Made by [`crate::Client::states`].
///
/// # Examples
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = minikeeper::Server::builder().start().await?;
/// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
/// # use minikeeper_client::ConnectionState;
/// let mut states = client.states();
/// client.close().await;
/// let mut all = Vec::new();
/// while let Some(state) = states.next().await {
///     all.push(state);
/// }
/// assert_eq!(all.last(), Some(&ConnectionState::Closed));
/// # Ok(()) }
/// ```
pub struct States {
    shared: Arc<Shared>,
    key: usize,
}

impl States {
    pub(crate) fn new(shared: &Arc<Shared>) -> Self {
        let key = shared.look(|inner| inner.notifications.states.insert(StateQueue::default()));
        Self {
            shared: Arc::clone(shared),
            key,
        }
    }

    /// The next change; `None` once the client is closed and everything was told.
    ///
    /// Cancel safe: a change is either given or still there.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
    /// # use minikeeper_client::ConnectionState;
    /// let mut states = client.states();
    /// client.close().await;
    /// while let Some(state) = states.next().await {
    ///     println!("{state:?}");
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn next(&mut self) -> Option<ConnectionState> {
        poll_fn(|cx| {
            self.shared.look(|inner| {
                let is_closed = inner.notifications.state == ConnectionState::Closed;
                let queue = &mut inner.notifications.states[self.key];
                match queue.pop() {
                    Some(state) => Poll::Ready(Some(state)),
                    None if is_closed => Poll::Ready(None),
                    None => {
                        queue.wake(cx.waker());
                        Poll::Pending
                    }
                }
            })
        })
        .await
    }
}

impl Drop for States {
    fn drop(&mut self) {
        self.shared
            .look(|inner| inner.notifications.states.remove(self.key));
    }
}

impl fmt::Debug for States {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("States").finish_non_exhaustive()
    }
}
