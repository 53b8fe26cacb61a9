//! Accepts connections, and refuses those beyond the limits.
//!
//! Source: `docs/zookeeper-protocol.md` sections 6.1 and 17.1.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use tokio::{
    net::{TcpListener, TcpStream},
    runtime::Handle,
};

#[cfg(feature = "control")]
use crate::net::handover::Handover;
use crate::{
    limits::open_connections::Slot, net::socket::SocketTask, peer::Peer, state::UniverseState,
    stream::Stream,
};

/// The number of file descriptors that connections leave to the log, snapshots and other files; of
/// a small limit, a quarter.
#[cfg(all(unix, any(feature = "data", feature = "tls")))]
const RESERVED_FILES: u64 = 64;

/// What a port serves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PortUse {
    /// Clients, and perhaps control.
    Clients,
    /// Control alone: half of the reserved descriptors are left to it.
    #[cfg(feature = "control")]
    Control,
}

/// The pause before the next accept when the process has no file descriptor left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Starts the task of an accepted connection.
fn spawn(shared: &UniverseState, task: SocketTask, peer: IpAddr, runtime: &Handle) {
    #[cfg(feature = "control")]
    if let Some(upgrade) = shared.server.reachability.upgrade() {
        runtime.spawn(Handover::new(task, upgrade, peer));
        return;
    }
    let _ = (shared, peer);
    runtime.spawn(task);
}

/// Moves a stream to the runtime that serves it: this one and the others take turns.
fn place(shared: &UniverseState, stream: TcpStream) -> io::Result<(TcpStream, Handle)> {
    let others = &shared.config.connection_runtimes;
    if others.is_empty() {
        return Ok((stream, Handle::current()));
    }
    let next = shared.server.placed.fetch_add(1, Ordering::Relaxed) % (others.len() + 1);
    let Some(runtime) = others.get(next) else {
        return Ok((stream, Handle::current()));
    };
    let stream = stream.into_std()?;
    let _entered = runtime.enter();
    Ok((TcpStream::from_std(stream)?, runtime.clone()))
}

/// Accepts clients of a server of the ensemble until dropped. `wrap` adds TLS to a stream, if the port
/// uses it.
pub(crate) async fn accept(
    listener: TcpListener,
    shared: Arc<UniverseState>,
    wrap: impl Fn(TcpStream) -> Stream,
    server: u8,
) {
    each(listener, move |stream, peer| {
        open(&shared, stream, peer, &wrap, server);
    })
    .await;
}

/// Calls `open` with every accepted connection. Runs until dropped.
pub async fn each(listener: TcpListener, open: impl Fn(TcpStream, SocketAddr)) {
    let mut failures = 0_u64;
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => open(stream, peer),
            Err(error) if is_of_one_connection(&error) => {}
            Err(error) => {
                // It may go on for long, so this becomes rarer.
                failures += 1;
                if failures.is_power_of_two() {
                    tracing::warn!(
                        %error,
                        failures,
                        "cannot accept; is the limit of open files reached?"
                    );
                }
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

fn open(
    shared: &Arc<UniverseState>,
    stream: TcpStream,
    peer: SocketAddr,
    wrap: impl Fn(TcpStream) -> Stream,
    server: u8,
) {
    let peer = Peer::from(peer);
    if shared.turns.faults.are_set() && shared.turns.faults.refuse(&peer) {
        let _ = stream.set_zero_linger();
        return;
    }
    let address = peer.ip();
    let Some(slot) = enter(shared, &stream, address, PortUse::Clients) else {
        return;
    };
    let (stream, runtime) = match place(shared, stream) {
        Ok(placed) => placed,
        Err(error) => {
            tracing::warn!(%error, "cannot move a connection to another thread; it is closed");
            return;
        }
    };
    let task = SocketTask::new(shared, wrap(stream), peer, server, slot);
    spawn(shared, task, address, &runtime);
}

/// Counts a connection and prepares its socket. Returns `None` if a limit forbids it.
pub fn enter(
    shared: &UniverseState,
    stream: &TcpStream,
    address: IpAddr,
    port: PortUse,
) -> Option<Slot> {
    let connections = &shared.server.open_connections;
    let entered = match files_exhausted(stream, port) {
        Some(max) => Err(("limit of open files", max)),
        None => connections.enter(&shared.config, address),
    };
    match entered {
        Ok(slot) => {
            // Fails only on a closed socket, which reading will notice.
            let _ = stream.set_nodelay(true);
            Some(slot)
        }
        Err((setting, max)) => {
            shared.limits.refused(setting, max, address);
            // ZooKeeper refuses in the same way: with a reset and without a byte.
            let _ = stream.set_zero_linger();
            None
        }
    }
}

/// Returns how many files connections may leave open, if this one is beyond that.
///
/// The system gives a new file the lowest free number. So a high one shows how many are open, those
/// included that the rest of the process has opened, and nothing has to be counted.
#[cfg(all(unix, any(feature = "data", feature = "tls")))]
fn files_exhausted(stream: &TcpStream, port: PortUse) -> Option<usize> {
    use std::os::fd::AsRawFd as _;
    // Asked each time, because it can be changed from outside.
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current?;
    let reserved = (limit / 4).min(RESERVED_FILES);
    let max = match port {
        PortUse::Clients => limit - reserved,
        #[cfg(feature = "control")]
        PortUse::Control => limit - reserved / 2,
    };
    let number = u64::try_from(stream.as_raw_fd()).unwrap_or_default();
    (number >= max).then(|| usize::try_from(max).unwrap_or(usize::MAX))
}

/// Without the features that need files there is nothing to reserve them for.
#[cfg(not(all(unix, any(feature = "data", feature = "tls"))))]
fn files_exhausted(_: &TcpStream, _: PortUse) -> Option<usize> {
    None
}

/// Returns whether the failure concerns only the connection that was about to be accepted.
fn is_of_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::Interrupted
    )
}
