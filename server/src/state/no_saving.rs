//! Replaces `saving.rs` in builds without the feature `data`: nothing is saved.

use std::sync::Arc;

use minikeeper_engine::Engine;
use tokio::task::JoinSet;

use crate::{data::SaveError, state::UniverseState, turn::turns::Turns};

#[derive(Debug, Default)]
pub(crate) struct Saving {}

impl Saving {
    #[expect(clippy::unused_self, reason = "a data directory would be released")]
    pub(crate) const fn abandon(&self) {}
}

/// Saves a state that a log cannot express.
pub(crate) struct Replacement;

impl Replacement {
    #[expect(
        clippy::unused_self,
        reason = "a log would continue from the saved state"
    )]
    pub(crate) const fn save(&mut self, _: &Engine) {}
}

impl UniverseState {
    #[expect(
        clippy::unused_self,
        reason = "with a data directory it would be saved"
    )]
    pub(crate) fn saving_tasks(self: &Arc<Self>) -> JoinSet<()> {
        JoinSet::new()
    }

    #[expect(clippy::unused_async, reason = "saving waits for the disk")]
    pub(crate) async fn finish_saving(self: &Arc<Self>) -> Result<(), SaveError> {
        Ok(())
    }

    pub(crate) fn replace_state<T>(&self, change: impl FnOnce(&Turns, &mut Replacement) -> T) -> T {
        change(&self.turns, &mut Replacement)
    }
}
