//! What a server starts with, and why it may not start.

use std::{io, net::SocketAddr, path::PathBuf};

use minikeeper_engine::{Engine, Settings};

use crate::{
    clock::Clock,
    config::{Config, ConfigError},
    snapshot::{DataDir, DataDirError},
};

/// How many session ids earlier runs on a manual clock are believed to have used.
const SESSIONS_BEFORE: i64 = (1 << 40) - 1;

/// Why a server could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The address could not be bound.
    #[error("cannot listen on {address}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// Why not.
        source: io::Error,
    },
    /// A setting makes no sense.
    #[error("invalid setting")]
    Config(#[from] ConfigError),
    /// The data directory cannot be used, or what is in it not be loaded.
    #[error("cannot use data_dir {dir:?}")]
    DataDir {
        /// The directory.
        dir: PathBuf,
        /// Why not.
        source: DataDirError,
    },
    /// The thread of a [`blocking::Server`](crate::blocking::Server) could not be started.
    #[error("cannot start the server's thread")]
    Thread(#[source] io::Error),
}

pub(crate) fn clock(config: &Config) -> Clock {
    if config.manual_clock {
        Clock::manual()
    } else {
        Clock::system()
    }
}

/// The state to start with: what was saved, or a fresh one.
pub(crate) async fn load(
    config: &Config,
    mut settings: Settings,
) -> Result<(Engine, Option<DataDir>), StartError> {
    let Some(dir) = config.data_dir.clone() else {
        return Ok((Engine::new(settings), None));
    };
    let is_manual = config.manual_clock;
    let path = dir.clone();
    let loading = move || {
        let mut data_dir = DataDir::open(&path)?;
        if is_manual {
            // A clock that starts at the same time again gives the same ids again; there were
            // never more sessions than changes.
            settings.first_session_id.0 += data_dir.zxid().0 & SESSIONS_BEFORE;
        }
        let engine = data_dir.load(settings)?;
        data_dir.note_running()?;
        Ok((engine, Some(data_dir)))
    };
    tokio::task::spawn_blocking(loading)
        .await
        .expect("loading does not panic, and the runtime is there")
        .map_err(|source| StartError::DataDir { dir, source })
}
