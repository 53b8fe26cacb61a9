//! Keeps track of whether the server listens, and holds the ports of servers that are down.

use std::{
    collections::{HashMap, hash_map::Entry},
    io,
    net::SocketAddr,
    sync::Arc,
};

use parking_lot::Mutex;
use tokio::{
    net::{TcpListener, TcpSocket},
    task::JoinSet,
};

use crate::ensemble::ServerAddresses;
#[cfg(feature = "control")]
use crate::state::upgrade::Upgrade;

/// Whether the server listens: the listening tasks while it is up, the control port while it is
/// down.
#[derive(Debug, Default)]
pub struct Reachability {
    listening: Mutex<ListenTasks>,
    held: HeldPorts,
    /// Held by whoever takes the server down or up, until the ports are held or listen.
    pub transition: Arc<tokio::sync::Mutex<()>>,
    /// Serves HTTP on the clients' port. Reset on [`Reachability::stop`], because it refers back to the
    /// server.
    #[cfg(feature = "control")]
    upgrade: Mutex<Option<Arc<dyn Upgrade>>>,
}

#[derive(Debug)]
enum ListenTasks {
    Up(UpTasks),
    /// Only the control port listens, if there is one.
    Down(Option<ControlPort>),
    Stopped,
}

/// The tasks of a server that is up.
#[derive(Debug, Default)]
pub struct UpTasks {
    /// Moves the clock.
    pub(crate) time: JoinSet<()>,
    /// Accept connections, by server of the ensemble.
    pub(crate) accepting: Vec<JoinSet<()>>,
}

/// The port that serves control while the server is down.
#[derive(Debug)]
#[cfg_attr(
    not(feature = "control"),
    expect(dead_code, reason = "only control opens one")
)]
struct ControlPort {
    address: SocketAddr,
    tasks: JoinSet<()>,
}

impl Default for ListenTasks {
    fn default() -> Self {
        Self::Down(None)
    }
}

/// Whether a server listens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    Up,
    /// It can come up again.
    Down,
    /// It never listens again.
    Stopped,
}

impl Reachability {
    /// Sets what serves HTTP on the clients' port from now on.
    #[cfg(feature = "control")]
    pub fn set_upgrade(&self, upgrade: Arc<dyn Upgrade>) {
        *self.upgrade.lock() = Some(upgrade);
    }

    #[cfg(feature = "control")]
    pub(crate) fn upgrade(&self) -> Option<Arc<dyn Upgrade>> {
        self.upgrade.lock().clone()
    }

    pub fn phase(&self) -> Phase {
        match *self.listening.lock() {
            ListenTasks::Up(_) => Phase::Up,
            ListenTasks::Down(_) => Phase::Down,
            ListenTasks::Stopped => Phase::Stopped,
        }
    }

    /// Marks the server as up, with these tasks; drops them if the server has stopped meanwhile.
    /// Returns the aborted tasks of the control port, for the caller to await.
    pub fn set_up(&self, tasks: UpTasks) -> AbortedTasks {
        let mut listening = self.listening.lock();
        if matches!(*listening, ListenTasks::Stopped) {
            return AbortedTasks::default();
        }
        std::mem::replace(&mut *listening, ListenTasks::Up(tasks)).abort()
    }

    /// Serves control at this address while the server is down, unless another port already does.
    /// Returns the address that serves control. If the server is not down, drops the tasks and
    /// returns `None`.
    #[cfg(feature = "control")]
    pub fn set_control_port(&self, address: SocketAddr, tasks: JoinSet<()>) -> Option<SocketAddr> {
        match &mut *self.listening.lock() {
            ListenTasks::Down(port @ None) => {
                *port = Some(ControlPort { address, tasks });
                Some(address)
            }
            ListenTasks::Down(Some(ControlPort { address, .. })) => Some(*address),
            ListenTasks::Up(_) | ListenTasks::Stopped => None,
        }
    }

    /// Stops listening. Returns the aborted tasks, for the caller to await.
    pub fn go_down(&self) -> AbortedTasks {
        let mut listening = self.listening.lock();
        match *listening {
            ListenTasks::Up(_) => std::mem::take(&mut *listening).abort(),
            // The control port stays open.
            ListenTasks::Down(_) | ListenTasks::Stopped => AbortedTasks::default(),
        }
    }

    /// Holds the ports of servers of the ensemble that are down, until they listen again or the server
    /// is stopped.
    pub fn hold_ports(&self, servers: impl IntoIterator<Item = ServerAddresses>) {
        let listening = self.listening.lock();
        if !matches!(*listening, ListenTasks::Stopped) {
            for ServerAddresses { plain, secure } in servers {
                for address in plain.into_iter().chain(secure) {
                    self.held.hold(address);
                }
            }
        }
    }

    pub(crate) const fn held(&self) -> &HeldPorts {
        &self.held
    }

    /// Returns whether the port of this address is held.
    pub fn is_held(&self, address: SocketAddr) -> bool {
        self.held.is_held(address)
    }

    /// Replaces the tasks that accept connections for one server of the ensemble, unless all are
    /// down. Returns the aborted tasks, for the caller to await.
    pub fn set_accepting(&self, id: u8, tasks: JoinSet<()>) -> AbortedTasks {
        let mut listening = self.listening.lock();
        let ListenTasks::Up(up) = &mut *listening else {
            return AbortedTasks::default();
        };
        match up.accepting.get_mut(usize::from(id) - 1) {
            Some(accepting) => AbortedTasks::new([std::mem::replace(accepting, tasks)]),
            None => AbortedTasks::default(),
        }
    }

    /// Stops listening for ever, on the control port too. Returns the aborted tasks, for the caller
    /// to await.
    pub fn stop(&self) -> AbortedTasks {
        #[cfg(feature = "control")]
        self.upgrade.lock().take();
        let listening = std::mem::replace(&mut *self.listening.lock(), ListenTasks::Stopped);
        self.held.clear();
        listening.abort()
    }
}

impl ListenTasks {
    fn abort(self) -> AbortedTasks {
        match self {
            Self::Up(UpTasks { time, accepting }) => {
                AbortedTasks::new(accepting.into_iter().chain([time]))
            }
            Self::Down(Some(ControlPort { tasks, .. })) => AbortedTasks::new([tasks]),
            Self::Down(None) | Self::Stopped => AbortedTasks::default(),
        }
    }
}

/// Tasks that end as soon as they run again. A port is free only once they have ended.
#[derive(Default)]
pub struct AbortedTasks(Vec<JoinSet<()>>);

impl AbortedTasks {
    fn new(tasks: impl IntoIterator<Item = JoinSet<()>>) -> Self {
        (tasks.into_iter()).fold(Self::default(), Self::with)
    }

    /// Adds others, and aborts them.
    pub fn with(mut self, mut tasks: JoinSet<()>) -> Self {
        tasks.abort_all();
        self.0.push(tasks);
        self
    }

    /// Waits until they have ended.
    pub async fn end(&mut self) {
        for tasks in &mut self.0 {
            tasks.shutdown().await;
        }
    }
}

/// Sockets that hold the ports of servers that are down. They do not listen, so connections are
/// refused; and the system assigns none of these ports to a program that asks for a free one.
#[derive(Debug, Default)]
pub struct HeldPorts(Mutex<HashMap<SocketAddr, TcpSocket>>);

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

    pub fn is_held(&self, address: SocketAddr) -> bool {
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
