//! Replaces `data/` in builds without the feature `data`: nothing is saved or logged.

use std::fmt;

use minikeeper_engine::{Change, ChangeHead};
use minikeeper_protocol::Zxid;

/// Why a server did not stop cleanly. With the feature `data`: why its state could not be saved.
#[derive(Debug)]
#[non_exhaustive]
pub enum SaveError {
    /// A bug has stopped the server.
    Broken,
}

impl fmt::Display for SaveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Broken => f.write_str("the server was stopped by an internal error"),
        }
    }
}

impl std::error::Error for SaveError {}

/// There is no log.
#[derive(Debug)]
pub(crate) enum LogWriter {}

impl LogWriter {
    pub(crate) const fn keep(&self, _: ChangeHead, _: &Change<'_>) {
        match *self {}
    }

    pub(crate) const fn take_back(&self, _: Zxid) {
        match *self {}
    }

    pub(crate) const fn keep_up(&self, _: Zxid, _: i64) {
        match *self {}
    }

    pub(crate) const fn write(&self) -> bool {
        match *self {}
    }

    pub(crate) const fn go_on_from(&self, _: Zxid) {
        match *self {}
    }

    pub(crate) const fn take_failure(&self) -> Option<SaveError> {
        match *self {}
    }
}
