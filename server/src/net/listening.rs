//! Makes a server reachable: binds where the settings say, and starts what serves there.

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use tokio::{net::TcpListener, task::JoinHandle};

use crate::{
    config::Config,
    net::{listener, socket::SocketTask, stream::Stream},
    start::StartError,
    turn::timekeeper,
    universe::state::Shared,
};

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
        tasks.push(tokio::spawn(timekeeper::run(Arc::clone(shared))));
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
