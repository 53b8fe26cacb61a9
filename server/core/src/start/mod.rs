//! What a server starts with, and the errors of a start.
//!
//! [`ports`] binds the ports, and [`load`] loads the state; builds without the feature `data` use `no_load.rs` instead.

#[cfg(feature = "data")]
pub mod load;
#[cfg(not(feature = "data"))]
#[path = "no_load.rs"]
pub mod load;
pub mod ports;

use std::{error::Error, fmt, io, net::SocketAddr};

use crate::{config::ConfigError, trees::seed_error::SeedError};

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
    Tls(crate::stream::tls::TlsError),
    /// The tree cannot be seeded with the given znodes.
    Seed(SeedError),
    /// The thread of a [`blocking::Server`](../minikeeper/blocking/struct.Server.html) could not be started.
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
impl From<crate::stream::tls::TlsError> for StartError {
    fn from(error: crate::stream::tls::TlsError) -> Self {
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
pub fn check_runtime() -> Result<(), StartError> {
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
