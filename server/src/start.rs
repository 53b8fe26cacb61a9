//! What a server starts with, and why it may not start.

use std::{
    collections::hash_map::RandomState, hash::BuildHasher as _, io, net::SocketAddr, path::PathBuf,
};

use minikeeper_engine::{Engine, SaslSettings, Settings};
use minikeeper_protocol::{SessionId, Zxid};

use crate::{
    clock::Clock,
    config::{Config, ConfigError},
    seeding::SeedError,
    snapshot::{DataDir, DataDirError, SnapshotFault, State},
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
    /// The state to start with does not fit the settings.
    #[error("cannot go on from the state that was given: {0}")]
    State(SnapshotFault),
    /// A state to start with was given, and a directory to load one from.
    #[error("a state to start with and data_dir {dir:?}; give one of them")]
    TwoStates {
        /// The directory.
        dir: PathBuf,
    },
    /// The certificate, its key, or those that clients are checked with cannot be used.
    #[cfg(feature = "tls")]
    #[error("cannot serve over TLS")]
    Tls(#[from] crate::tls::TlsError),
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
        // Reference section 6.6: server number 1, then the time, then room to count.
        first_session_id: SessionId(
            (1 << 56) | (((wall_ms << 24).cast_unsigned() >> 8).cast_signed()),
        ),
        sessions_max: config.sessions_max,
        watches_max: config.watches_max,
        tree_bytes_max: config.tree_bytes_max,
        undo_bytes_max: UNDO_BYTES_MAX,
        extended_types: config.extended_types,
        container_check_interval_ms: config.container_check_interval_ms,
        container_max_per_minute: config.container_max_per_minute,
        container_max_never_used_ms: config.container_max_never_used_ms,
        enforce_quota: config.enforce_quota,
        reconfig_enabled: config.reconfig_enabled,
        skip_acl: config.skip_acl,
        digest_enabled: config.digest_enabled,
        super_digest: config.super_digest.clone(),
        sasl: (!config.sasl_users.is_empty()).then(|| SaslSettings {
            users: config.sasl_users.clone(),
            super_users: config.sasl_super_users.clone(),
            nonce_seed: seed_by_chance(),
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
        #[cfg(feature = "planted")]
        planted: match config.planted {
            Some(crate::planted::Planted::Engine(bug)) => Some(bug),
            _ => None,
        },
    }
}

/// Numbers nobody can guess. The standard library keys its hash tables with them; nothing else
/// here needs chance.
fn seed_by_chance() -> [u8; 32] {
    let mut seed = [0; 32];
    for (index, chunk) in seed.chunks_mut(8).enumerate() {
        chunk.copy_from_slice(&RandomState::new().hash_one(index).to_be_bytes());
    }
    seed
}

/// The state to start with: what was given or saved, or a fresh one.
pub(crate) async fn load(
    config: &Config,
    mut settings: Settings,
    state: Option<State>,
) -> Result<(Engine, Option<DataDir>), StartError> {
    let Some(dir) = config.data_dir.clone() else {
        let engine = match state {
            Some(state) => {
                // The server before may have been started in the same millisecond.
                settings.first_session_id.0 += state.zxid().0 & SESSIONS_BEFORE;
                state.load(settings).map_err(StartError::State)?
            }
            None => Engine::new(settings),
        };
        return Ok((engine, None));
    };
    if state.is_some() {
        return Err(StartError::TwoStates { dir });
    }
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
