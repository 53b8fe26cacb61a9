//! Why the state could not be saved. Without the feature `data` nothing is.

#[cfg(feature = "data")]
use std::{io, path::PathBuf};

/// Why the state could not be saved. The previous save is untouched.
#[cfg(feature = "data")]
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SaveError {
    /// The system cannot write the file.
    #[error("cannot save the state to {path:?}; the previous save is untouched")]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The directory was deleted or replaced.
    #[error(
        "cannot save the state to {path:?}, since the directory was deleted or replaced while the \
         server ran; restore it, or export the state to another directory"
    )]
    Gone {
        /// The directory.
        path: PathBuf,
    },
    /// A change could not be written to the transaction log. It was not acknowledged.
    #[error(
        "cannot write the transaction log {path:?}, so changes are no longer acknowledged; every \
         acknowledged change is saved"
    )]
    Log {
        /// The log.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The transaction log, or its directory, was deleted or replaced.
    #[error(
        "the transaction log {path:?} was deleted or replaced while the server ran, so changes are \
         no longer acknowledged"
    )]
    LogGone {
        /// The log, or the directory.
        path: PathBuf,
    },
    /// A bug has stopped the server and may have left half a change.
    #[error("the state is not saved after an internal error; the previous save is untouched")]
    Broken,
    /// The server's runtime is shutting down.
    #[error("the state is not saved, the runtime has ended; the previous save is untouched")]
    NoRuntime,
}

/// Why a server did not stop cleanly. With the feature `data`: why its state could not be saved.
#[cfg(not(feature = "data"))]
#[derive(Debug)]
#[non_exhaustive]
pub enum SaveError {
    /// A bug has stopped the server.
    Broken,
}

#[cfg(not(feature = "data"))]
impl std::fmt::Display for SaveError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Broken => f.write_str("the server was stopped by an internal error"),
        }
    }
}

#[cfg(not(feature = "data"))]
impl std::error::Error for SaveError {}
