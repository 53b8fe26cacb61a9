//! A connection's bytes, as hyper wants them: those that were read already first.

use std::{
    future::Future as _,
    io,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::{Buf as _, BytesMut};
use hyper::rt::{Read, ReadBufCursor, Write};
use tokio::time::Sleep;

use crate::net::stream::Stream;

/// How long a client may leave an answer unread.
const WRITE_PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct Carrier {
    stream: Stream,
    /// What was read and not handed on.
    read: BytesMut,
    /// Runs while the client reads nothing.
    stalled: Option<Pin<Box<Sleep>>>,
}

impl Carrier {
    pub(crate) const fn new(stream: Stream, read: BytesMut) -> Self {
        Self {
            stream,
            read,
            stalled: None,
        }
    }
}

impl Read for Carrier {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        mut into: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let Self { stream, read, .. } = &mut *self;
        if read.is_empty() {
            ready!(stream.poll_read_apart(cx, read))?;
        }
        let count = read.len().min(into.remaining());
        into.put_slice(&read[..count]);
        read.advance(count);
        Poll::Ready(Ok(()))
    }
}

impl Write for Carrier {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if let Poll::Ready(written) = self.stream.poll_write(cx, bytes) {
            self.stalled = None;
            return Poll::Ready(written);
        }
        let stalled = self
            .stalled
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(WRITE_PATIENCE)));
        ready!(stalled.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream.poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream.poll_shutdown(cx)
    }
}
