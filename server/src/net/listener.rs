//! Accepts connections, and refuses those beyond the limits.
//!
//! Source: `docs/zookeeper-protocol.md` sections 6.1 and 17.1.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use tokio::net::{TcpListener, TcpSocket, TcpStream};

use crate::{
    net::{open_connections::Slot, socket::SocketTask, stream::Stream},
    turn::stats::Peer,
    universe::state::Shared,
};

/// How long accepting pauses when the process has no file descriptor left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Listens.
pub(crate) fn bind(address: SocketAddr, backlog: u32) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // A server that is started again must not wait for connections of the last one; elsewhere
    // than on Unix the option means something else.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(backlog)
}

/// Accepts clients until dropped; `wrap` says what a connection's bytes travel on, `spawn` starts
/// its task.
pub(crate) async fn accept(
    listener: TcpListener,
    shared: Arc<Shared>,
    wrap: impl Fn(TcpStream) -> Stream,
    spawn: impl Fn(SocketTask, IpAddr),
) {
    each(listener, move |stream, peer| {
        open(&shared, stream, peer, &wrap, &spawn);
    })
    .await;
}

/// Gives away every connection that is accepted, until dropped.
pub(crate) async fn each(listener: TcpListener, open: impl Fn(TcpStream, SocketAddr)) {
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => open(stream, peer),
            Err(error) if is_of_one_connection(&error) => {}
            Err(error) => {
                tracing::warn!(%error, "cannot accept; is the limit of open files reached?");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

fn open(
    shared: &Arc<Shared>,
    stream: TcpStream,
    peer: SocketAddr,
    wrap: impl Fn(TcpStream) -> Stream,
    spawn: impl Fn(SocketTask, IpAddr),
) {
    let peer = Peer::from(peer);
    if shared.turns.faults.are_set() && shared.turns.faults.refuse(&peer) {
        let _ = stream.set_zero_linger();
        return;
    }
    let address = peer.ip();
    let Some(slot) = enter(shared, &stream, address) else {
        return;
    };
    let task = SocketTask::new(shared, wrap(stream), peer, slot);
    spawn(task, address);
}

/// Counts a connection in, and readies its socket; nothing if a limit forbids it.
pub(crate) fn enter(shared: &Shared, stream: &TcpStream, address: IpAddr) -> Option<Slot> {
    match shared.live.enter(&shared.config, address) {
        Ok(slot) => {
            // Fails only on a socket that is gone already, which reading will notice.
            let _ = stream.set_nodelay(true);
            Some(slot)
        }
        Err((setting, max)) => {
            shared.limits.refused(setting, max, address);
            // As the original refuses: a reset, no byte.
            let _ = stream.set_zero_linger();
            None
        }
    }
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
