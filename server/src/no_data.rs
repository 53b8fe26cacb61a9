//! Replaces `data/` in builds without the feature `data`: every server starts with an empty tree, and
//! nothing is saved or logged.

use std::{fmt, sync::Arc};

use minikeeper_engine::{Engine, Settings};
use tokio::task::JoinSet;

use crate::{config::Config, start::StartError, state::UniverseState, turn::turns::Turns};

/// Why a server did not stop cleanly. With the feature `data`: why its state could not be saved.
#[derive(Debug)]
#[non_exhaustive]
pub enum SaveError {
    /// A bug has stopped the server.
    Broken,
}

impl fmt::Display for SaveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Broken => f.write_str("the server was stopped by an internal error"),
        }
    }
}

impl std::error::Error for SaveError {}

/// Returns the state to start with.
#[expect(clippy::unused_async, reason = "loading a state waits for the disk")]
pub(crate) async fn load(_: &mut Config, settings: Settings) -> Result<(Engine, ()), StartError> {
    Ok((Engine::new(settings), ()))
}

/// Returns whether [`Config::seed`] is applied.
pub(crate) const fn is_seeded(_: &Config, (): &()) -> bool {
    true
}

/// Returns the path and the size in bytes of the saved state.
pub(crate) const fn place(_: &Config) -> (String, u64) {
    (String::new(), 0)
}

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
    #[expect(clippy::unused_async, reason = "saving waits for the disk")]
    pub(crate) async fn begin_saving(self: &Arc<Self>, (): ()) -> Result<(), StartError> {
        Ok(())
    }

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
