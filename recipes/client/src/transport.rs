//! Connections to servers.

use std::{future::Future, io, pin::Pin};

use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
};

/// The stream of replies.
pub type Reader = Box<dyn AsyncRead + Send + Unpin>;

/// The stream of requests.
pub type Writer = Box<dyn AsyncWrite + Send + Unpin>;

/// A future that connects.
pub type Connecting = Pin<Box<dyn Future<Output = io::Result<(Reader, Writer)>> + Send>>;

/// Connects to servers: over TCP, within a process, or through a simulated network.
///
/// # Examples
/// An in-process server needs no socket:
/// ```
/// # use minikeeper_client::{Client, Connecting, Transport};
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let server = minikeeper::Server::builder().start().await?;
/// let transport = move |_host: &str| -> Connecting {
///     let (reader, writer) = tokio::io::split(server.local());
///     Box::pin(async move { Ok((Box::new(reader) as _, Box::new(writer) as _)) })
/// };
/// let client = Client::builder("in-process")?.transport(transport).connect().await?;
/// assert!(client.exists("/").await?.is_some());
/// # Ok(()) }
/// ```
pub trait Transport: Send + 'static {
    /// Connects to a server, given as `host:port` in the connect string. The caller limits the
    /// time.
    fn connect(&mut self, host: &str) -> Connecting;
}

impl<F: FnMut(&str) -> Connecting + Send + 'static> Transport for F {
    fn connect(&mut self, host: &str) -> Connecting {
        self(host)
    }
}

/// Plain TCP with `TCP_NODELAY`. The default.
///
/// # Examples
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = minikeeper::Server::builder().start().await?;
/// # let address = server.connect_string();
/// use minikeeper_client::{Client, Tcp};
///
/// // The default, set explicitly.
/// let client = Client::builder(&address)?.transport(Tcp).connect().await?;
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Tcp;

impl Transport for Tcp {
    fn connect(&mut self, host: &str) -> Connecting {
        let host = host.to_owned();
        Box::pin(async move {
            let (reader, writer) = open(&host).await?.into_split();
            Ok((Box::new(reader) as Reader, Box::new(writer) as Writer))
        })
    }
}

/// Returns the name or address, without brackets, and the port of a server given as `host:port`.
pub(crate) fn name_and_port(host: &str) -> io::Result<(&str, u16)> {
    let parts = host.rsplit_once(':').and_then(|(name, port)| {
        let inner = name.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
        Some((inner.unwrap_or(name), port.parse().ok()?))
    });
    parts.ok_or_else(|| {
        let text = format!("server {host:?} is not of the form host:port");
        io::Error::new(io::ErrorKind::InvalidInput, text)
    })
}

pub(crate) async fn open(host: &str) -> io::Result<TcpStream> {
    // In this form the name service also understands `fe80::1%eth0`.
    let stream = TcpStream::connect(name_and_port(host)?).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_are_not_part_of_an_address() {
        assert_eq!(name_and_port("zk1:2181").unwrap(), ("zk1", 2181));
        let zoned = name_and_port("[fe80::1%eth0]:1").unwrap();
        assert_eq!(zoned, ("fe80::1%eth0", 1));
        for wrong in ["zk1", "zk1:", "zk1:x", "zk1:65536", ""] {
            assert!(name_and_port(wrong).is_err(), "{wrong}");
        }
    }

    #[tokio::test]
    async fn e4_tcp_nodelay_is_set() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        assert!(open(&address).await.unwrap().nodelay().unwrap());
    }
}
