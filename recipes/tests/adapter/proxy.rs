//! A link between client and server that misbehaves when told to.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use minikeeper::Server;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::watch,
};

/// What the link does to what goes over it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mode {
    Pass,
    /// Requests vanish.
    SwallowRequests,
    /// Replies and events vanish.
    SwallowReplies,
    /// Everything is held back until the mode changes.
    Freeze,
    /// The connection ends, and new ones do at once.
    Cut,
}

#[derive(Clone, Copy, Debug)]
struct State {
    mode: Mode,
    delay: Duration,
    /// Counts the cuts of connections.
    cuts: u32,
}

/// The link, as the test holds it. It ends with the last clone.
#[derive(Clone)]
pub(crate) struct Proxy {
    pub(crate) address: String,
    state: Arc<watch::Sender<State>>,
    /// How often a client has written.
    pub(crate) writes: Arc<AtomicUsize>,
}

impl Proxy {
    pub(crate) async fn to(server: &Server) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let proxy = Self {
            address: listener.local_addr().unwrap().to_string(),
            state: Arc::new(watch::Sender::new(State {
                mode: Mode::Pass,
                delay: Duration::ZERO,
                cuts: 0,
            })),
            writes: Arc::default(),
        };
        let mut ending = proxy.state.subscribe();
        let (state, writes) = (proxy.state.subscribe(), Arc::clone(&proxy.writes));
        let server = server.connect_string();
        tokio::spawn(async move {
            loop {
                let near = tokio::select! {
                    near = listener.accept() => near.unwrap().0,
                    () = async { while ending.changed().await.is_ok() {} } => return,
                };
                if state.borrow().mode == Mode::Cut {
                    continue;
                }
                let far = TcpStream::connect(&server).await.unwrap();
                let ((from_client, to_client), (from_server, to_server)) =
                    (near.into_split(), far.into_split());
                let (requests, replies) = (state.clone(), state.clone());
                let writes = Some(Arc::clone(&writes));
                tokio::spawn(async move {
                    // Either end's end is the other's.
                    tokio::select! {
                        () = pump(from_client, to_server, requests, Mode::SwallowRequests, writes) => {}
                        () = pump(from_server, to_client, replies, Mode::SwallowReplies, None) => {}
                    }
                });
            }
        });
        proxy
    }

    pub(crate) fn set(&self, mode: Mode) {
        self.state.send_modify(|state| state.mode = mode);
    }

    pub(crate) fn delay_replies(&self, delay: Duration) {
        self.state.send_modify(|state| state.delay = delay);
    }

    /// Ends the connection there is; the next one is accepted.
    pub(crate) fn cut(&self) {
        self.state.send_modify(|state| {
            state.mode = Mode::Pass;
            state.cuts += 1;
        });
    }

    pub(crate) fn writes(&self) -> usize {
        self.writes.load(Ordering::Relaxed)
    }
}

async fn pump(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut state: watch::Receiver<State>,
    swallow: Mode,
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
        let is_swallowed = state.borrow().mode == swallow;
        if !is_swallowed && to.write_all(&buffer[..count]).await.is_err() {
            return;
        }
    }
}
