//! Replaces `load.rs` in builds without the feature `data`: every server starts with an empty tree.

use minikeeper_engine::{Engine, Settings};

use crate::{config::Config, start::StartError};

/// Returns the state to start with.
///
/// # Errors
/// None.
#[expect(clippy::unused_async, reason = "loading a state waits for the disk")]
pub async fn load(_: &mut Config, settings: Settings) -> Result<(Engine, ()), StartError> {
    Ok((Engine::new(settings), ()))
}

/// Returns whether [`Config::seed`] is applied.
pub const fn is_seeded(_: &Config, (): &()) -> bool {
    true
}
