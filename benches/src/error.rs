//! Errors of measurements.

use std::{fmt::Write as _, io};

use minikeeper_protocol::{DecodeError, FrameError};

/// The reason why a program could not measure. `Display` prints one level; [`Error::chain`] joins
/// them.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused a call.
    #[error("{what}")]
    Io {
        /// What the program tried.
        what: String,
        /// The error of the system.
        source: io::Error,
    },
    /// An event did not happen in time.
    #[error("{what}: not within {limit_ms} ms")]
    Timeout {
        /// The event.
        what: String,
        /// The time limit, in milliseconds.
        limit_ms: u128,
    },
    /// A message with an invalid length.
    #[error("reply cannot be framed")]
    Frame(#[from] FrameError),
    /// A message that cannot be decoded.
    #[error("reply cannot be decoded")]
    Decode(#[from] DecodeError),
    /// The other side broke the protocol, or gave an unexpected reply.
    #[error("{0}")]
    Unexpected(String),
    /// The measurement cannot be set up as requested; the text says what to do.
    #[error("{0}")]
    Setup(String),
}

impl Error {
    /// Returns the error and its causes on one line, joined with `: `.
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

/// Adds to an I/O error what the program tried.
pub trait IoContext<T> {
    /// Wraps the error with what the program tried.
    ///
    /// # Errors
    /// The original error, wrapped.
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
