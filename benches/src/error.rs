//! Why a measurement failed.

use std::{fmt::Write as _, io};

use minikeeper_protocol::{DecodeError, FrameError};

/// Why a program could not measure. `Display` prints one level; [`Error::chain`] joins them.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused something.
    #[error("{what}")]
    Io {
        /// What was tried.
        what: String,
        /// What the system said.
        source: io::Error,
    },
    /// Something did not happen in time.
    #[error("{what}: not within {limit_ms} ms")]
    Timeout {
        /// What was waited for.
        what: String,
        /// How long.
        limit_ms: u128,
    },
    /// A message with a length that cannot be followed.
    #[error("reply cannot be framed")]
    Frame(#[from] FrameError),
    /// A message that cannot be decoded.
    #[error("reply cannot be decoded")]
    Decode(#[from] DecodeError),
    /// The other side does not keep to the protocol, or answered what was not expected.
    #[error("{0}")]
    Unexpected(String),
    /// The measurement cannot be set up as asked; the text says what to do.
    #[error("{0}")]
    Setup(String),
}

impl Error {
    /// The error and its causes on one line, joined with `: `.
    #[must_use]
    pub fn chain(&self) -> String {
        let mut text = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            // Writing to a string cannot fail.
            let _ = write!(text, ": {error}");
            cause = error.source();
        }
        text
    }
}

/// Adds what was tried to an I/O error.
pub trait IoContext<T> {
    /// Wraps the error with what was tried.
    ///
    /// # Errors
    /// The error that came in, wrapped.
    fn context(self, what: impl FnOnce() -> String) -> Result<T, Error>;
}

impl<T> IoContext<T> for io::Result<T> {
    fn context(self, what: impl FnOnce() -> String) -> Result<T, Error> {
        self.map_err(|source| Error::Io {
            what: what(),
            source,
        })
    }
}
