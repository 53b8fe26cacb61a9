//! What goes into the machine beside bytes and time.

use std::time::Duration;

use super::{
    outcome::{Epoch, Time},
    requests::IfAbandoned,
    watches::{WatchKind, WatchToken},
};

/// What the machine is told once.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) session_timeout: Duration,
    /// How many servers there are.
    pub(crate) hosts: usize,
    /// How long one of them may take to answer; by default its share of the session timeout or of
    /// `connection_timeout`, whichever is shorter.
    pub(crate) connect_timeout: Option<Duration>,
    /// In which time a client wants to be connected.
    pub(crate) connection_timeout: Duration,
    pub(crate) close_wait: Duration,
    pub(crate) read_only: bool,
    pub(crate) frame_bytes_max: usize,
    /// What requests may take that wait for a connection or an answer. Unit: bytes.
    pub(crate) pending_bytes_max: usize,
    /// How many clean-ups may wait.
    pub(crate) clean_ups_max: usize,
    /// What the order of servers and the jitter of waits follow from.
    pub(crate) seed: u64,
}

/// A request on its way in.
#[derive(Debug, Default)]
pub(crate) struct Submission {
    pub(crate) caller: Option<u32>,
    /// How large its paths and data are. Unit: bytes.
    pub(crate) payload_bytes: usize,
    pub(crate) epoch: Option<Epoch>,
    pub(crate) deadline: Option<Time>,
    pub(crate) watch: Option<(WatchKind, WatchToken)>,
    pub(crate) if_abandoned: Option<Box<IfAbandoned>>,
}
