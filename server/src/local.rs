//! An in-process connection: the bytes of a client go straight into a turn, without a socket and
//! without a task.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::{
    connection::{Connection, Flow},
    outbox::Registered,
    scratch::READ_BYTES,
    shared::Shared,
};

/// A client's end of a connection inside the process.
///
/// Speaks the same bytes as a TCP connection. A request is served while it is being written, on
/// the task that writes it; reading gives the replies, and waits for events. After the server has
/// closed the connection, reading ends and writing fails with [`io::ErrorKind::BrokenPipe`].
#[derive(Debug)]
pub struct LocalStream {
    connection: Connection,
    /// What the client has not read yet.
    replies: Vec<u8>,
    replies_from: usize,
    /// Whether the server has closed the connection.
    is_closed: bool,
    /// A reader that waits while another task writes.
    reader: Option<Waker>,
    /// A writer that waits until replies are read.
    writer: Option<Waker>,
}

impl LocalStream {
    pub(crate) fn new(shared: &Arc<Shared>) -> Self {
        let connection = Connection::new(Arc::clone(shared));
        shared.fresh.add(&connection.outbox, &shared.turns);
        Self {
            connection,
            replies: Vec::new(),
            replies_from: 0,
            is_closed: false,
            reader: None,
            writer: None,
        }
    }

    const fn unread(&self) -> usize {
        self.replies.len() - self.replies_from
    }

    fn follow(&mut self, flow: Flow) {
        if let Flow::Close(fault) = flow {
            tracing::debug!(conn = self.connection.id.0, why = %fault, "connection closed");
            self.is_closed = true;
        }
    }

    /// Serves input, from `input` or left over, and keeps the output for the reader.
    fn serve(&mut self, input: &[u8]) -> usize {
        let shared = Arc::clone(&self.connection.shared);
        let mut scratch = shared.scratches.take();
        let taken = input.len().min(READ_BYTES);
        let flow = if taken == 0 {
            self.connection.serve_rest(&mut scratch)
        } else {
            self.connection
                .read_buffer(&mut scratch)
                .extend_from_slice(&input[..taken]);
            self.connection.serve_read(&mut scratch)
        };
        self.follow(flow);
        if self.unread() == 0 {
            self.replies.clear();
            self.replies_from = 0;
        }
        self.replies.append(&mut scratch.out);
        shared.scratches.give(scratch);
        if (self.unread() > 0 || self.is_closed)
            && let Some(reader) = self.reader.take()
        {
            reader.wake();
        }
        taken
    }
}

impl AsyncRead for LocalStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        loop {
            if this.unread() > 0 {
                let count = this.unread().min(into.remaining());
                into.put_slice(&this.replies[this.replies_from..][..count]);
                this.replies_from += count;
                if let Some(writer) = this.writer.take() {
                    writer.wake();
                }
                return Poll::Ready(Ok(()));
            }
            if this.is_closed {
                return Poll::Ready(Ok(()));
            }
            if this.connection.has_rest() {
                this.serve(&[]);
                if this.unread() > 0 || this.is_closed {
                    continue;
                }
            }
            this.reader = Some(cx.waker().clone());
            if this.connection.outbox.register(cx.waker()) == Registered::Quiet {
                return Poll::Pending;
            }
            this.replies.clear();
            this.replies_from = 0;
            this.is_closed = this.connection.outbox.drain(&mut this.replies).is_some();
        }
    }
}

impl AsyncWrite for LocalStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        from: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.is_closed {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        if self.unread() > self.connection.shared.config.write_backlog_bytes_max {
            self.writer = Some(cx.waker().clone());
            return Poll::Pending;
        }
        Poll::Ready(Ok(self.serve(from)))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// As half-closing a socket: the server takes it as the end of the connection.
    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.is_closed = true;
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
        Poll::Ready(Ok(()))
    }
}
