//! The transport of a connection: a TCP socket, or TLS over one (`tls`).
//!
//! Source: `docs/zookeeper-protocol.md` section 9.12.
//!
//! An enum and not a trait object, so that TLS support costs plain TCP nothing.

#[cfg(feature = "tls")]
pub mod tls;

use std::{
    future::Future,
    io,
    pin::{Pin, pin},
    task::{Context, Poll},
};
#[cfg(feature = "control")]
use std::{net::SocketAddr, task::ready};

use bytes::BytesMut;
use tokio::{
    io::{AsyncReadExt as _, AsyncWrite as _},
    net::TcpStream,
};

#[cfg(feature = "tls")]
use crate::stream::tls::TlsStream;

/// The maximum number of bytes that [`Stream::poll_read_apart`] reads at once.
#[cfg(feature = "control")]
const READ_APART_BYTES: usize = 4 << 10;

#[derive(Debug)]
pub enum Stream {
    Plain(TcpStream),
    /// Boxed, because it is large and the task of a connection must be small.
    #[cfg(feature = "tls")]
    Tls(Box<TlsStream>),
}

impl Stream {
    #[inline]
    pub(crate) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut BytesMut,
    ) -> Poll<io::Result<usize>> {
        match self {
            Self::Plain(stream) => pin!(stream.read_buf(buffer)).poll(cx),
            #[cfg(feature = "tls")]
            Self::Tls(stream) => stream.poll_read(cx, buffer),
        }
    }

    /// Reads like `poll_read`, for callers that are not on the path of every request. A
    /// separate function, so that `poll_read` has only one caller, where it is inlined.
    #[cfg(feature = "control")]
    pub fn poll_read_apart(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut BytesMut,
    ) -> Poll<io::Result<usize>> {
        match self {
            Self::Plain(stream) => {
                let mut bytes = [0; READ_APART_BYTES];
                loop {
                    ready!(stream.poll_read_ready(cx))?;
                    match stream.try_read(&mut bytes) {
                        // Not ready any more; `poll_read_ready` wakes the task when it is again.
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                        read => {
                            let length = read?;
                            buffer.extend_from_slice(&bytes[..length]);
                            return Poll::Ready(Ok(length));
                        }
                    }
                }
            }
            #[cfg(feature = "tls")]
            Self::Tls(stream) => {
                buffer.reserve(READ_APART_BYTES);
                stream.poll_read(cx, buffer)
            }
        }
    }

    pub fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self {
            Self::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            #[cfg(feature = "tls")]
            Self::Tls(stream) => stream.poll_write(cx, bytes),
        }
    }

    /// Waits until everything written has left the process: TLS may buffer some of it.
    pub fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Plain(stream) => Pin::new(stream).poll_flush(cx),
            #[cfg(feature = "tls")]
            Self::Tls(stream) => stream.poll_flush(cx),
        }
    }

    /// Returns the local address of a plain TCP connection.
    #[cfg(feature = "control")]
    pub fn plain_addr(&self) -> Option<SocketAddr> {
        match self {
            Self::Plain(stream) => stream.local_addr().ok(),
            #[cfg(feature = "tls")]
            Self::Tls(_) => None,
        }
    }

    /// Shuts down the writing side.
    #[cfg(feature = "control")]
    pub fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            #[cfg(feature = "tls")]
            Self::Tls(stream) => {
                stream.close(cx);
                Poll::Ready(Ok(()))
            }
        }
    }
}
