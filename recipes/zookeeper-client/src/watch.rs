//! What tells of changes: of a znode, and of the client's standing.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use minikeeper_client::{Epoch, Fired};
use tokio::sync::broadcast::{self, error::RecvError};
use zookeeper_client::OneshotWatcher;

use crate::{calls::Boxed, convert, session::Shared};
use minikeeper_recipes::client::{Standing, StateStream};

/// A watch that fires once. Dropping it takes it away, from the server too if nobody else of this
/// client watches the same.
pub struct Watch {
    fired: Boxed<Fired>,
}

impl Watch {
    pub(crate) fn new(shared: &Shared, epoch: Epoch, watcher: OneshotWatcher) -> Self {
        let over = shared.epoch_over(epoch);
        Self {
            fired: Box::pin(async move {
                tokio::select! {
                    biased;
                    event = watcher.changed() => convert::fired(&event),
                    () = over => Fired::EpochOver,
                }
            }),
        }
    }
}

impl Future for Watch {
    type Output = Fired;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Fired> {
        self.fired.as_mut().poll(cx)
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").finish_non_exhaustive()
    }
}

/// See [`StateStream`].
#[derive(Debug)]
pub struct Standings {
    /// `None` if there was nothing more to tell from the beginning.
    pub(crate) told: Option<broadcast::Receiver<Standing>>,
}

impl StateStream for Standings {
    async fn next(&mut self) -> Option<Standing> {
        loop {
            match self.told.as_mut()?.recv().await {
                Ok(standing) => return Some(standing),
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return None,
            }
        }
    }
}
