//! The limit of one call: [`Client::call_timeout`] bounds every call that waits for a server
//! only.

use std::{future::Future, time::Duration};

use minikeeper_client::{AfterTimeout, Client, Error};
use tokio::time::timeout;

/// The limit of one call, and what its error says.
#[derive(Clone, Debug)]
pub(crate) struct CallLimit<'a> {
    call: &'static str,
    path: &'a str,
    within: Duration,
    then: AfterTimeout,
}

impl<'a> CallLimit<'a> {
    /// The limit of a call that only reads.
    pub(crate) fn read(client: &Client, call: &'static str, path: &'a str) -> Self {
        Self::of(client.call_timeout(), call, path, AfterTimeout::Nothing)
    }

    /// The limit of a call whose change may be made later.
    pub(crate) fn change(client: &Client, call: &'static str, path: &'a str) -> Self {
        Self::of(client.call_timeout(), call, path, AfterTimeout::MayChange)
    }

    /// The limit of a call whose work continues in the background.
    pub(crate) fn background(client: &Client, call: &'static str, path: &'a str) -> Self {
        Self::of(client.call_timeout(), call, path, AfterTimeout::Continues)
    }

    pub(crate) const fn of(
        within: Duration,
        call: &'static str,
        path: &'a str,
        then: AfterTimeout,
    ) -> Self {
        Self {
            call,
            path,
            within,
            then,
        }
    }

    /// Adds to the limit what the call may wait for other contenders.
    pub(crate) fn and(mut self, within: Duration) -> Self {
        self.within = self.within.saturating_add(within);
        self
    }

    /// Waits for the result of the call, at most for the limit.
    ///
    /// # Errors
    /// [`Error::CallTimedOut`], and those of the call.
    pub(crate) async fn run<T, E: From<Error>>(
        self,
        call: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        timeout(self.within, call).await.unwrap_or_else(|_| {
            Err(E::from(Error::CallTimedOut {
                call: self.call,
                path: self.path.to_owned(),
                within: self.within,
                then: self.then,
            }))
        })
    }
}
