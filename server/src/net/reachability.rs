//! Binds the server's ports, and keeps track of whether it listens.

use std::{io, net::SocketAddr, sync::Arc};

use parking_lot::Mutex;
use tokio::{net::TcpListener, task::JoinSet};

use crate::{
    config::Config,
    ensemble::ServerAddresses,
    net::listener::{self, HeldPorts, Spawner},
    start::StartError,
    state::{UniverseState, time_control},
    stream::Stream,
};

/// How often a server looks for free ports in a row.
const FREE_PORTS_ATTEMPTS_MAX: u32 = 100;

/// Whether the server listens: the listening tasks while it is up, the control port while it is
/// down.
#[derive(Debug, Default)]
pub(crate) struct Reachability {
    listening: Mutex<ListenTasks>,
    held: HeldPorts,
    /// Held by whoever takes the server down or up, until the ports are held or listen.
    pub(crate) transition: Arc<tokio::sync::Mutex<()>>,
    /// Starts connections when the server comes up again. Reset on [`Reachability::stop`], because
    /// it refers back to the server.
    spawner: Mutex<Spawner>,
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
pub(crate) struct UpTasks {
    /// Moves the clock.
    time: JoinSet<()>,
    /// Accept connections, by server of the ensemble.
    accepting: Vec<JoinSet<()>>,
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
pub(crate) enum Phase {
    Up,
    /// It can come up again.
    Down,
    /// It never listens again.
    Stopped,
}

impl Reachability {
    /// Sets what starts connections from now on.
    #[cfg(feature = "control")]
    pub(crate) fn set_spawner(&self, spawner: Spawner) {
        *self.spawner.lock() = spawner;
    }

    pub(crate) fn spawner(&self) -> Spawner {
        self.spawner.lock().clone()
    }

    pub(crate) fn phase(&self) -> Phase {
        match *self.listening.lock() {
            ListenTasks::Up(_) => Phase::Up,
            ListenTasks::Down(_) => Phase::Down,
            ListenTasks::Stopped => Phase::Stopped,
        }
    }

    /// Marks the server as up, with these tasks; drops them if the server has stopped meanwhile.
    /// Returns the aborted tasks of the control port, for the caller to await.
    pub(crate) fn set_up(&self, tasks: UpTasks) -> AbortedTasks {
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
    pub(crate) fn set_control_port(
        &self,
        address: SocketAddr,
        tasks: JoinSet<()>,
    ) -> Option<SocketAddr> {
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
    pub(crate) fn go_down(&self) -> AbortedTasks {
        let mut listening = self.listening.lock();
        match *listening {
            ListenTasks::Up(_) => std::mem::take(&mut *listening).abort(),
            // The control port stays open.
            ListenTasks::Down(_) | ListenTasks::Stopped => AbortedTasks::default(),
        }
    }

    /// Holds the ports of servers of the ensemble that are down, until they listen again or the server
    /// is stopped.
    pub(crate) fn hold_ports(&self, servers: impl IntoIterator<Item = ServerAddresses>) {
        let listening = self.listening.lock();
        if !matches!(*listening, ListenTasks::Stopped) {
            for ServerAddresses { plain, secure } in servers {
                for address in plain.into_iter().chain(secure) {
                    self.held.hold(address);
                }
            }
        }
    }

    /// Listens on the ports of a server of the ensemble that was down.
    pub(crate) fn listen_again(
        &self,
        addresses: ServerAddresses,
        config: &Config,
    ) -> Result<Listeners, StartError> {
        let listening = Listeners::bind(addresses, config, &self.held);
        if listening.is_err() {
            self.hold_ports([addresses]);
        }
        listening.map(|(listeners, _)| listeners)
    }

    /// Returns whether the port of this address is held.
    #[cfg(test)]
    pub(crate) fn is_held(&self, address: SocketAddr) -> bool {
        self.held.is_held(address)
    }

    /// Replaces the tasks that accept connections for one server of the ensemble, unless all are
    /// down. Returns the aborted tasks, for the caller to await.
    pub(crate) fn set_accepting(&self, id: u8, tasks: JoinSet<()>) -> AbortedTasks {
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
    pub(crate) fn stop(&self) -> AbortedTasks {
        *self.spawner.lock() = Spawner::default();
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
pub(crate) struct AbortedTasks(Vec<JoinSet<()>>);

impl AbortedTasks {
    fn new(tasks: impl IntoIterator<Item = JoinSet<()>>) -> Self {
        (tasks.into_iter()).fold(Self::default(), Self::with)
    }

    /// Adds others, and aborts them.
    pub(crate) fn with(mut self, mut tasks: JoinSet<()>) -> Self {
        tasks.abort_all();
        self.0.push(tasks);
        self
    }

    /// Waits until they have ended.
    pub(crate) async fn end(&mut self) {
        for tasks in &mut self.0 {
            tasks.shutdown().await;
        }
    }
}

/// The listening sockets of one server of the ensemble, which do not accept connections yet.
pub(crate) struct Listeners {
    plain: Option<TcpListener>,
    #[cfg(feature = "tls")]
    secure: Option<(TcpListener, tokio_rustls::TlsAcceptor)>,
}

impl Listeners {
    /// Listens on these addresses. Returns them with the real ports.
    pub(crate) fn bind(
        wanted: ServerAddresses,
        config: &Config,
        held: &HeldPorts,
    ) -> Result<(Self, ServerAddresses), StartError> {
        let mut addresses = ServerAddresses::default();
        let plain = match wanted.plain {
            None => None,
            Some(wanted) => {
                let (listener, address) = listen(wanted, config, held)?;
                addresses.plain = Some(address);
                Some(listener)
            }
        };
        #[cfg(feature = "tls")]
        let secure = match wanted.secure {
            None => None,
            Some(wanted) => {
                let acceptor = crate::stream::tls::acceptor(config)?;
                let (listener, address) = listen(wanted, config, held)?;
                addresses.secure = Some(address);
                Some((listener, acceptor))
            }
        };
        let listeners = Self {
            plain,
            #[cfg(feature = "tls")]
            secure,
        };
        Ok((listeners, addresses))
    }

    /// Listens for every server of the ensemble, and writes the real ports of the first one back to
    /// `config`. Where any free port will do, finds enough of them in a row.
    pub(crate) fn bind_all(
        config: &mut Config,
    ) -> Result<(Vec<Self>, Vec<ServerAddresses>), StartError> {
        let is_any = |address: SocketAddr| address.port() == 0;
        let may_vary = is_any(config.listen) || config.secure_address().is_some_and(is_any);
        let mut attempts = 0;
        loop {
            let mut real = config.clone();
            match Self::bind_in_a_row(&mut real) {
                Err(StartError::Listen { source, .. })
                    if may_vary
                        && source.kind() == io::ErrorKind::AddrInUse
                        && attempts < FREE_PORTS_ATTEMPTS_MAX =>
                {
                    attempts += 1;
                }
                Err(error) => return Err(error),
                Ok(bound) => {
                    *config = real;
                    return Ok(bound);
                }
            }
        }
    }

    fn bind_in_a_row(config: &mut Config) -> Result<(Vec<Self>, Vec<ServerAddresses>), StartError> {
        let mut all = (Vec::new(), Vec::new());
        for place in 0..config.servers {
            // From the second one on, counts from the real ports of the first.
            let wanted = config.wanted_addresses()[place];
            let (listeners, addresses) = Self::bind(wanted, config, &HeldPorts::default())?;
            if place == 0 {
                config.listen = addresses.plain.unwrap_or(config.listen);
                #[cfg(feature = "tls")]
                {
                    config.secure_listen = addresses.secure;
                }
            }
            all.0.push(listeners);
            all.1.push(addresses);
        }
        Ok(all)
    }

    /// Starts accepting connections for a server of the ensemble, on the calling runtime.
    pub(crate) fn accept(self, shared: &Arc<UniverseState>, server: u8) -> JoinSet<()> {
        let mut tasks = JoinSet::new();
        let mut spawner = shared.server.reachability.spawner();
        spawner.server = server;
        if let Some(listener) = self.plain {
            if let Ok(address) = listener.local_addr() {
                tracing::info!(%address, "listening");
            }
            let shared = Arc::clone(shared);
            let plain = listener::accept(listener, shared, Stream::Plain, spawner.clone());
            tasks.spawn(plain);
        }
        #[cfg(feature = "tls")]
        if let Some((listener, acceptor)) = self.secure {
            if let Ok(address) = listener.local_addr() {
                tracing::info!(%address, "listening for TLS");
            }
            let wrap = move |stream| {
                Stream::Tls(Box::new(crate::stream::tls::TlsStream::accept(
                    &acceptor, stream,
                )))
            };
            tasks.spawn(listener::accept(
                listener,
                Arc::clone(shared),
                wrap,
                spawner,
            ));
        }
        tasks
    }
}

/// Starts accepting connections and handling deadlines, on the calling runtime. A server of the
/// ensemble without sockets is down.
pub(crate) fn serve(
    listeners: impl IntoIterator<Item = Option<Listeners>>,
    shared: &Arc<UniverseState>,
) -> UpTasks {
    let accept = |(listeners, id): (Option<Listeners>, u8)| {
        listeners.map_or_else(JoinSet::new, |listeners| listeners.accept(shared, id))
    };
    let accepting = listeners.into_iter().zip(1..).map(accept).collect();
    let mut time = JoinSet::new();
    time.spawn(time_control::run(Arc::clone(shared)));
    UpTasks { time, accepting }
}

/// Listens on an address, whether or not its port is held. Returns it with the real port.
pub(crate) fn listen(
    address: SocketAddr,
    config: &Config,
    held: &HeldPorts,
) -> Result<(TcpListener, SocketAddr), StartError> {
    let refused = |source: io::Error| match source.kind() {
        io::ErrorKind::Unsupported if source.raw_os_error().is_none() => {
            StartError::Runtime { missing: "I/O" }
        }
        _ => StartError::Listen { address, source },
    };
    let listener = held
        .listen(address, config.listen_backlog)
        .map_err(refused)?;
    let address = listener.local_addr().map_err(refused)?;
    Ok((listener, address))
}
