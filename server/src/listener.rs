//! Accepts connections, and refuses those beyond the limits.

use std::{
    collections::HashMap,
    io,
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Notify,
};

use crate::{
    server::Shared,
    socket::{Slot, SocketTask},
};

/// How long accepting pauses when the process has no file descriptor left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The TCP connections that are open.
#[derive(Debug, Default)]
pub(crate) struct Live {
    count: AtomicUsize,
    /// Kept only while a limit for each address is set.
    by_address: Mutex<HashMap<IpAddr, usize>>,
    /// Called when the last one has closed.
    empty: Notify,
}

impl Live {
    /// Counts a connection in; says which limit forbids it.
    fn enter(&self, shared: &Shared, address: IpAddr) -> Result<(), &'static str> {
        if self.count.load(Ordering::Acquire) >= shared.config.connections_max {
            return Err("connections_max");
        }
        let per_address_max = shared.config.connections_per_address_max;
        if per_address_max > 0 {
            let mut by_address = self.by_address.lock();
            let count = by_address.entry(address).or_default();
            if *count >= per_address_max {
                return Err("connections_per_address_max");
            }
            *count += 1;
        }
        self.count.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }

    pub(crate) fn leave(&self, address: IpAddr) {
        let mut by_address = self.by_address.lock();
        if let Some(count) = by_address.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                by_address.remove(&address);
            }
        }
        drop(by_address);
        if self.count.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.empty.notify_waiters();
        }
    }

    /// Waits until no connection is open.
    pub(crate) async fn wait_empty(&self) {
        loop {
            let empty = self.empty.notified();
            if self.count.load(Ordering::Acquire) == 0 {
                return;
            }
            empty.await;
        }
    }
}

/// Accepts until dropped.
pub(crate) async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => open(&shared, stream, peer.ip()),
            Err(error) if is_of_one_connection(&error) => {}
            Err(error) => {
                tracing::warn!(%error, "cannot accept; is the limit of open files reached?");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

fn open(shared: &Arc<Shared>, stream: TcpStream, address: IpAddr) {
    if let Err(setting) = shared.live.enter(shared, address) {
        tracing::warn!(%address, setting, "limit reached: a connection is refused");
        // As the original refuses: a reset, no byte.
        let _ = stream.set_zero_linger();
        return;
    }
    let slot = Slot(Arc::clone(shared), address);
    // Fails only on a socket that is gone already, which reading will notice.
    let _ = stream.set_nodelay(true);
    tokio::spawn(SocketTask::new(shared, stream, slot));
}

/// Whether the failure concerns only the connection that was about to be accepted.
fn is_of_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::Interrupted
    )
}
