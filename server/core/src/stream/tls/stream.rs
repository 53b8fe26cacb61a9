//! One connection over TLS: its handshake, then its bytes.

use std::{
    fmt,
    future::Future,
    io::{self, Write as _},
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
pub struct TlsStream {
    state: TlsState,
    frames: Frames,
}

enum TlsState {
    Handshake(Accept<TcpStream>),
    Open(server::TlsStream<TcpStream>),
}

impl fmt::Debug for TlsStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.state {
            TlsState::Handshake(_) => "TlsStream(handshake)",
            TlsState::Open(_) => "TlsStream(open)",
        })
    }
}

impl TlsStream {
    pub(crate) fn accept(acceptor: &TlsAcceptor, stream: TcpStream) -> Self {
        Self {
            state: TlsState::Handshake(acceptor.accept(stream)),
            frames: Frames::default(),
        }
    }

    /// Continues the handshake. The call that completes it returns the subject of the client's
    /// certificate, if the client sent one; later calls return `None`.
    pub(crate) fn poll_handshake(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<Option<String>>> {
        let TlsState::Handshake(accept) = &mut self.state else {
            return Poll::Ready(Ok(None));
        };
        let stream = ready!(Pin::new(accept).poll(cx))?;
        let certificates = stream.get_ref().1.peer_certificates();
        let subject = match certificates.and_then(<[_]>::first) {
            None => None,
            Some(certificate) => {
                let certificate = EndEntityCert::try_from(certificate).map_err(io::Error::other)?;
                let no_name = || io::Error::other("cannot parse the subject of the certificate");
                Some(subject::rfc2253(certificate.subject()).ok_or_else(no_name)?)
            }
        };
        self.state = TlsState::Open(stream);
        Poll::Ready(Ok(subject))
    }

    pub(crate) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut BytesMut,
    ) -> Poll<io::Result<usize>> {
        let TlsState::Open(stream) = &mut self.state else {
            return Poll::Pending;
        };
        match ready!(pin!(stream.read_buf(buffer)).poll(cx)) {
            // Frames have a length prefix, so a missing close_notify cannot hide a truncation.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Poll::Ready(Ok(0)),
            result => Poll::Ready(result),
        }
    }

    /// Encrypts as much as rustls buffers, each frame in its own records. [`poll_flush`] sends all
    /// of them with one call.
    ///
    /// Clients rely on separate records, because ZooKeeper writes them: kazoo reads one frame and
    /// then waits for its socket, but OpenSSL decrypts whole records and so has already taken a
    /// second frame of the same record off the socket.
    ///
    /// [`poll_flush`]: Self::poll_flush
    pub(crate) fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let TlsState::Open(stream) = &mut self.state else {
            return Poll::Pending;
        };
        let mut written = 0;
        while written < bytes.len() {
            let piece = self.frames.piece(&bytes[written..]);
            let taken = stream.get_mut().1.writer().write(piece)?;
            self.frames.advance(taken);
            written += taken;
            // The buffer is full.
            if taken < piece.len() {
                match Pin::new(&mut *stream).poll_flush(cx) {
                    Poll::Pending if written > 0 => break,
                    result => ready!(result)?,
                }
            }
        }
        Poll::Ready(Ok(written))
    }

    pub(crate) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.state {
            TlsState::Open(stream) => Pin::new(stream).poll_flush(cx),
            TlsState::Handshake(_) => Poll::Ready(Ok(())),
        }
    }

    /// Sends close_notify if the socket takes it at once; does not wait.
    pub(crate) fn close(&mut self, cx: &mut Context<'_>) {
        if let TlsState::Open(stream) = &mut self.state {
            let _ = Pin::new(stream).poll_shutdown(cx);
        }
    }
}

/// Finds where frames begin in the bytes that a connection sends.
#[derive(Default)]
struct Frames {
    /// The length of the rest of the current frame. Unit: bytes.
    left: usize,
}

impl Frames {
    /// Returns the start of `bytes`, up to the end of its first frame.
    ///
    /// Replies to four-letter words and HTTP are not frames. Their first four bytes read as a
    /// length of more than 500 MB (160 MB if they begin with a newline), so they stay in one piece.
    fn piece<'bytes>(&mut self, bytes: &'bytes [u8]) -> &'bytes [u8] {
        if self.left == 0 {
            self.left = match bytes.first_chunk() {
                Some(length) => {
                    let length = usize::try_from(u32::from_be_bytes(*length)).unwrap_or(usize::MAX);
                    length.saturating_add(size_of::<u32>())
                }
                None => bytes.len(),
            };
        }
        &bytes[..self.left.min(bytes.len())]
    }

    /// Records that this much of a piece has been sent.
    const fn advance(&mut self, taken: usize) {
        self.left -= taken;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Several frames went into one record: kazoo waited for its socket while the second frame was
    /// already decrypted in OpenSSL.
    #[test]
    fn piece_ends_with_its_frame_however_little_is_taken() {
        let lengths = [0_u32, 1, 20_000, 0, 70_000, 3];
        let mut bytes = Vec::new();
        let mut ends = Vec::new();
        for length in lengths {
            bytes.extend_from_slice(&length.to_be_bytes());
            bytes.resize(bytes.len() + usize::try_from(length).unwrap(), 7);
            ends.push(bytes.len());
        }
        for taken_max in [1, 3, 4, 5, 16_384, usize::MAX] {
            let mut frames = Frames::default();
            let mut written = 0;
            while written < bytes.len() {
                let piece = frames.piece(&bytes[written..]).len();
                let end = ends.iter().find(|end| **end > written).unwrap();
                assert_eq!(written + piece, *end, "{taken_max} at a time");
                let taken = piece.min(taken_max);
                frames.advance(taken);
                written += taken;
            }
        }
    }

    #[test]
    fn text_that_is_no_frame_stays_in_one_piece() {
        for text in ["imok", "HTTP/1.1 200 OK\r\n", "\nno", ""] {
            assert_eq!(Frames::default().piece(text.as_bytes()), text.as_bytes());
        }
        let mut frames = Frames::default();
        let text = "Zookeeper version: 3.9.5";
        frames.piece(text.as_bytes());
        frames.advance(4);
        assert_eq!(frames.piece(&text.as_bytes()[4..]), &text.as_bytes()[4..]);
    }
}
