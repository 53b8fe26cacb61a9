//! A link between client and server that injects network faults.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use minikeeper::Server;
use minikeeper_client::{Connecting, Transport};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, duplex, split},
    net::TcpListener,
    sync::watch,
};

/// What the link does with the bytes it receives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Everything passes.
    Pass,
    /// Requests are dropped.
    SwallowRequests,
    /// Replies and events are dropped.
    SwallowReplies,
    /// Everything is held back until the mode changes.
    Freeze,
    /// The connection ends, and new ones are refused.
    Cut,
}

/// The direction of traffic.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// From the client to the server.
    Requests,
    /// From the server to the client.
    Replies,
}

#[derive(Debug)]
struct State {
    mode: Mode,
    /// The delay of each read from the server.
    delay: Duration,
    /// The number of cuts. A connection ends when it changes.
    cuts: u32,
    /// `None` while the server is down.
    server: Option<Arc<Server>>,
    /// The connection ends after this number of further bytes.
    cut_behind: Option<(Direction, usize)>,
}

/// The test's handle to a link. Clones share one link.
#[derive(Clone)]
pub struct Link {
    state: Arc<watch::Sender<State>>,
    /// The number of reads from the client, at most 4 KiB each.
    pub writes: Arc<AtomicUsize>,
    /// The number of connections made.
    pub connections: Arc<AtomicUsize>,
}

impl Link {
    /// Creates a link to `server` that passes everything.
    #[must_use]
    pub fn to(server: &Arc<Server>) -> Self {
        Self {
            state: Arc::new(watch::Sender::new(State {
                mode: Mode::Pass,
                delay: Duration::ZERO,
                cuts: 0,
                server: Some(Arc::clone(server)),
                cut_behind: None,
            })),
            writes: Arc::default(),
            connections: Arc::default(),
        }
    }

    /// Sets the mode from now on.
    pub fn set(&self, mode: Mode) {
        self.state.send_modify(|state| state.mode = mode);
    }

    /// Delays replies and events from now on.
    pub fn delay_replies(&self, delay: Duration) {
        self.state.send_modify(|state| state.delay = delay);
    }

    /// Closes the current connections; new ones are accepted.
    pub fn cut(&self) {
        self.state.send_modify(|state| {
            state.mode = Mode::Pass;
            state.cuts += 1;
        });
    }
}

impl Link {
    /// Closes the connection once, after this number of further bytes; new ones are accepted.
    pub fn cut_behind(&self, direction: Direction, bytes: usize) {
        self.state
            .send_modify(|state| state.cut_behind = Some((direction, bytes)));
    }

    /// Returns whether a cut set by [`Self::cut_behind`] has not happened yet.
    pub fn is_cut_pending(&self) -> bool {
        self.state.borrow().cut_behind.is_some()
    }

    /// Returns how many of `count` bytes may pass. The caller closes the connection if not all may.
    fn may_pass(&self, direction: Direction, count: usize) -> usize {
        let mut may_pass = count;
        self.state.send_if_modified(|state| {
            if let Some((way, left)) = &mut state.cut_behind
                && *way == direction
            {
                if *left < count {
                    may_pass = *left;
                    state.cut_behind = None;
                } else {
                    *left -= count;
                }
            }
            false
        });
        may_pass
    }

    /// Closes every connection and refuses new ones until [`Self::up`], as if the server were down.
    pub fn down(&self) {
        self.state.send_modify(|state| {
            state.server = None;
            state.cuts += 1;
        });
    }

    /// Connects to this server from now on.
    pub fn up(&self, server: &Arc<Server>) {
        self.state
            .send_modify(|state| state.server = Some(Arc::clone(server)));
    }
}

impl Link {
    /// Accepts TCP connections and passes them over this link. Returns the address.
    ///
    /// # Errors
    /// When no port is free.
    pub async fn listen(&self) -> io::Result<String> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?.to_string();
        let link = self.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                // A refused connection is dropped.
                let _ = link.pass(stream);
            }
        });
        Ok(address)
    }

    /// Connects this stream to the server.
    fn pass(&self, far: impl AsyncRead + AsyncWrite + Send + 'static) -> io::Result<()> {
        let server = match &*self.state.borrow() {
            State {
                server: Some(server),
                mode,
                ..
            } if *mode != Mode::Cut => server.local(),
            _ => return Err(io::ErrorKind::ConnectionRefused.into()),
        };
        self.connections.fetch_add(1, Ordering::Relaxed);
        let (from_client, to_client) = split(far);
        let (from_server, to_server) = split(server);
        let (requests, replies) = (self.state.subscribe(), self.state.subscribe());
        let writes = Some(Arc::clone(&self.writes));
        let way = |direction| (self.clone(), direction);
        let (there, back) = (way(Direction::Requests), way(Direction::Replies));
        tokio::spawn(async move {
            // When one end closes, so does the other.
            tokio::select! {
                biased;
                () = pump(from_client, to_server, requests, there, writes) => {}
                () = pump(from_server, to_client, replies, back, None) => {}
            }
        });
        Ok(())
    }
}

impl Transport for Link {
    fn connect(&mut self, _: &str) -> Connecting {
        let this = self.clone();
        Box::pin(async move {
            let (near, far) = duplex(1 << 20);
            this.pass(far)?;
            let (reader, writer) = split(near);
            Ok((Box::new(reader) as _, Box::new(writer) as _))
        })
    }
}

async fn pump(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut state: watch::Receiver<State>,
    (link, direction): (Link, Direction),
    writes: Option<Arc<AtomicUsize>>,
) {
    let cuts = state.borrow().cuts;
    let is_cut = |state: &State| state.mode == Mode::Cut || state.cuts != cuts;
    let mut buffer = [0; 4096];
    loop {
        let read = tokio::select! {
            biased;
            _ = state.wait_for(is_cut) => return,
            read = from.read(&mut buffer) => read,
        };
        let Ok(count @ 1..) = read else { return };
        if let Some(writes) = &writes {
            writes.fetch_add(1, Ordering::Relaxed);
        } else {
            let delay = state.borrow().delay;
            tokio::time::sleep(delay).await;
        }
        let go_on = |state: &State| state.mode != Mode::Freeze || is_cut(state);
        if state.wait_for(go_on).await.is_err() || is_cut(&state.borrow()) {
            return;
        }
        let swallow = match direction {
            Direction::Requests => Mode::SwallowRequests,
            Direction::Replies => Mode::SwallowReplies,
        };
        let is_swallowed = state.borrow().mode == swallow;
        let may_pass = link.may_pass(direction, count);
        if !is_swallowed && to.write_all(&buffer[..may_pass]).await.is_err() {
            return;
        }
        if may_pass < count {
            return;
        }
    }
}
