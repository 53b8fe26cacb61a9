//! Accepts connections, and refuses those beyond the limits.
//!
//! Source: `docs/zookeeper-protocol.md` sections 6.1 and 17.1.

use std::{
    collections::{HashMap, hash_map::Entry},
    io,
    net::{IpAddr, SocketAddr},
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{
    net::{TcpListener, TcpSocket, TcpStream},
    runtime::Handle,
};

#[cfg(feature = "control")]
use crate::control::{Controls, Handover};
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
pub(crate) enum PortUse {
    /// Clients, and perhaps control.
    Clients,
    /// Control alone: half of the reserved descriptors are left to it.
    #[cfg(feature = "control")]
    Control,
}

/// The pause before the next accept when the process has no file descriptor left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Sockets that hold the ports of servers that are down. They do not listen, so connections are
/// refused; and nobody who asks the system for a free port is given one of these.
#[derive(Debug, Default)]
pub(crate) struct HeldPorts(Mutex<HashMap<SocketAddr, TcpSocket>>);

impl HeldPorts {
    /// Holds a port, unless another program has taken it: then listening reports that.
    pub(crate) fn hold(&self, address: SocketAddr) {
        if let Entry::Vacant(place) = self.0.lock().entry(address)
            && let Ok(socket) = bind(address)
        {
            place.insert(socket);
        }
    }

    /// Listens on an address, whether or not its port is held.
    ///
    /// # Errors
    /// The system's, and [`io::ErrorKind::Unsupported`] if the runtime has no I/O.
    pub(crate) fn listen(&self, address: SocketAddr, backlog: u32) -> io::Result<TcpListener> {
        let held = self.0.lock().remove(&address);
        let socket = held.map_or_else(|| bind(address), Ok)?;
        // Tokio panics if there is no I/O, and cannot be asked before.
        let listen = std::panic::AssertUnwindSafe(|| socket.listen(backlog));
        std::panic::catch_unwind(listen).unwrap_or_else(|_| Err(io::ErrorKind::Unsupported.into()))
    }

    #[cfg(test)]
    pub(crate) fn is_held(&self, address: SocketAddr) -> bool {
        self.0.lock().contains_key(&address)
    }

    /// Frees the ports.
    pub(crate) fn clear(&self) {
        self.0.lock().clear();
    }
}

/// Binds a socket, which does not listen yet.
fn bind(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // A restarted server must not wait for the connections of the previous one to time out. On
    // systems other than Unix the option means something else.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    Ok(socket)
}

/// Starts the task of an accepted connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spawner {
    /// The number of the server of the ensemble.
    pub(crate) server: u8,
    /// Serves connections that turn out to speak HTTP, if the clients' port also serves control.
    #[cfg(feature = "control")]
    pub(crate) controls: Option<Arc<Controls>>,
}

impl Spawner {
    #[cfg_attr(
        not(feature = "control"),
        expect(
            clippy::unused_self,
            reason = "with `control` it looks at the controls"
        )
    )]
    fn spawn(&self, task: SocketTask, peer: IpAddr, runtime: &Handle) {
        #[cfg(feature = "control")]
        if let Some(controls) = &self.controls {
            runtime.spawn(Handover::new(task, Arc::clone(controls), peer));
            return;
        }
        let _ = peer;
        runtime.spawn(task);
    }
}

/// Moves a stream to the runtime that serves it: this one and the others take turns.
fn place(shared: &UniverseState, stream: TcpStream) -> io::Result<(TcpStream, Handle)> {
    let others = &shared.config.connection_runtimes;
    if others.is_empty() {
        return Ok((stream, Handle::current()));
    }
    let turn = shared.server.placed.fetch_add(1, Ordering::Relaxed) % (others.len() + 1);
    let Some(runtime) = others.get(turn) else {
        return Ok((stream, Handle::current()));
    };
    let stream = stream.into_std()?;
    let _entered = runtime.enter();
    Ok((TcpStream::from_std(stream)?, runtime.clone()))
}

/// Accepts clients until dropped. `wrap` adds TLS to a stream, if the port uses it.
pub(crate) async fn accept(
    listener: TcpListener,
    shared: Arc<UniverseState>,
    wrap: impl Fn(TcpStream) -> Stream,
    spawner: Spawner,
) {
    each(listener, move |stream, peer| {
        open(&shared, stream, peer, &wrap, &spawner);
    })
    .await;
}

/// Calls `open` with every accepted connection. Runs until dropped.
pub(crate) async fn each(listener: TcpListener, open: impl Fn(TcpStream, SocketAddr)) {
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
    spawner: &Spawner,
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
    let task = SocketTask::new(shared, wrap(stream), peer, spawner.server, slot);
    spawner.spawn(task, address, &runtime);
}

/// Counts a connection and prepares its socket. Returns `None` if a limit forbids it.
pub(crate) fn enter(
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
