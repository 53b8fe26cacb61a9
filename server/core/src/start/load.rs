//! Loads the state that a server starts with: given, saved or imported.

use std::path::{Path, PathBuf};

use minikeeper_engine::{Engine, Settings};

use crate::{
    config::Config,
    data::{DataDir, DataSource, LoadError},
};

/// The mask of zxid bits that are added to the first session id, to skip the ids that earlier runs used.
const SESSIONS_BEFORE: i64 = (1 << 40) - 1;

/// Loads the state to start with: given, saved, imported or fresh. Also returns the directory to save
/// to, if there is one. Writes nothing.
///
/// # Errors
/// When the state cannot be read.
pub async fn load(
    config: &mut Config,
    mut settings: Settings,
) -> Result<(Engine, Option<DataDir>), LoadError> {
    // Takes the state out, so that copies of the settings do not copy it.
    if let Some(state) = config.state.take() {
        let data_dir = config.data_dir.clone().map(|dir| ("data_dir", dir));
        let import = || Some(("data_from", import_dir(config)?));
        if let Some((setting, dir)) = data_dir.or_else(import) {
            return Err(LoadError::TwoStates { setting, dir });
        }
        // The server that made the state may have started in the same millisecond.
        settings.first_session_id.0 += state.zxid().0 & SESSIONS_BEFORE;
        let engine = state.load(settings).map_err(LoadError::State)?;
        return Ok((engine, None));
    }
    if config.data_dir.is_none() && config.import.is_none() {
        return Ok((Engine::new(settings), None));
    }
    let (data_dir, import) = (config.data_dir.clone(), config.import.clone());
    let (is_manual, trusts_damaged) = (config.manual_clock, config.trust_damaged_data);
    let loading = move || match (data_dir, import) {
        (Some(dir), import) => load_dir(&dir, import, settings, is_manual, trusts_damaged),
        (None, Some(source)) => Ok((import_from(&source, settings)?, None)),
        (None, None) => Ok((Engine::new(settings), None)),
    };
    tokio::task::spawn_blocking(loading)
        .await
        .expect("loading does not panic, and the runtime is alive")
}

fn import_dir(config: &Config) -> Option<PathBuf> {
    Some(config.import.as_ref()?.dir().to_owned())
}

fn import_from(source: &DataSource, settings: Settings) -> Result<Engine, LoadError> {
    let dir = source.dir().to_owned();
    let imported = source.load(settings);
    imported.map_err(|source| LoadError::Import { dir, source })
}

/// Loads the saved state, or the state to import if nothing was saved.
fn load_dir(
    dir: &Path,
    import: Option<DataSource>,
    mut settings: Settings,
    is_manual: bool,
    trusts_damaged: bool,
) -> Result<(Engine, Option<DataDir>), LoadError> {
    let unusable = |source| LoadError::DataDir {
        dir: dir.to_owned(),
        source,
    };
    let mut data_dir = DataDir::open(dir).map_err(unusable)?;
    if is_manual {
        // A manual clock starts at the same time in every run, which would repeat the session ids.
        // Earlier runs cannot have opened more sessions than there are changes.
        settings.first_session_id.0 += data_dir.zxid().0 & SESSIONS_BEFORE;
    }
    let engine = match import {
        None => data_dir.load(settings, trusts_damaged).map_err(unusable)?,
        Some(source) if data_dir.is_fresh() => import_from(&source, settings)?,
        Some(source) => {
            return Err(LoadError::ImportToo {
                import: source.dir().to_owned(),
                dir: dir.to_owned(),
            });
        }
    };
    Ok((engine, Some(data_dir)))
}

/// Returns whether [`Config::seed`] is applied: not to a state that an earlier server saved, in which
/// clients may have changed the same znodes.
pub fn is_seeded(config: &Config, dir: &Option<DataDir>) -> bool {
    config.seed_always || dir.as_ref().is_none_or(DataDir::is_fresh)
}
