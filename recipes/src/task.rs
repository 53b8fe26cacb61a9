//! Tasks that end with whoever started them.

use std::future::Future;

use tokio::task::JoinHandle;

/// A task that is ended by dropping this. What it holds is dropped then, as its runtime gets to it.
#[derive(Debug)]
pub(crate) struct Task(JoinHandle<()>);

impl Task {
    /// Starts it on the runtime of whoever calls this.
    pub(crate) fn spawn(work: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(tokio::spawn(work))
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}
