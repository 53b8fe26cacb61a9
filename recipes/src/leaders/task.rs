//! Tasks that end with whoever started them.

use std::future::Future;

use minikeeper_client::Error;
use tokio::{runtime::Handle, task::JoinHandle};

/// A task that is ended by dropping this. What it holds is dropped then, as its runtime gets to it.
#[derive(Debug)]
pub(crate) struct Task(JoinHandle<()>);

impl Task {
    /// Starts it on the runtime of the caller, which must have one.
    pub(crate) fn spawn(
        what: &'static str,
        work: impl Future<Output = ()> + Send + 'static,
    ) -> Result<Self, Error> {
        Ok(Self(runtime(what)?.spawn(work)))
    }
}

/// The runtime of the caller.
pub(crate) fn runtime(what: &'static str) -> Result<Handle, Error> {
    Handle::try_current().map_err(|_| Error::NoRuntime { what })
}

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}
