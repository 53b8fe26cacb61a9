//! One TCP connection's task: reads the available input, serves it, writes once.
//!
//! Source: `docs/zookeeper-protocol.md` sections 6.5 and 17.2.
//!
//! The future is written by hand, because thousands of them wait and must be small, and because a
//! wake-up must cost one read and one write and nothing else.

use std::{
    future::Future,
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use crate::{
    limits::open_connections::Slot,
    net::connection::{CloseCause, Connection, Flow},
    outbox::Registered,
    peer::Peer,
    state::{UniverseState, scratch::Scratch},
    stream::Stream,
};

/// The maximum number of connections that a turn wakes before it writes its own reply.
const GO_FIRST_MAX: usize = 4;

/// The maximum size of a reply that is kept for that; copying a larger one costs too much. Unit:
/// bytes.
const KEPT_OUT_BYTES_MAX: usize = 4 << 10;

/// The task of a TCP connection. It is most of the memory of an idle connection, so fields that are
/// rarely set are boxed.
#[derive(Debug)]
pub(crate) struct SocketTask {
    connection: Connection,
    stream: Stream,
    /// Output that the socket has not taken yet; while there is any, nothing is read.
    unsent: Option<Box<Unsent>>,
    /// How the connection ends once everything is written.
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
    /// The number of bytes that the socket has taken.
    sent: usize,
}

/// How a connection ends.
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
    /// Returns whether the HTTP server takes over the socket.
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
    pub(crate) fn new(
        shared: &Arc<UniverseState>,
        stream: Stream,
        peer: Peer,
        server: u8,
        slot: Slot,
    ) -> Self {
        let connection = Connection::new(Arc::clone(shared), peer, server);
        shared.handshakes.add(&connection.outbox, &shared.turns);
        Self {
            connection,
            stream,
            unsent: None,
            closing: None,
            slot,
        }
    }

    /// Returns the socket, the input read from it, and its slot, for the HTTP server.
    #[cfg(feature = "control")]
    pub(crate) fn into_parts(mut self) -> (Stream, bytes::BytesMut, Slot) {
        let read = self.connection.take_read();
        (self.stream, read, self.slot)
    }

    fn run(&mut self, cx: &mut Context<'_>, scratch: &mut Scratch) -> Poll<End> {
        // Without a handshake it may be a request for control, which is always served.
        if self.connection.is_open && self.connection.is_cut_off() {
            ready!(self.wait_while_cut_off(cx));
        }
        #[cfg(feature = "tls")]
        if let Err(end) = ready!(self.shake_hands(cx)) {
            return Poll::Ready(end);
        }
        // An event may wake thousands of watchers at once: send it before reading requests.
        self.take_outbox(scratch);
        loop {
            match self.write(cx, scratch) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(error)) => return Poll::Ready(End::Lost(error.kind())),
                // A client that does not read must not prevent its connection from closing.
                Poll::Pending => {
                    return match self.connection.outbox.register_close(cx.waker()) {
                        None => Poll::Pending,
                        Some(why) => Poll::Ready(End::CloseCause(CloseCause::Ordered(why))),
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
                // The delay may have ended since the last check.
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
                Some(why) => Poll::Ready(Err(End::CloseCause(CloseCause::Ordered(why)))),
            },
        }
    }

    /// Waits while the server is cut off from its clients.
    #[cold]
    fn wait_while_cut_off(&self, cx: &mut Context<'_>) -> Poll<()> {
        let outbox = &self.connection.outbox;
        outbox.wait(cx.waker());
        // No caller waits for a client that reads nothing.
        outbox.set_stuck();
        self.notify_written();
        // It may have changed before the task was registered.
        if self.connection.is_cut_off() {
            return Poll::Pending;
        }
        Poll::Ready(())
    }

    /// Notifies callers that wait until clients have got their events.
    fn notify_written(&self) {
        let activity = &self.connection.shared.turns.activity;
        if activity.is_wanted() {
            activity.notify_written();
        }
    }

    /// Records that the socket is full, so that no caller waits for this client. Does nothing if
    /// only the runtime's budget is used up.
    #[cold]
    fn note_stuck(&self) {
        if tokio::task::coop::has_budget_remaining() {
            self.connection.outbox.set_stuck();
            self.notify_written();
        }
    }

    /// Counts the output that waits for the socket against the limit for all connections.
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
        // While the socket is full, frames stay in the outbox, where they are counted.
        if self.unsent.is_none()
            && let Some(why) = self.connection.outbox.drain(&mut scratch.out)
        {
            self.closing = Some(Box::new(End::CloseCause(CloseCause::Ordered(why))));
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

    /// Keeps the output for the next write.
    fn keep(&mut self, out: &[u8]) {
        let bytes = out.to_vec();
        self.unsent = Some(Box::new(Unsent { bytes, sent: 0 }));
    }

    /// Writes the output, and wakes the tasks that the turn must wake.
    ///
    /// A few tasks are woken before the write: a client that waits for an event, above all the next
    /// holder of a lock, is usually in more of a hurry than the client that caused it. Many tasks
    /// are woken after the write, because the own reply would otherwise wait for all of theirs.
    fn write(&mut self, cx: &mut Context<'_>, scratch: &mut Scratch) -> Poll<io::Result<()>> {
        if (1..=GO_FIRST_MAX).contains(&scratch.wakes.len())
            && self.unsent.is_none()
            // An order to close would end the connection before the kept output is written.
            && self.closing.is_none()
            && (1..=KEPT_OUT_BYTES_MAX).contains(&scratch.out.len())
        {
            self.keep(&scratch.out);
            scratch.out.clear();
            scratch.wake_all();
            // This task comes after them in the scheduler's queue.
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
            self.connection.note_closed(&end);
            end
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn task_is_small() {
        // With tokio's own 112 bytes it must fit into 256, because the next allocation size is 384:
        // an idle session must cost less than 1 KiB in all.
        assert!(
            size_of::<SocketTask>() <= 128,
            "{} bytes",
            size_of::<SocketTask>()
        );
    }
}
