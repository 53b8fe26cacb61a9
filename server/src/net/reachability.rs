//! Binds the server's ports, and keeps track of whether it listens.

use std::{net::SocketAddr, sync::Arc};

use parking_lot::Mutex;
use tokio::{net::TcpListener, task::JoinSet};

use crate::{
    config::Config,
    net::{
        listener::{self, Spawner},
        stream::Stream,
    },
    start::StartError,
    turn::time_control,
    universe::state::UniverseState,
};

/// Whether the server listens: the listening tasks while it is up, the control port while it is
/// down.
#[derive(Debug, Default)]
pub(crate) struct Reachability {
    listening: Mutex<ListenTasks>,
    /// Starts connections when the server comes up again. Reset on [`Reachability::stop`], because
    /// it refers back to the server.
    spawner: Mutex<Spawner>,
}

#[derive(Debug)]
enum ListenTasks {
    Up(JoinSet<()>),
    /// Only the control port listens, if there is one.
    Down(Option<ControlPort>),
    Stopped,
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
    pub(crate) fn set_up(&self, tasks: JoinSet<()>) -> JoinSet<()> {
        let mut listening = self.listening.lock();
        if matches!(*listening, ListenTasks::Stopped) {
            return JoinSet::new();
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
    pub(crate) fn go_down(&self) -> JoinSet<()> {
        let mut listening = self.listening.lock();
        match *listening {
            ListenTasks::Up(_) => std::mem::take(&mut *listening).abort(),
            // The control port stays open.
            ListenTasks::Down(_) | ListenTasks::Stopped => JoinSet::new(),
        }
    }

    /// Stops listening for ever, on the control port too. Returns the aborted tasks, for the caller
    /// to await.
    pub(crate) fn stop(&self) -> JoinSet<()> {
        *self.spawner.lock() = Spawner::default();
        std::mem::replace(&mut *self.listening.lock(), ListenTasks::Stopped).abort()
    }
}

impl ListenTasks {
    fn abort(self) -> JoinSet<()> {
        let mut tasks = match self {
            Self::Up(tasks) | Self::Down(Some(ControlPort { tasks, .. })) => tasks,
            Self::Down(None) | Self::Stopped => JoinSet::new(),
        };
        tasks.abort_all();
        tasks
    }
}

/// Listening sockets that do not accept connections yet.
pub(crate) struct Listeners {
    plain: Option<TcpListener>,
    #[cfg(feature = "tls")]
    secure: Option<(TcpListener, tokio_rustls::TlsAcceptor)>,
}

impl Listeners {
    /// Listens on the configured addresses, and writes the real ports back to `config`.
    pub(crate) fn bind(config: &mut Config) -> Result<Self, StartError> {
        let plain = if config.has_plain_port() {
            let (listener, address) = bind(config.listen, config)?;
            config.listen = address;
            Some(listener)
        } else {
            None
        };
        #[cfg(feature = "tls")]
        let secure = match config.secure_listen {
            None => None,
            Some(wanted) => {
                let acceptor = crate::net::tls::acceptor(config)?;
                let (listener, address) = bind(wanted, config)?;
                config.secure_listen = Some(address);
                tracing::info!(%address, "listening for TLS");
                Some((listener, acceptor))
            }
        };
        Ok(Self {
            plain,
            #[cfg(feature = "tls")]
            secure,
        })
    }

    /// Starts accepting connections and handling deadlines, on the calling runtime.
    pub(crate) fn serve(self, shared: &Arc<UniverseState>) -> JoinSet<()> {
        let mut tasks = JoinSet::new();
        let spawner = shared.server.reachability.spawner();
        if let Some(listener) = self.plain {
            tracing::info!(address = %shared.config.listen, "listening");
            let shared = Arc::clone(shared);
            let plain = listener::accept(listener, shared, Stream::Plain, spawner.clone());
            tasks.spawn(plain);
        }
        #[cfg(feature = "tls")]
        if let Some((listener, acceptor)) = self.secure {
            let wrap = move |stream| {
                Stream::Tls(Box::new(crate::net::tls::TlsStream::accept(
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
        tasks.spawn(time_control::run(Arc::clone(shared)));
        tasks
    }
}

/// Listens on an address. Returns it with the real port.
pub(crate) fn bind(
    address: SocketAddr,
    config: &Config,
) -> Result<(TcpListener, SocketAddr), StartError> {
    let refused = |source| StartError::Listen { address, source };
    let listener = listener::bind(address, config.listen_backlog).map_err(refused)?;
    let address = listener.local_addr().map_err(refused)?;
    Ok((listener, address))
}
