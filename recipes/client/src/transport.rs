//! Connections to servers.

use std::{
    future::{Future, poll_fn},
    io,
    net::SocketAddr,
    pin::Pin,
    task::Poll,
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpStream, lookup_host},
    time::{Sleep, sleep},
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

/// Plain TCP with `TCP_NODELAY`. The default. If a name has several addresses, it connects to the one
/// that answers first, and begins with the next one every 250 ms.
///
/// # Examples
/// ```
/// # minikeeper_test_kit::example(async |server, _| {
/// # let address = server.connect_string();
/// use minikeeper_client::{Client, Tcp};
///
/// // The default, set explicitly.
/// let client = Client::builder(&address)?.transport(Tcp).connect().await?;
/// # Ok(()) });
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
    let addresses = lookup_host(name_and_port(host)?).await?.collect();
    let stream = first(addresses, TcpStream::connect).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// How long an address of a name is tried alone, before the next one is tried too.
///
/// Source: RFC 8305, section 5.
const NEXT_ADDRESS: Duration = Duration::from_millis(250);

/// Connects to the address that answers first. An address that drops packets does not use up the
/// time for the others: the next one is tried after [`NEXT_ADDRESS`], or at once after a refusal.
async fn first<T, F: Future<Output = io::Result<T>>>(
    addresses: Vec<SocketAddr>,
    connect: impl Fn(SocketAddr) -> F,
) -> io::Result<T> {
    let mut later = addresses.into_iter();
    let mut pending: Vec<Pin<Box<F>>> = Vec::new();
    let mut pause: Option<Pin<Box<Sleep>>> = None;
    let mut refusal = None;
    poll_fn(|cx| {
        loop {
            let mut at = 0;
            while let Some(attempt) = pending.get_mut(at) {
                match attempt.as_mut().poll(cx) {
                    Poll::Ready(Ok(stream)) => return Poll::Ready(Ok(stream)),
                    Poll::Ready(Err(error)) => {
                        refusal = Some(error);
                        drop(pending.remove(at));
                        pause = None;
                    }
                    Poll::Pending => at += 1,
                }
            }
            let is_due = pause
                .as_mut()
                .is_none_or(|pause| pause.as_mut().poll(cx).is_ready());
            if is_due && let Some(address) = later.next() {
                pending.push(Box::pin(connect(address)));
                pause = Some(Box::pin(sleep(NEXT_ADDRESS)));
                continue;
            }
            if pending.is_empty() {
                let none = || io::Error::new(io::ErrorKind::NotFound, "the name has no address");
                return Poll::Ready(Err(refusal.take().unwrap_or_else(none)));
            }
            return Poll::Pending;
        }
    })
    .await
}

#[cfg(test)]
mod tests {
    use tokio::time::timeout;

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

    #[tokio::test(start_paused = true)]
    async fn address_that_does_not_answer_delays_the_next_one_a_little() {
        // It was tried alone until the limit, 15 s, and first in each attempt.
        let address = |last| SocketAddr::from(([10, 0, 0, last], 2181));
        let connect = |address: SocketAddr| async move {
            match address.to_string().split(':').next() {
                Some("10.0.0.1") => std::future::pending().await,
                Some("10.0.0.2") => Err(io::ErrorKind::ConnectionRefused.into()),
                _ => Ok(address),
            }
        };
        let clock = crate::clock::Clock::start();
        for (tried, expected, after) in [
            (&[1, 3][..], Some(3), NEXT_ADDRESS),
            (&[1, 1, 1, 3], Some(3), 3 * NEXT_ADDRESS),
            (&[2, 3], Some(3), Duration::ZERO),
            (&[1, 2, 3], Some(3), NEXT_ADDRESS),
            (&[2, 2], None, Duration::ZERO),
            (&[], None, Duration::ZERO),
        ] {
            let begun_at = clock.now();
            let addresses = tried.iter().map(|last| address(*last)).collect();
            let found = timeout(Duration::from_secs(15), first(addresses, connect));
            let found = found.await.expect("it does not hang").ok();
            assert_eq!(found, expected.map(address), "{tried:?}");
            // Tokio's clock has whole milliseconds.
            let took = clock.now() - begun_at;
            let slack = Duration::from_millis(10);
            assert!(after <= took && took < after + slack, "{tried:?}: {took:?}");
        }
    }

    #[tokio::test]
    async fn e4_tcp_nodelay_is_set() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        assert!(open(&address).await.unwrap().nodelay().unwrap());
    }
}
