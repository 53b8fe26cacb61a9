//! Adapts a connection's stream and tokio's timers to hyper.

use std::{
    future::Future,
    io,
    pin::Pin,
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};

use bytes::{Buf as _, BytesMut};
use hyper::rt::{self, Read, ReadBufCursor, Write};
use minikeeper_core::stream::Stream;

/// How long a client may leave an answer unread.
const WRITE_PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct Carrier {
    stream: Stream,
    /// Input that hyper has not taken yet.
    read: BytesMut,
    /// Runs while the client does not read.
    stalled: Option<Pin<Box<tokio::time::Sleep>>>,
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

/// Measures how long a client may take to send the head of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timer;

impl rt::Timer for Timer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn rt::Sleep>> {
        Box::pin(HyperSleep(Box::pin(tokio::time::sleep(duration))))
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn rt::Sleep>> {
        Box::pin(HyperSleep(Box::pin(tokio::time::sleep_until(
            deadline.into(),
        ))))
    }
}

struct HyperSleep(Pin<Box<tokio::time::Sleep>>);

impl Future for HyperSleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.0.as_mut().poll(cx)
    }
}

impl rt::Sleep for HyperSleep {}
