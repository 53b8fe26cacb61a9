//! The engine's settings and the clock that a server starts with, and the errors of a start.

use std::{
    collections::hash_map::RandomState, error::Error, fmt, hash::BuildHasher as _, io,
    net::SocketAddr,
};

#[cfg(feature = "sasl")]
use minikeeper_engine::SaslSettings;
use minikeeper_engine::Settings;
use minikeeper_protocol::{SessionId, Zxid};

use crate::{
    clock::Clock,
    config::{Config, ConfigError},
    universe::seeding::SeedError,
};

/// The limit of the undo log since a [`Snapshot`](crate::Snapshot). Unit: bytes.
const UNDO_BYTES_MAX: usize = 256 << 20;

/// Why a server could not be started.
#[derive(Debug)]
#[non_exhaustive]
pub enum StartError {
    /// The address could not be bound.
    Listen {
        /// The address.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// There is no tokio runtime here, or it lacks what the server needs.
    Runtime {
        /// What is missing.
        missing: &'static str,
    },
    /// A setting is invalid.
    Config(ConfigError),
    /// The state to start with is missing or cannot be used.
    #[cfg(feature = "data")]
    Load(crate::data::LoadError),
    /// The certificate, its key, or the certificates that verify clients cannot be used.
    #[cfg(feature = "tls")]
    Tls(crate::net::tls::TlsError),
    /// The tree cannot be seeded with the given znodes.
    Seed(SeedError),
    /// The thread of a [`blocking::Server`](crate::blocking::Server) could not be started.
    Thread(io::Error),
    /// The recording cannot be made.
    Record {
        /// The file.
        path: std::path::PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Listen { address, .. } => write!(f, "cannot listen on {address}"),
            Self::Runtime { missing } => write!(
                f,
                "the server needs a tokio runtime with I/O and time, and there is no {missing}; use \
                 tokio::runtime::Builder::enable_all, or blocking::Server, which has its own runtime"
            ),
            Self::Config(_) => f.write_str("invalid setting"),
            #[cfg(feature = "data")]
            Self::Load(error) => error.fmt(f),
            #[cfg(feature = "tls")]
            Self::Tls(_) => f.write_str("cannot serve over TLS"),
            Self::Seed(_) => f.write_str("cannot seed the tree"),
            Self::Thread(_) => f.write_str("cannot start the server's thread"),
            Self::Record { path, .. } => write!(f, "cannot record to {}", path.display()),
        }
    }
}

impl Error for StartError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Runtime { .. } => None,
            Self::Config(error) => Some(error),
            #[cfg(feature = "data")]
            Self::Load(error) => error.source(),
            #[cfg(feature = "tls")]
            Self::Tls(error) => Some(error),
            Self::Seed(error) => Some(error),
            Self::Listen { source: error, .. }
            | Self::Record { source: error, .. }
            | Self::Thread(error) => Some(error),
        }
    }
}

impl From<ConfigError> for StartError {
    fn from(error: ConfigError) -> Self {
        Self::Config(error)
    }
}

#[cfg(feature = "data")]
impl From<crate::data::LoadError> for StartError {
    fn from(error: crate::data::LoadError) -> Self {
        Self::Load(error)
    }
}

#[cfg(feature = "tls")]
impl From<crate::net::tls::TlsError> for StartError {
    fn from(error: crate::net::tls::TlsError) -> Self {
        Self::Tls(error)
    }
}

impl From<SeedError> for StartError {
    fn from(error: SeedError) -> Self {
        Self::Seed(error)
    }
}

/// Checks that there is a runtime with time. Tokio has no question for that: what needs the missing part
/// panics, so the panic hook reports it too. Whether there is I/O shows when the server listens.
///
/// # Errors
/// [`StartError::Runtime`].
pub(crate) fn check_runtime() -> Result<(), StartError> {
    let missing = |missing| Err(StartError::Runtime { missing });
    if tokio::runtime::Handle::try_current().is_err() {
        return missing("runtime");
    }
    let sleep = || drop(tokio::time::sleep(std::time::Duration::ZERO));
    if std::panic::catch_unwind(sleep).is_err() {
        return missing("time");
    }
    Ok(())
}

pub(crate) fn clock(config: &Config) -> Clock {
    if config.manual_clock {
        Clock::frozen()
    } else {
        Clock::running()
    }
}

/// Returns the engine's settings.
pub(crate) fn settings(config: &Config, clock: &Clock) -> Settings {
    let wall_ms = clock.now().wall_ms;
    // A restarted server starts below a zxid that its clients have seen only if the previous one made
    // more than a million changes per millisecond.
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
        // `docs/zookeeper-protocol.md` section 6.6: server number 1, then the time, then a counter.
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
        #[cfg(not(feature = "sasl"))]
        sasl: None,
        #[cfg(feature = "sasl")]
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
    }
}

#[cfg(feature = "sasl")]
fn nonce_seed() -> [u8; 32] {
    let mut seed = [0; 32];
    for chunk in seed.chunks_mut(8) {
        chunk.copy_from_slice(&random().to_be_bytes());
    }
    seed
}

/// Returns a random seed for the hash tables of an engine, whose keys come from clients.
pub(crate) fn hash_seed() -> [u64; 2] {
    [random(), random()]
}

/// Returns a number that no client can guess, from the seed of the standard library's hash tables.
fn random() -> u64 {
    RandomState::new().hash_one(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With a constant seed, any client could compute paths that collide.
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
