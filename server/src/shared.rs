//! What the listener, the connections and the server's handle have in common.

use std::sync::{Arc, atomic::AtomicI64};

use crate::{
    config::Config, fresh::Fresh, limits::Limits, live::Live, scratch::ScratchPool, turn::Turns,
};

/// What the listener, the connections and the handle share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) turns: Turns,
    pub(crate) config: Config,
    pub(crate) scratches: ScratchPool,
    pub(crate) live: Arc<Live>,
    pub(crate) fresh: Fresh,
    /// What `stmk` sets and `gtmk` tells; nothing is traced by it.
    pub(crate) trace_mask: AtomicI64,
    pub(crate) limits: Limits,
}
