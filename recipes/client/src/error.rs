//! What can go wrong with a call.

use std::time::Duration;

use minikeeper_protocol::{ErrorCode, PathError};

use crate::core::outcome::Cause;

/// Why a call has no result.
///
/// Three cases matter to whoever has to go on: the server has refused ([`Error::Refused`]), the
/// request was certainly not carried out ([`Error::NotSent`], and everything that is wrong before
/// sending), or nobody knows ([`Error::OutcomeUnknown`]).
///
/// # Examples
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = minikeeper::Server::builder().start().await?;
/// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
/// use minikeeper_client::{Error, ErrorCode};
///
/// match client.get_data("/missing").await {
///     Ok(data) => println!("{:?}", data.as_bytes()),
///     Err(error) if error.is(ErrorCode::NoNode) => println!("there is none"),
///     Err(error) if error.is_retryable() => println!("again: {error}"),
///     Err(error) => return Err(error.into()),
/// }
/// # Ok(()) }
/// ```
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A server has answered with an error. Nothing was changed.
    #[error("{op} {path:?}: {code}")]
    Refused {
        /// The operation.
        op: &'static str,
        /// The path, as the caller knows it.
        path: String,
        /// The server's reason.
        code: ErrorCode,
    },
    /// A server has refused a multi for one of its operations. Nothing was changed.
    #[error("multi: operation {index} on {path:?}: {code}")]
    MultiRefused {
        /// Which operation, counted from 0.
        index: usize,
        /// Its path, as the caller knows it.
        path: String,
        /// The server's reason.
        code: ErrorCode,
    },
    /// The request was sent, and it is not known whether it was carried out.
    #[error("{op} {path:?}: outcome unknown: {cause}")]
    OutcomeUnknown {
        /// The operation.
        op: &'static str,
        /// The path, as the caller knows it.
        path: String,
        /// Why there is no answer.
        cause: Cause,
    },
    /// The request was not sent, so it was not carried out.
    #[error("{op} {path:?}: not sent: {cause}")]
    NotSent {
        /// The operation.
        op: &'static str,
        /// The path, as the caller knows it.
        path: String,
        /// Why not.
        cause: Cause,
    },
    /// The path breaks a rule; nothing was sent.
    #[error(transparent)]
    Path(#[from] PathError),
    /// The request is larger than servers take; nothing was sent.
    #[error("{op} {path:?}: request of {bytes} bytes exceeds the limit of {bytes_max} bytes")]
    TooLarge {
        /// The operation.
        op: &'static str,
        /// The path, as the caller knows it.
        path: String,
        /// Its size.
        bytes: usize,
        /// What is allowed, see [`crate::ClientBuilder::frame_bytes_max`].
        bytes_max: usize,
    },
    /// There was no connection within this time.
    #[error("no connection within {} ms; is a server running at {hosts}?", within.as_millis())]
    NotConnected {
        /// Where one was looked for.
        hosts: String,
        /// For how long.
        within: Duration,
    },
}

impl Error {
    /// The server's reason, if a server has refused.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
    /// # use minikeeper_client::ErrorCode;
    /// let refused = client.get_data("/missing").await.expect_err("it is missing");
    /// assert_eq!(refused.code(), Some(ErrorCode::NoNode));
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub const fn code(&self) -> Option<ErrorCode> {
        match self {
            Self::Refused { code, .. } | Self::MultiRefused { code, .. } => Some(*code),
            _ => None,
        }
    }

    /// Whether a server has refused for this reason.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
    /// # use minikeeper_client::ErrorCode;
    /// let refused = client.get_data("/missing").await.expect_err("it is missing");
    /// assert!(refused.is(ErrorCode::NoNode));
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn is(&self, code: ErrorCode) -> bool {
        self.code() == Some(code)
    }

    /// Whether the request may or may not have been carried out.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
    /// let refused = client.get_data("/missing").await.expect_err("it is missing");
    /// assert!(!refused.is_outcome_unknown());
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub const fn is_outcome_unknown(&self) -> bool {
        matches!(self, Self::OutcomeUnknown { .. })
    }

    /// Whether trying again may help: there was no answer, or the server was busy with another
    /// connection of the same session.
    ///
    /// A request whose outcome is unknown may be carried out twice then.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
    /// let refused = client.get_data("/missing").await.expect_err("it is missing");
    /// assert!(!refused.is_retryable());
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        match self {
            Self::OutcomeUnknown { cause, .. } | Self::NotSent { cause, .. } => {
                matches!(cause, Cause::ConnectionLost | Cause::SessionLost)
            }
            Self::Refused { code, .. } => matches!(
                code,
                ErrorCode::ConnectionLoss
                    | ErrorCode::OperationTimeout
                    | ErrorCode::SessionMoved
                    | ErrorCode::SessionExpired
                    | ErrorCode::ThrottledOp
            ),
            _ => false,
        }
    }

    /// Why there is no answer, if there is none.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = minikeeper::Server::builder().start().await?;
    /// # let client = minikeeper_client::Client::connect(&server.connect_string()).await?;
    /// # use minikeeper_client::Cause;
    /// client.close().await;
    /// let not_sent = client.get_data("/").await.expect_err("it is closed");
    /// assert_eq!(not_sent.cause(), Some(Cause::Closed));
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub const fn cause(&self) -> Option<Cause> {
        match self {
            Self::OutcomeUnknown { cause, .. } | Self::NotSent { cause, .. } => Some(*cause),
            _ => None,
        }
    }
}
