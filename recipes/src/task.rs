//! Background tasks whose end is noticed.
//!
//! Handles wait for what their task reports. A task may end before it has reported anything: code of
//! the caller that it runs may panic (a filter, an access list, the drop of some work), or its runtime
//! may shut down. Then the watch over the task reports that, so that no wait is endless and no stage
//! stays as it was.

use std::{
    any::Any,
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    task::{Context, Poll},
};

use minikeeper_client::Error;
use tokio::{runtime::Handle, task::JoinHandle};

/// The future of a task.
type TaskWork = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A task that is aborted when this is dropped. The runtime then drops what the task holds.
#[derive(Debug)]
pub(crate) struct Task(JoinHandle<()>);

impl Task {
    /// Spawns the task on the caller's runtime; fails without one. `ended` is called if the task ends
    /// before its work does.
    pub(crate) fn spawn(
        what: &'static str,
        work: impl Future<Output = ()> + Send + 'static,
        ended: impl FnOnce(Error) + Send + 'static,
    ) -> Result<Self, Error> {
        spawn(what, Box::pin(work), Box::new(ended)).map(Self)
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Spawns a task on the caller's runtime; fails without one. `ended` is called if the task ends before
/// its work does.
///
/// The futures are boxed, so that the code which runs a task is compiled here, once, and not in every
/// program for each recipe.
pub(crate) fn spawn(
    what: &'static str,
    work: TaskWork,
    ended: Box<dyn FnOnce(Error) + Send>,
) -> Result<JoinHandle<()>, Error> {
    let runtime = Handle::try_current().map_err(|_| Error::NoRuntime { what })?;
    Ok(runtime.spawn(Watched {
        what,
        work: Some(work),
        ended: Some(ended),
    }))
}

/// The work of a task, and whom to tell if it does not end by itself.
struct Watched {
    what: &'static str,
    work: Option<TaskWork>,
    ended: Option<Box<dyn FnOnce(Error) + Send>>,
}

impl Watched {
    /// Drops the work, and reports that it has not ended by itself.
    fn end(&mut self, why: &str) {
        let work = self.work.take();
        let dropped = catch_unwind(AssertUnwindSafe(|| drop(work)));
        if let Some(ended) = self.ended.take() {
            let why = match dropped {
                Ok(()) => why.to_owned(),
                Err(panic) => panicked(&*panic),
            };
            let what = self.what;
            ended(Error::TaskEnded { what, why });
        }
    }
}

impl Future for Watched {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let Some(work) = &mut self.work else {
            return Poll::Ready(());
        };
        // Nothing that has panicked is used again.
        match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(cx))) {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(())) => self.ended = None,
            Err(panic) => self.end(&panicked(&*panic)),
        }
        Poll::Ready(())
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.end("its runtime has shut down");
    }
}

fn panicked(panic: &(dyn Any + Send)) -> String {
    format!("it has panicked: {}", message_of(panic))
}

/// Returns the message of a panic.
pub(crate) fn message_of(panic: &(dyn Any + Send)) -> String {
    if let Some(message) = panic.downcast_ref::<String>() {
        return message.clone();
    }
    let message = panic.downcast_ref::<&str>();
    message.map_or_else(|| "no message".to_owned(), |message| (*message).to_owned())
}
