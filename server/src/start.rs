//! What a server starts with: engine settings, loaded or imported state.

use std::{
    collections::hash_map::RandomState,
    hash::BuildHasher as _,
    io,
    net::SocketAddr,
    path::{Path, PathBuf},
};

use minikeeper_engine::{Engine, SaslSettings, Settings};
use minikeeper_protocol::{SessionId, Zxid};

use crate::{
    clock::Clock,
    config::{Config, ConfigError},
    data::{BeginError, DataDir, DataDirError, DataSource, SaveError, SavedState, SnapshotFault},
    universe::seeding::SeedError,
};

/// How many session ids earlier runs on a frozen clock are believed to have used.
const SESSIONS_BEFORE: i64 = (1 << 40) - 1;

/// The most that is kept of what has changed since a [`Snapshot`](crate::Snapshot).
const UNDO_BYTES_MAX: usize = 256 << 20;

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
    /// What is there at the start could not be saved, for a log to go on from.
    #[error("cannot save the initial state")]
    Save(#[source] SaveError),
    /// The state to start with does not fit the settings.
    #[error("cannot start from the given state: {0}")]
    State(SnapshotFault),
    /// The state to start with cannot be taken from where the settings say.
    #[error("cannot import {dir:?}")]
    Import {
        /// The directory.
        dir: PathBuf,
        /// Why not.
        source: DataDirError,
    },
    /// Two states to start with.
    #[error(
        "cannot import {import:?}, since data_dir {dir:?} has a state already; leave the import \
         out to go on with that, or use an empty data_dir"
    )]
    ImportToo {
        /// What was to be imported.
        import: PathBuf,
        /// The directory that is in use.
        dir: PathBuf,
    },
    /// A state to start with was given, and a directory to load one from.
    #[error("a state to start from and data_dir {dir:?} are both set; set one of them")]
    TwoStates {
        /// The directory.
        dir: PathBuf,
    },
    /// The certificate, its key, or those that clients are checked with cannot be used.
    #[cfg(feature = "tls")]
    #[error("cannot serve over TLS")]
    Tls(#[from] crate::net::tls::TlsError),
    /// What the tree is to begin with cannot be there.
    #[error("cannot seed the tree")]
    Seed(#[from] SeedError),
    /// The thread of a [`blocking::Server`](crate::blocking::Server) could not be started.
    #[error("cannot start the server's thread")]
    Thread(#[source] io::Error),
}

pub(crate) fn clock(config: &Config) -> Clock {
    if config.manual_clock {
        Clock::frozen()
    } else {
        Clock::running()
    }
}

/// What the engine is started with.
pub(crate) fn settings(config: &Config, clock: &Clock) -> Settings {
    let wall_ms = clock.now().wall_ms;
    // A million changes a millisecond would have to be made before a restarted server could
    // fall behind what its clients have seen.
    let zxid = config.initial_zxid.unwrap_or(if config.manual_clock {
        0
    } else {
        wall_ms << 20
    });
    Settings {
        tick_ms: config.tick_time_ms,
        rounds_expiry: config.rounds_expiry,
        session_timeout_min_ms: config.timeout_min_ms(),
        session_timeout_max_ms: config.timeout_max_ms(),
        zxid: Zxid(zxid),
        // `docs/zookeeper-protocol.md` section 6.6: server number 1, then the time, then room to
        // count.
        first_session_id: SessionId(
            (1 << 56) | (((wall_ms << 24).cast_unsigned() >> 8).cast_signed()),
        ),
        sessions_max: config.sessions_max,
        watches_max: config.watches_max,
        tree_bytes_max: config.tree_bytes_max,
        reply_bytes_max: config.reply_bytes_max(),
        multi_operations_max: config.multi_operations_max,
        acl_entries_max: config.acl_entries_max,
        identities_max: config.identities_max,
        undo_bytes_max: UNDO_BYTES_MAX,
        extended_types: config.extended_types,
        java_listing_order: config.java_listing_order,
        container_check_interval_ms: config.container_check_interval_ms,
        container_max_per_minute: config.container_max_per_minute,
        container_max_never_used_ms: config.container_max_never_used_ms,
        enforce_quota: config.enforce_quota,
        reconfig_enabled: config.reconfig_enabled,
        skip_acl: config.skip_acl,
        digest_enabled: config.digest_enabled,
        digest_algorithm: config.digest_algorithm,
        ensemble_names: config.ensemble_names.clone(),
        key_scheme: config.key_scheme,
        super_digest: config.super_digest.clone(),
        sasl: (!config.sasl_users.is_empty()).then(|| SaslSettings {
            users: config.sasl_users.clone(),
            super_users: config.sasl_super_users.clone(),
            nonce_seed: nonce_seed(),
            allow_failed: config.sasl_allow_failed,
        }),
        #[cfg(feature = "tls")]
        x509: config.secure_listen.is_some(),
        #[cfg(not(feature = "tls"))]
        x509: false,
        #[cfg(feature = "tls")]
        x509_super_user: config.x509_super_user.clone(),
        #[cfg(not(feature = "tls"))]
        x509_super_user: None,
        enforce_auth_schemes: config.enforce_auth_schemes.clone(),
        digests: config.tree_digests,
        hash_seed: hash_seed(),
        #[cfg(feature = "planted")]
        planted: match config.planted {
            Some(crate::planted::Planted::Engine(bug)) => Some(bug),
            _ => None,
        },
    }
}

fn nonce_seed() -> [u8; 32] {
    let mut seed = [0; 32];
    for chunk in seed.chunks_mut(8) {
        chunk.copy_from_slice(&by_chance().to_be_bytes());
    }
    seed
}

/// What an engine's tables hash with, for an engine whose keys come from clients.
pub(crate) fn hash_seed() -> [u64; 2] {
    [by_chance(), by_chance()]
}

/// A number that no client can guess, from what the standard library seeds its hash tables with.
fn by_chance() -> u64 {
    RandomState::new().hash_one(0)
}

/// The state to start with: what was given, saved or is to be imported, or a fresh one.
pub(crate) async fn load(
    config: &Config,
    mut settings: Settings,
    state: Option<SavedState>,
) -> Result<(Engine, Option<DataDir>), StartError> {
    if let Some(state) = state {
        if let Some(dir) = config.data_dir.clone().or_else(|| import_dir(config)) {
            return Err(StartError::TwoStates { dir });
        }
        // The server before may have been started in the same millisecond.
        settings.first_session_id.0 += state.zxid().0 & SESSIONS_BEFORE;
        let engine = state.load(settings).map_err(StartError::State)?;
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

fn import_from(source: &DataSource, settings: Settings) -> Result<Engine, StartError> {
    let dir = source.dir().to_owned();
    let imported = source.load(settings);
    imported.map_err(|source| StartError::Import { dir, source })
}

/// What was saved, or what is to be imported where nothing was ever saved.
fn load_dir(
    dir: &Path,
    import: Option<DataSource>,
    mut settings: Settings,
    is_manual: bool,
    trusts_damaged: bool,
) -> Result<(Engine, Option<DataDir>), StartError> {
    let unusable = |source| StartError::DataDir {
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
            return Err(StartError::ImportToo {
                import: source.dir().to_owned(),
                dir: dir.to_owned(),
            });
        }
    };
    data_dir.begin(&engine).map_err(|error| match error {
        BeginError::Dir(source) => unusable(source),
        BeginError::Save(error) => StartError::Save(error),
    })?;
    Ok((engine, Some(data_dir)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With a seed that is part of the program any client could compute paths that collide.
    #[test]
    fn servers_hash_with_different_seeds() {
        let config = Config::default();
        let clock = clock(&config);
        let mut drawn: Vec<u64> = (0..8)
            .flat_map(|_| settings(&config, &clock).hash_seed)
            .collect();
        drawn.sort_unstable();
        drawn.dedup();
        assert_eq!(drawn.len(), 16, "no number twice");
    }
}
