//! Why a server stops by itself: a turn panicked, or what it did cannot be kept.

use std::sync::Arc;

use crate::{
    data::SaveError,
    turn::{health::Failure, outbox::Close, turns::Turns},
};

impl Turns {
    pub(super) fn stop_broken(&self) {
        tracing::error!("the engine panicked: every connection is closed");
        self.stop_for(Failure::Bug);
    }

    /// Changes were made that are in no log, and nobody may hear of them.
    pub(super) fn stop_unlogged(&self) {
        if let Some(error) = self.take_log_failure() {
            self.stop_unsaved(error);
        }
    }

    /// What was done could not be kept, and nobody may hear of it.
    pub(crate) fn stop_unsaved(&self, error: SaveError) {
        tracing::error!(err = %error, "every connection is closed");
        self.stop_for(Failure::Log(Arc::new(error)));
    }

    fn stop_for(&self, failure: Failure) {
        self.standing.set_broken(failure);
        self.close_all(Close::Broken);
        self.standing.tell_broken();
    }

    /// Waits until the server has stopped by itself.
    pub(crate) async fn broke(&self) -> Failure {
        self.standing.broke().await
    }
}
