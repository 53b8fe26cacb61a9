//! Whether a server can be reached: its listening tasks, and how there come to be some again.

use std::{
    fmt,
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use parking_lot::Mutex;
use tokio::{net::TcpListener, task::JoinHandle};

use crate::{
    config::Config,
    net::{listener, socket::SocketTask, stream::Stream},
    start::StartError,
    turn::time_control,
    universe::state::Shared,
};

/// What listens already; called, it accepts.
pub(crate) type Serve = Box<dyn FnOnce() -> Vec<JoinHandle<()>> + Send>;

type Bind = Arc<dyn Fn() -> Result<Serve, StartError> + Send + Sync>;

/// What runs while a server is up.
#[derive(Default)]
pub(crate) struct Reachability {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    state: State,
    /// Listens again, on the same port.
    bind: Option<Bind>,
}

enum State {
    /// Reachable, by these tasks.
    Up(Vec<JoinHandle<()>>),
    /// Not reachable for now, but by who opens it again, at a side entrance.
    Down(Option<Side>),
    /// Never again.
    Stopped,
}

/// A side entrance.
#[cfg_attr(
    not(feature = "control"),
    expect(dead_code, reason = "only control opens one")
)]
struct Side {
    address: SocketAddr,
    /// Listens there.
    task: JoinHandle<()>,
}

impl Default for State {
    fn default() -> Self {
        Self::Down(None)
    }
}

/// What a door was found to be.
pub(crate) enum Found {
    Up,
    /// Down; what listens again.
    Down(Bind),
    Stopped,
}

impl Reachability {
    /// Says how the server listens again once it is down.
    pub(crate) fn hang(
        &self,
        bind: impl Fn() -> Result<Serve, StartError> + Send + Sync + 'static,
    ) {
        self.inner.lock().bind = Some(Arc::new(bind));
    }

    pub(crate) fn look(&self) -> Found {
        let inner = self.inner.lock();
        match (&inner.state, &inner.bind) {
            (State::Up(_), _) => Found::Up,
            (State::Down(_), Some(bind)) => Found::Down(Arc::clone(bind)),
            (State::Down(_), None) | (State::Stopped, _) => Found::Stopped,
        }
    }

    /// Is up by these tasks; they end if there is no way back. The side entrance ends, which is
    /// given to be waited for.
    pub(crate) fn set_up(&self, tasks: Vec<JoinHandle<()>>) -> Vec<JoinHandle<()>> {
        let mut inner = self.inner.lock();
        if matches!(inner.state, State::Stopped) {
            abort(&tasks);
            return Vec::new();
        }
        std::mem::replace(&mut inner.state, State::Up(tasks)).end()
    }

    /// While it is down, this task listens there, unless there is one that does: where it is.
    /// Nowhere if it is not down; the task has ended then.
    #[cfg(feature = "control")]
    pub(crate) fn set_side(&self, address: SocketAddr, task: JoinHandle<()>) -> Option<SocketAddr> {
        let mut inner = self.inner.lock();
        match &mut inner.state {
            State::Down(side @ None) => {
                *side = Some(Side { address, task });
                Some(address)
            }
            State::Down(Some(Side { address, .. })) => {
                task.abort();
                Some(*address)
            }
            State::Up(_) | State::Stopped => {
                task.abort();
                None
            }
        }
    }

    /// Ends the tasks, which are given to be waited for; `for_ever` if it never comes up again.
    pub(crate) fn close(&self, for_ever: bool) -> Vec<JoinHandle<()>> {
        let mut inner = self.inner.lock();
        if for_ever {
            // It holds what holds the door.
            inner.bind = None;
            return std::mem::replace(&mut inner.state, State::Stopped).end();
        }
        match inner.state {
            State::Up(_) => std::mem::take(&mut inner.state).end(),
            // Nothing to close; the side entrance stays.
            State::Down(_) | State::Stopped => Vec::new(),
        }
    }
}

impl State {
    /// Ends the tasks, which are given to be waited for.
    fn end(self) -> Vec<JoinHandle<()>> {
        let tasks = match self {
            Self::Up(tasks) => tasks,
            Self::Down(side) => side.into_iter().map(|side| side.task).collect(),
            Self::Stopped => Vec::new(),
        };
        abort(&tasks);
        tasks
    }
}

impl fmt::Debug for Reachability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.inner.lock().state {
            State::Up(_) => "up",
            State::Down(_) => "down",
            State::Stopped => "stopped",
        };
        f.debug_tuple("Reachability").field(&state).finish()
    }
}

fn abort(tasks: &[JoinHandle<()>]) {
    for task in tasks {
        task.abort();
    }
}

/// Sockets that listen, before anybody accepts.
pub(crate) struct Listeners {
    plain: Option<TcpListener>,
    #[cfg(feature = "tls")]
    secure: Option<(TcpListener, tokio_rustls::TlsAcceptor)>,
}

impl Listeners {
    /// Listens where the settings say, and writes the real ports there.
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

    /// Accepts from here on, on the calling runtime; time passes too.
    /// `spawn` starts the task of a connection.
    pub(crate) fn serve(
        self,
        shared: &Arc<Shared>,
        spawn: &(impl Fn(SocketTask, IpAddr) + Clone + Send + 'static),
    ) -> Vec<JoinHandle<()>> {
        let mut tasks = Vec::new();
        if let Some(listener) = self.plain {
            tracing::info!(address = %shared.config.listen, "listening");
            tasks.push(tokio::spawn(listener::accept(
                listener,
                Arc::clone(shared),
                Stream::Plain,
                spawn.clone(),
            )));
        }
        #[cfg(feature = "tls")]
        if let Some((listener, acceptor)) = self.secure {
            let wrap = move |stream| {
                Stream::Tls(Box::new(crate::net::tls::TlsStream::accept(
                    &acceptor, stream,
                )))
            };
            tasks.push(tokio::spawn(listener::accept(
                listener,
                Arc::clone(shared),
                wrap,
                spawn.clone(),
            )));
        }
        tasks.push(tokio::spawn(time_control::run(Arc::clone(shared))));
        tasks
    }
}

/// Listens; says where, the real port included.
pub(crate) fn bind(
    address: SocketAddr,
    config: &Config,
) -> Result<(TcpListener, SocketAddr), StartError> {
    let refused = |source| StartError::Listen { address, source };
    let listener = listener::bind(address, config.listen_backlog).map_err(refused)?;
    let address = listener.local_addr().map_err(refused)?;
    Ok((listener, address))
}
