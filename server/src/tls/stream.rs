//! One connection over TLS: its handshake, then its bytes.

use std::{
    fmt,
    future::Future,
    io,
    pin::{Pin, pin},
    task::{Context, Poll, ready},
};

use bytes::BytesMut;
use tokio::{
    io::{AsyncReadExt as _, AsyncWrite as _},
    net::TcpStream,
};
use tokio_rustls::{Accept, TlsAcceptor, server};
use webpki::EndEntityCert;

use super::subject;

/// A TCP connection with TLS over it.
pub(crate) struct TlsStream {
    state: State,
}

enum State {
    Handshake(Accept<TcpStream>),
    Open(server::TlsStream<TcpStream>),
}

impl fmt::Debug for TlsStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.state {
            State::Handshake(_) => "TlsStream(handshake)",
            State::Open(_) => "TlsStream(open)",
        })
    }
}

impl TlsStream {
    pub(crate) fn accept(acceptor: &TlsAcceptor, stream: TcpStream) -> Self {
        Self {
            state: State::Handshake(acceptor.accept(stream)),
        }
    }

    /// Goes on with the handshake. The call that ends it gives the subject of the client's
    /// certificate, if one was asked for; later ones give none.
    pub(crate) fn poll_handshake(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<Option<String>>> {
        let State::Handshake(accept) = &mut self.state else {
            return Poll::Ready(Ok(None));
        };
        let stream = ready!(Pin::new(accept).poll(cx))?;
        let certificates = stream.get_ref().1.peer_certificates();
        let subject = match certificates.and_then(<[_]>::first) {
            None => None,
            Some(certificate) => {
                let certificate = EndEntityCert::try_from(certificate).map_err(io::Error::other)?;
                let no_name = || io::Error::other("the certificate's subject is no name");
                Some(subject::rfc2253(certificate.subject()).ok_or_else(no_name)?)
            }
        };
        self.state = State::Open(stream);
        Poll::Ready(Ok(subject))
    }

    pub(crate) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut BytesMut,
    ) -> Poll<io::Result<usize>> {
        let State::Open(stream) = &mut self.state else {
            return Poll::Pending;
        };
        match ready!(pin!(stream.read_buf(buffer)).poll(cx)) {
            // Frames tell their length, so an end without a farewell cuts nothing off unnoticed.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Poll::Ready(Ok(0)),
            result => Poll::Ready(result),
        }
    }

    pub(crate) fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut self.state {
            State::Open(stream) => Pin::new(stream).poll_write(cx, bytes),
            State::Handshake(_) => Poll::Pending,
        }
    }

    pub(crate) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.state {
            State::Open(stream) => Pin::new(stream).poll_flush(cx),
            State::Handshake(_) => Poll::Ready(Ok(())),
        }
    }

    /// Says farewell, as far as the socket takes it at once: nobody waits for that.
    pub(crate) fn close(&mut self, cx: &mut Context<'_>) {
        if let State::Open(stream) = &mut self.state {
            let _ = Pin::new(stream).poll_shutdown(cx);
        }
    }
}
