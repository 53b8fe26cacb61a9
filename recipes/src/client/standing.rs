//! How sure a client is of its session, and every change of that.
//!
//! Source: curator-recipes reference sections 2.9 and 9.

use std::future::Future;

use minikeeper_client::Epoch;
use tokio::time::Instant;

/// Every change of a client's standing, in order.
pub trait StateStream: Send + 'static {
    /// The next one; `None` once the client is closed. Cancel safe.
    fn next(&mut self) -> impl Future<Output = Option<Standing>> + Send;
}

/// How sure a client is of its session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standing {
    /// There was none yet.
    Connecting,
    /// There is a connection; without any further word the session is safe until then.
    Connected {
        /// The session's number.
        epoch: Epoch,
        /// Until when nobody can have ended the session.
        safe_until: Instant,
    },
    /// There is no connection.
    Suspended {
        /// The session's number.
        epoch: Epoch,
        /// Until when nobody can have ended the session.
        safe_until: Instant,
    },
    /// This session, and every one before it, is over.
    Lost {
        /// The session's number.
        epoch: Epoch,
    },
    /// The client is closed.
    Closed,
}

impl Standing {
    /// The session it is about.
    #[must_use]
    pub const fn epoch(&self) -> Option<Epoch> {
        match self {
            Self::Connected { epoch, .. }
            | Self::Suspended { epoch, .. }
            | Self::Lost { epoch } => Some(*epoch),
            Self::Connecting | Self::Closed => None,
        }
    }
}
