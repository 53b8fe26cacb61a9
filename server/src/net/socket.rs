//! One TCP connection's task: read what is there, serve it, write once.
//!
//! Source: `docs/zookeeper-protocol.md` sections 6.5 and 17.2.
//!
//! A future written by hand, because the thousands that wait must be small, and because one
//! wake-up must cost one read and one write and nothing else.

use std::{
    future::Future,
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use crate::{
    net::{
        connection::{CloseCause, Connection, Flow},
        listener::Slot,
        scratch::Scratch,
        stream::Stream,
    },
    turn::{outbox::Registered, stats::Peer},
    universe::state::UniverseState,
};

/// The number of other connections that a turn wakes before it writes its own reply.
const GO_FIRST_MAX: usize = 4;

/// The size of the reply that is kept for that; larger ones are not worth a copy. Unit: bytes.
const KEPT_OUT_BYTES_MAX: usize = 4 << 10;

/// What a waiting connection costs is mostly this, so what is rarely there lies behind a pointer.
#[derive(Debug)]
pub(crate) struct SocketTask {
    connection: Connection,
    stream: Stream,
    /// Output the socket did not take yet; while there is any, nothing is read.
    unsent: Option<Box<Unsent>>,
    /// The way the connection ends once everything is written.
    closing: Option<Box<End>>,
    #[cfg_attr(
        not(feature = "control"),
        expect(dead_code, reason = "held until it is dropped")
    )]
    slot: Slot,
}

#[derive(Debug)]
struct Unsent {
    bytes: Vec<u8>,
    /// The number of them that the socket has taken.
    sent: usize,
}

/// The way a connection ends.
#[derive(Clone, Copy, Debug)]
pub(crate) enum End {
    CloseCause(CloseCause),
    /// The client closed its side.
    Eof,
    /// The socket failed.
    Lost(io::ErrorKind),
}

#[cfg(any(feature = "control", feature = "tls"))]
impl End {
    /// Returns whether other code must continue with the socket.
    pub(crate) const fn is_http(&self) -> bool {
        #[cfg(feature = "control")]
        if matches!(self, Self::CloseCause(CloseCause::Http)) {
            return true;
        }
        false
    }
}

impl std::fmt::Display for End {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::CloseCause(fault) => fault.fmt(f),
            Self::Eof => f.write_str("closed by the client"),
            Self::Lost(kind) => kind.fmt(f),
        }
    }
}

impl SocketTask {
    pub(crate) fn new(shared: &Arc<UniverseState>, stream: Stream, peer: Peer, slot: Slot) -> Self {
        let connection = Connection::new(Arc::clone(shared), peer);
        shared.handshakes.add(&connection.outbox, &shared.turns);
        Self {
            connection,
            stream,
            unsent: None,
            closing: None,
            slot,
        }
    }

    /// Returns the socket, the input read from it, and its place, for the code that continues.
    #[cfg(feature = "control")]
    pub(crate) fn into_parts(mut self) -> (Stream, bytes::BytesMut, Slot) {
        let read = self.connection.take_read();
        (self.stream, read, self.slot)
    }

    fn run(&mut self, cx: &mut Context<'_>, scratch: &mut Scratch) -> Poll<End> {
        #[cfg(feature = "tls")]
        if let Err(end) = ready!(self.shake_hands(cx)) {
            return Poll::Ready(end);
        }
        // Woken for an event, as nine thousand watchers may be at once: send it before looking
        // for requests.
        self.take_outbox(scratch);
        loop {
            match self.write(cx, scratch) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(error)) => return Poll::Ready(End::Lost(error.kind())),
                // A client that does not read must not keep its connection from being closed.
                Poll::Pending => {
                    return match self.connection.outbox.register_close(cx.waker()) {
                        None => Poll::Pending,
                        Some(why) => Poll::Ready(End::CloseCause(CloseCause::Told(why))),
                    };
                }
            }
            if let Some(end) = self.closing.take() {
                #[cfg(feature = "tls")]
                if let Stream::Tls(stream) = &mut self.stream
                    && !end.is_http()
                {
                    stream.close(cx);
                }
                return Poll::Ready(*end);
            }
            if self.connection.has_rest() {
                let flow = self.connection.serve_rest(scratch);
                self.follow(flow);
                if !scratch.out.is_empty() || self.closing.is_some() {
                    continue;
                }
                if flow == Flow::Delayed {
                    ready!(self.wait_for_delay(cx, scratch));
                    continue;
                }
            }
            match self.read(cx, scratch) {
                Poll::Ready(Ok(0)) => {
                    self.connection.is_left = true;
                    self.closing = Some(Box::new(End::Eof));
                }
                Poll::Ready(Ok(_)) => {
                    let flow = self.connection.serve_read(scratch);
                    self.follow(flow);
                }
                Poll::Ready(Err(error)) => return Poll::Ready(End::Lost(error.kind())),
                Poll::Pending => {
                    if self.connection.outbox.register(cx.waker()) == Registered::Quiet {
                        self.notify_written();
                        return Poll::Pending;
                    }
                    self.take_outbox(scratch);
                }
            }
        }
    }

    /// Waits for a request that a fault delays, or for output.
    #[cold]
    fn wait_for_delay(&mut self, cx: &mut Context<'_>, scratch: &mut Scratch) -> Poll<()> {
        let outbox = &self.connection.outbox;
        match outbox.register(cx.waker()) {
            Registered::SomethingWaits => self.take_outbox(scratch),
            Registered::Quiet => {
                self.notify_written();
                // It may be over since it was looked at.
                if outbox.is_delayed() {
                    return Poll::Pending;
                }
            }
        }
        Poll::Ready(())
    }

    /// Continues the TLS handshake, if there is one.
    #[cfg(feature = "tls")]
    fn shake_hands(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), End>> {
        let Stream::Tls(stream) = &mut self.stream else {
            return Poll::Ready(Ok(()));
        };
        let Connection {
            shared, outbox, id, ..
        } = &self.connection;
        match stream.poll_handshake(cx) {
            Poll::Ready(Ok(subject)) => {
                if let Some(subject) = subject {
                    let conn = *id;
                    let input = minikeeper_engine::Input::Identify { conn, subject };
                    shared.turns.apply_unasked(&input);
                }
                Poll::Ready(Ok(()))
            }
            Poll::Ready(Err(error)) => {
                shared.limits.handshake_failed();
                tracing::debug!(conn = id.0, %error, "TLS handshake failed");
                Poll::Ready(Err(End::Lost(error.kind())))
            }
            Poll::Pending => match outbox.register_close(cx.waker()) {
                None => Poll::Pending,
                Some(why) => Poll::Ready(Err(End::CloseCause(CloseCause::Told(why)))),
            },
        }
    }

    /// Notifies callers that wait until clients have got their events.
    fn notify_written(&self) {
        let activity = &self.connection.shared.turns.activity;
        if activity.is_wanted() {
            activity.notify_written();
        }
    }

    /// The socket is full: no caller needs to wait for this client, unless only the runtime's
    /// budget is used up.
    #[cold]
    fn note_stuck(&self) {
        if tokio::task::coop::has_budget_remaining() {
            self.connection.outbox.set_stuck();
            self.notify_written();
        }
    }

    /// Counts the output that waits for the socket; over all connections it may be too much.
    #[cold]
    fn note_unsent(&self) {
        let Connection { shared, outbox, .. } = &self.connection;
        let bytes = self
            .unsent
            .as_ref()
            .map_or(0, |unsent| unsent.bytes.capacity());
        shared.turns.note_unsent(outbox, bytes);
    }

    fn take_outbox(&mut self, scratch: &mut Scratch) {
        // While the socket is full, what waits stays there, where it is counted.
        if self.unsent.is_none()
            && let Some(why) = self.connection.outbox.drain(&mut scratch.out)
        {
            self.closing = Some(Box::new(End::CloseCause(CloseCause::Told(why))));
        }
    }

    fn follow(&mut self, flow: Flow) {
        if let Flow::Close(fault) = flow {
            self.closing = Some(Box::new(End::CloseCause(fault)));
        }
    }

    fn read(&mut self, cx: &mut Context<'_>, scratch: &mut Scratch) -> Poll<io::Result<usize>> {
        let buffer = self.connection.read_buffer(scratch);
        self.stream.poll_read(cx, buffer)
    }

    /// Leaves the output for the next time.
    fn keep(&mut self, out: &[u8]) {
        let bytes = out.to_vec();
        self.unsent = Some(Box::new(Unsent { bytes, sent: 0 }));
    }

    /// Writes the output, and wakes the tasks that the turn has to wake.
    ///
    /// A few of them are woken first: a client that waits for an event, above all the next holder
    /// of a lock, is usually in more of a hurry than the client that caused it. Many of them are
    /// woken after the own reply, which would otherwise wait for all their writes.
    fn write(&mut self, cx: &mut Context<'_>, scratch: &mut Scratch) -> Poll<io::Result<()>> {
        if (1..=GO_FIRST_MAX).contains(&scratch.wakes.len())
            && self.unsent.is_none()
            && (1..=KEPT_OUT_BYTES_MAX).contains(&scratch.out.len())
        {
            self.keep(&scratch.out);
            scratch.out.clear();
            scratch.wake_all();
            // Behind them in the scheduler's queue.
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        while let Some(Unsent { bytes, sent }) = self.unsent.as_deref_mut() {
            let Poll::Ready(count) = self.stream.poll_write(cx, &bytes[*sent..]) else {
                self.note_stuck();
                return Poll::Pending;
            };
            *sent += count?;
            if *sent == bytes.len() {
                self.unsent = None;
                self.connection.outbox.set_unsent(0);
            }
        }
        let mut written = 0;
        let mut result = Ok(());
        while written < scratch.out.len() {
            match self.stream.poll_write(cx, &scratch.out[written..]) {
                Poll::Ready(Ok(count)) => written += count,
                Poll::Ready(Err(error)) => {
                    written = scratch.out.len();
                    result = Err(error);
                }
                Poll::Pending => {
                    self.keep(&scratch.out[written..]);
                    scratch.out.clear();
                    scratch.wake_all();
                    self.note_unsent();
                    self.note_stuck();
                    return Poll::Pending;
                }
            }
        }
        scratch.out.clear();
        scratch.wake_all();
        result?;
        let flushed = self.stream.poll_flush(cx);
        if flushed.is_pending() {
            self.note_stuck();
        }
        flushed
    }
}

impl Future for SocketTask {
    type Output = End;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<End> {
        let mut scratch = self.connection.shared.server.scratches.take();
        let end = self.run(cx, &mut scratch);
        scratch.out.clear();
        scratch.inputs.clear();
        self.connection.shared.server.scratches.give(scratch);
        end.map(|end| {
            tracing::debug!(conn = self.connection.id.0, why = %end, "connection closed");
            end
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn task_is_small() {
        // With tokio's own 112 bytes it must fit 256, the next size being 384: ten thousand idle
        // sessions are to cost less than 1 KiB each.
        assert!(
            size_of::<SocketTask>() <= 128,
            "{} bytes",
            size_of::<SocketTask>()
        );
    }
}
