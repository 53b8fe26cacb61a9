//! The state that a server starts with: given, saved or imported.

use std::path::{Path, PathBuf};

use minikeeper_engine::{Engine, Settings};

use crate::{
    config::Config,
    data::{
        DataDir,
        data_source::DataSource,
        error::{BeginError, LoadError},
    },
};

/// How many session ids earlier runs on a frozen clock are believed to have used.
const SESSIONS_BEFORE: i64 = (1 << 40) - 1;

/// Loads the state to start with: what was given, saved or is to be imported, or a fresh one; and
/// the directory to save to, if there is one.
pub(crate) async fn load(
    config: &mut Config,
    mut settings: Settings,
) -> Result<(Engine, Option<DataDir>), LoadError> {
    // Taken out, so that nothing that copies the settings copies it too.
    if let Some(state) = config.state.take() {
        if let Some(dir) = config.data_dir.clone().or_else(|| import_dir(config)) {
            return Err(LoadError::TwoStates { dir });
        }
        // The server before may have been started in the same millisecond.
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
        .expect("loading does not panic, and the runtime is there")
}

fn import_dir(config: &Config) -> Option<PathBuf> {
    Some(config.import.as_ref()?.dir().to_owned())
}

fn import_from(source: &DataSource, settings: Settings) -> Result<Engine, LoadError> {
    let dir = source.dir().to_owned();
    let imported = source.load(settings);
    imported.map_err(|source| LoadError::Import { dir, source })
}

/// What was saved, or what is to be imported where nothing was ever saved.
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
        // A clock that starts at the same time again gives the same ids again; there were
        // never more sessions than changes.
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
    data_dir.begin(&engine).map_err(|error| match error {
        BeginError::Dir(source) => unusable(source),
        BeginError::Save(error) => LoadError::Save(error),
    })?;
    Ok((engine, Some(data_dir)))
}
