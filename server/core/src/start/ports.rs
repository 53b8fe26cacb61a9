//! Binds the server's ports, and starts the tasks that accept connections.

use std::{io, net::SocketAddr, sync::Arc};

use tokio::{net::TcpListener, task::JoinSet};

use crate::{
    config::Config,
    ensemble::ServerAddresses,
    net::listener,
    start::StartError,
    state::{
        UniverseState,
        reachability::{HeldPorts, Reachability, UpTasks},
        time_control,
    },
    stream::Stream,
};

/// How often a server looks for free ports in a row.
const FREE_PORTS_ATTEMPTS_MAX: u32 = 100;

/// The listening sockets of one server of the ensemble, which do not accept connections yet.
pub struct Listeners {
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
    ///
    /// # Errors
    /// The address that cannot be bound.
    pub fn bind_all(config: &mut Config) -> Result<(Vec<Self>, Vec<ServerAddresses>), StartError> {
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

    /// Listens on the ports of a server of the ensemble that was down.
    ///
    /// # Errors
    /// The address that cannot be bound.
    pub fn bind_again(
        reachability: &Reachability,
        addresses: ServerAddresses,
        config: &Config,
    ) -> Result<Self, StartError> {
        let listening = Self::bind(addresses, config, reachability.held());
        if listening.is_err() {
            reachability.hold_ports([addresses]);
        }
        listening.map(|(listeners, _)| listeners)
    }

    /// Starts accepting connections for a server of the ensemble, on the calling runtime.
    pub fn accept(self, shared: &Arc<UniverseState>, server: u8) -> JoinSet<()> {
        let mut tasks = JoinSet::new();
        if let Some(listener) = self.plain {
            if let Ok(address) = listener.local_addr() {
                tracing::info!(%address, "listening");
            }
            let shared = Arc::clone(shared);
            let plain = listener::accept(listener, shared, Stream::Plain, server);
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
            tasks.spawn(listener::accept(listener, Arc::clone(shared), wrap, server));
        }
        tasks
    }
}

/// Starts accepting connections and handling deadlines, on the calling runtime. A server of the
/// ensemble without sockets is down.
pub fn serve(
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
///
/// # Errors
/// What the system says.
pub fn listen(
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
