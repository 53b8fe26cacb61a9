//! A contender's own znode: its place in the queue.

use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Waker},
};

use minikeeper_client::{Client, Epoch, Fired, OneShot, Zxid};

use crate::{client::Standing, queue::naming};

/// A contender's own znode. Dropping this deletes it.
pub(crate) struct QueueNode {
    client: Client,
    path: String,
    pub(crate) czxid: Zxid,
    pub(crate) epoch: Epoch,
    /// Whether the znode must still be deleted.
    is_due: bool,
    pub(crate) watch: Option<OneShot>,
    /// Whether a list has shown it in the queue.
    pub(crate) is_listed: bool,
    /// Whether its owner deletes it: see [`QueueNode::leave_to`].
    is_left: Option<Arc<AtomicBool>>,
}

impl QueueNode {
    pub(crate) const fn new(client: Client, path: String, czxid: Zxid, epoch: Epoch) -> Self {
        Self {
            client,
            path,
            czxid,
            epoch,
            is_due: true,
            watch: None,
            is_listed: false,
            is_left: None,
        }
    }

    /// Makes dropping this delete nothing once the flag is set: its owner deletes the znode then, and
    /// waits for the reply.
    pub(crate) fn leave_to(&mut self, is_left: &Arc<AtomicBool>) {
        self.is_left = Some(Arc::clone(is_left));
    }

    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    pub(crate) fn name(&self) -> &str {
        naming::name_of(&self.path)
    }

    /// Returns whether the watch has reported that the znode is gone.
    pub(crate) fn is_reported_deleted(&mut self) -> bool {
        let Some(watch) = &mut self.watch else {
            return false;
        };
        let mut cx = Context::from_waker(Waker::noop());
        match Pin::new(watch).poll(&mut cx) {
            Poll::Ready(fired) => {
                self.watch = None;
                fired.is_deleted() || fired == Fired::EpochOver
            }
            Poll::Pending => false,
        }
    }

    /// Waits until the watch reports that the znode is gone; without a watch, never returns.
    pub(crate) async fn reported_deleted(&mut self) {
        if let Some(watch) = &mut self.watch {
            let fired = watch.await;
            self.watch = None;
            if fired.is_deleted() || fired == Fired::EpochOver {
                return;
            }
        }
        std::future::pending::<()>().await;
    }

    /// Cancels the deletion on drop: the znode is gone, or another request deletes it.
    pub(crate) const fn forget(&mut self) {
        self.is_due = false;
    }

    /// Reverses [`Self::forget`]: dropping this deletes the znode again.
    pub(crate) const fn remember(&mut self) {
        self.is_due = true;
    }
}

impl Drop for QueueNode {
    fn drop(&mut self) {
        let is_left = |flag: &Arc<AtomicBool>| flag.load(Ordering::Relaxed);
        if self.is_due && !self.is_left.as_ref().is_some_and(is_left) {
            // The watch is dropped first, so that this deletion wakes no task here.
            self.watch = None;
            // A server's path is valid.
            let _ = self.client.clean_up(self.epoch, &self.path);
        }
    }
}

/// A znode that may have been created. Dropping this looks for the znode and deletes it.
pub(crate) struct Unanswered<'a> {
    pub(crate) client: &'a Client,
    /// The first session in which it may have been created.
    pub(crate) epoch: Epoch,
    pub(crate) directory: &'a str,
    pub(crate) prefix: &'a str,
    pub(crate) is_due: bool,
}

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        if self.is_due {
            // The request may have waited for a connection and left in a later session.
            let newest = Standing::of(self.client).epoch().unwrap_or_default();
            let _ = self.client.clean_up_unanswered(
                self.epoch.max(newest),
                self.directory,
                self.prefix,
            );
        }
    }
}
