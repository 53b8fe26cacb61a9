//! Replaces `saving.rs` in builds without the feature `data`: nothing is saved.

use std::sync::Arc;

use minikeeper_engine::Engine;
use tokio::task::JoinSet;

use crate::{data::SaveError, state::UniverseState, turn::turns::Turns};

#[derive(Debug, Default)]
pub struct Saving {}

impl Saving {
    pub const fn abandon(&self) {}
}

/// Saves a state that a log cannot express.
pub struct Replacement;

impl Replacement {
    pub const fn save(&mut self, _: &Engine) {}
}

impl UniverseState {
    pub fn saving_tasks(self: &Arc<Self>) -> JoinSet<()> {
        JoinSet::new()
    }

    /// Does nothing.
    ///
    /// # Errors
    /// None.
    #[expect(clippy::unused_async, reason = "saving waits for the disk")]
    pub async fn finish_saving(self: &Arc<Self>) -> Result<(), SaveError> {
        Ok(())
    }

    pub fn replace_state<T>(&self, change: impl FnOnce(&Turns, &mut Replacement) -> T) -> T {
        change(&self.turns, &mut Replacement)
    }
}
