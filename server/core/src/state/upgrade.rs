//! The hook for connections that turn out to speak another protocol than ZooKeeper's.

use std::{net::IpAddr, sync::Arc};

use bytes::BytesMut;

use crate::{limits::open_connections::Slot, stream::Stream};

/// Serves connections that speak HTTP, if the clients' port also serves control.
pub trait Upgrade: std::fmt::Debug + Send + Sync {
    /// Serves a connection in a task of its own. `read` is what has been read from it.
    fn serve(self: Arc<Self>, stream: Stream, read: BytesMut, slot: Slot, peer: IpAddr);
}
