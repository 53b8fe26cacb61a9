//! The watch of a znode, and the stream of the client's standings.

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

/// A watch that fires once. Dropping it removes the watch, also from the server if no other watch
/// of the client needs it.
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

/// A stream of changes of the client's standing, see [`StateStream`].
#[derive(Debug)]
pub struct Standings {
    /// `None` if the client was already closed.
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
