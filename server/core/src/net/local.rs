//! An in-process connection: the client's bytes go straight into a turn, without a socket or a
//! task.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::{
    net::connection::{Connection, Flow},
    outbox::Registered,
    peer::Peer,
    state::{UniverseState, scratch::READ_BYTES},
};

/// The logged reason when a client closes its connection.
const LEFT: &str = "closed by the client";

/// The client's end of an in-process connection.
///
/// Carries the same bytes as a TCP connection. A request is served while it is written, on the
/// writing task. Reading returns replies and waits for events. After the server has closed the
/// connection, reading returns end of file and writing fails with [`io::ErrorKind::BrokenPipe`].
#[derive(Debug)]
pub struct LocalStream {
    /// Dropped as soon as either side has closed, so that session and watches do not wait for the
    /// stream to be dropped.
    connection: Option<Connection>,
    /// Output for the client.
    replies: Vec<u8>,
    /// The start of the part that the client has not read yet.
    replies_from: usize,
    /// A reader that waits for output.
    reader: Option<Waker>,
    /// A writer that waits until replies are read, or a delay is over.
    writer: Option<Waker>,
}

impl LocalStream {
    /// Connects to a universe, unless a fault refuses it: then the stream is at its end.
    pub fn new(shared: &Arc<UniverseState>) -> Self {
        let is_refused = shared.turns.faults.are_set() && shared.turns.faults.refuse(&Peer::Local);
        let connection = (!is_refused).then(|| {
            let connection = Connection::new(Arc::clone(shared), Peer::Local, 0);
            shared.handshakes.add(&connection.outbox, &shared.turns);
            connection
        });
        Self {
            connection,
            replies: Vec::new(),
            replies_from: 0,
            reader: None,
            writer: None,
        }
    }

    const fn unread(&self) -> usize {
        self.replies.len() - self.replies_from
    }

    fn close(&mut self, why: impl std::fmt::Display) {
        if let Some(connection) = self.connection.take() {
            connection.note_closed(&why);
        }
        for waiting in [self.reader.take(), self.writer.take()] {
            waiting.into_iter().for_each(Waker::wake);
        }
    }

    /// Serves `input`, or left-over input if that is empty, and keeps the output for the reader.
    /// Returns how much of `input` was taken.
    fn serve(&mut self, input: &[u8]) -> usize {
        let Some(connection) = &mut self.connection else {
            return 0;
        };
        let shared = Arc::clone(&connection.shared);
        let mut scratch = shared.server.scratches.take();
        let taken = input.len().min(READ_BYTES);
        let flow = if taken == 0 {
            connection.serve_rest(&mut scratch)
        } else {
            connection
                .read_buffer(&mut scratch)
                .extend_from_slice(&input[..taken]);
            connection.serve_read(&mut scratch)
        };
        // Frees what was read even if the reader never quite catches up.
        if self.replies_from > self.replies.len() / 2 {
            self.replies.drain(..self.replies_from);
            self.replies_from = 0;
        }
        self.replies.append(&mut scratch.out);
        shared.server.scratches.give(scratch);
        if let Flow::Close(why) = flow {
            self.close(why);
        } else if self.unread() > 0
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
            let Some(connection) = &this.connection else {
                return Poll::Ready(Ok(()));
            };
            if connection.has_rest() {
                this.serve(&[]);
                if this.unread() > 0 {
                    continue;
                }
            }
            let Some(connection) = &this.connection else {
                continue;
            };
            this.reader = Some(cx.waker().clone());
            if connection.outbox.register(cx.waker()) == Registered::Quiet {
                if connection.is_delay_over() {
                    continue;
                }
                if connection.is_left && !connection.is_delayed() {
                    this.close(LEFT);
                    continue;
                }
                return Poll::Pending;
            }
            this.replies.clear();
            this.replies_from = 0;
            if let Some(why) = connection.outbox.drain(&mut this.replies) {
                this.close(why);
            }
        }
    }
}

impl AsyncWrite for LocalStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        from: &[u8],
    ) -> Poll<io::Result<usize>> {
        let Some(connection) = &self.connection else {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        };
        if connection.has_rest() {
            if connection.is_left {
                return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
            }
            if connection.is_write_delayed(cx.waker()) {
                self.writer = Some(cx.waker().clone());
                return Poll::Pending;
            }
        }
        if self.unread() > connection.shared.config.write_backlog_bytes_max {
            self.writer = Some(cx.waker().clone());
            return Poll::Pending;
        }
        Poll::Ready(Ok(self.serve(from)))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// Works like half-closing a socket: for the server, the connection ends.
    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Some(connection) = &mut self.connection {
            connection.is_left = true;
            // A socket is not read during a delay either.
            if connection.is_delayed() {
                return Poll::Ready(Ok(()));
            }
        }
        self.close(LEFT);
        Poll::Ready(Ok(()))
    }
}

/// Works like closing a socket: requests written before are served.
impl Drop for LocalStream {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            connection.note_closed(&LEFT);
            connection.finish();
        }
    }
}
