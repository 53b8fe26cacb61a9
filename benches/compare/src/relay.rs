//! A relay between a contender and its server, which counts the traffic and can hold or cut it.
//!
//! It has its own thread, so that it keeps running while its owner is busy. Latencies are never
//! measured through it.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc,
    },
    thread::JoinHandle,
};

use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::watch,
};

use crate::{Error, IoContext as _};

/// The protocol on the wire, for counting unsolicited messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wire {
    /// Watch events: replies whose xid is -1.
    ZooKeeper,
    /// Published messages.
    Redis,
    /// Another protocol: bytes are counted, messages are not.
    Other,
}

/// The traffic through a relay.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Traffic {
    /// Bytes, both ways.
    pub bytes: u64,
    /// Unsolicited messages, if they can be recognised.
    pub events: Option<u64>,
}

impl std::ops::Sub for Traffic {
    type Output = Self;

    /// The traffic since then.
    fn sub(self, before: Self) -> Self {
        let events = self.events.zip(before.events);
        Self {
            bytes: self.bytes - before.bytes,
            events: events.map(|(now, before)| now - before),
        }
    }
}

/// How a relay treats its traffic.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Open,
    /// Nothing passes; all connections stay.
    Held,
    /// All connections are closed, new ones too.
    Cut,
    /// The thread ends.
    Over,
}

/// A relay in front of a server; it is cut when dropped.
#[derive(Debug)]
pub struct Relay {
    /// The address contenders connect to.
    pub addr: SocketAddr,
    state: watch::Sender<State>,
    counted: Arc<Counted>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Counted {
    wire: Wire,
    bytes: AtomicU64,
    events: AtomicU64,
}

impl Relay {
    /// Starts one.
    ///
    /// # Errors
    /// If it cannot listen.
    pub fn start(server: SocketAddr, wire: Wire) -> Result<Self, Error> {
        let (state, states) = watch::channel(State::Open);
        let counted = Arc::new(Counted {
            wire,
            bytes: AtomicU64::new(0),
            events: AtomicU64::new(0),
        });
        let (sender, receiver) = mpsc::sync_channel(1);
        let counting = Arc::clone(&counted);
        let thread = std::thread::Builder::new()
            .name("relay".into())
            .spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build();
                if let Ok(runtime) = runtime {
                    runtime.block_on(accept(server, states, counting, sender));
                }
            })
            .context(|| "cannot start a thread for a relay".into())?;
        let addr = receiver
            .recv()
            .map_err(|_| Error::Setup("a relay cannot listen on 127.0.0.1".into()))?;
        Ok(Self {
            addr,
            state,
            counted,
            thread: Some(thread),
        })
    }

    /// The traffic so far.
    #[must_use]
    pub fn traffic(&self) -> Traffic {
        let events = self.counted.events.load(Ordering::Relaxed);
        Traffic {
            bytes: self.counted.bytes.load(Ordering::Relaxed),
            events: (self.counted.wire != Wire::Other).then_some(events),
        }
    }

    /// Lets nothing pass and keeps all connections, like a network failure or a process that does
    /// not run.
    pub fn hold(&self) {
        self.state.send_replace(State::Held);
    }

    /// Lets everything pass again, including the held traffic.
    pub fn open(&self) {
        self.state.send_replace(State::Open);
    }

    /// Closes all connections and accepts no new ones, like a killed process.
    pub fn cut(&self) {
        self.state.send_replace(State::Cut);
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.state.send_replace(State::Over);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn accept(
    server: SocketAddr,
    states: watch::Receiver<State>,
    counted: Arc<Counted>,
    sender: mpsc::SyncSender<SocketAddr>,
) {
    let Ok(listener) = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await else {
        return;
    };
    let Ok(addr) = listener.local_addr() else {
        return;
    };
    let _ = sender.send(addr);
    let mut over = states.clone();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                if *states.borrow() != State::Cut && let Ok((stream, _)) = accepted {
                    tokio::spawn(connect(server, stream, states.clone(), Arc::clone(&counted)));
                }
            }
            _ = over.wait_for(|state| *state == State::Over) => return,
        }
    }
}

async fn connect(
    server: SocketAddr,
    client: TcpStream,
    mut states: watch::Receiver<State>,
    counted: Arc<Counted>,
) {
    let Ok(server) = TcpStream::connect(server).await else {
        return;
    };
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let (client_read, client_write) = client.into_split();
    let (server_read, server_write) = server.into_split();
    let (states_there, states_back) = (states.clone(), states.clone());
    let there = pass(client_read, server_write, states_there, &counted, None);
    let back = pass(
        server_read,
        client_write,
        states_back,
        &counted,
        Some(Events::new(counted.wire)),
    );
    tokio::select! {
        () = there => {}
        () = back => {}
        _ = states.wait_for(|state| matches!(state, State::Cut | State::Over)) => {}
    }
}

async fn pass(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut states: watch::Receiver<State>,
    counted: &Counted,
    mut events: Option<Events>,
) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        counted.bytes.fetch_add(read as u64, Ordering::Relaxed);
        if let Some(events) = &mut events {
            let seen = events.seen(&buffer[..read]);
            counted.events.fetch_add(seen, Ordering::Relaxed);
        }
        if states
            .wait_for(|state| *state != State::Held)
            .await
            .is_err()
        {
            return;
        }
        if to.write_all(&buffer[..read]).await.is_err() {
            return;
        }
    }
}

/// Counts unsolicited messages from a server.
#[derive(Debug)]
struct Events {
    wire: Wire,
    /// The received part of an incomplete message.
    kept: Vec<u8>,
    /// Bytes of the current message still to come, which are skipped.
    skipped: usize,
}

/// The size of length and xid, by which an event of ZooKeeper is recognised.
const HEAD: usize = 8;

/// The beginning of a published message in either version of Redis' protocol.
const MESSAGE: &[u8] = b"$7\r\nmessage\r\n";

impl Events {
    const fn new(wire: Wire) -> Self {
        Self {
            wire,
            kept: Vec::new(),
            skipped: 0,
        }
    }

    fn seen(&mut self, bytes: &[u8]) -> u64 {
        match self.wire {
            Wire::ZooKeeper => self.frames(bytes),
            Wire::Redis => {
                self.kept.extend_from_slice(bytes);
                let found = self
                    .kept
                    .windows(MESSAGE.len())
                    .filter(|window| *window == MESSAGE)
                    .count();
                let rest = self.kept.len().saturating_sub(MESSAGE.len() - 1);
                self.kept.drain(..rest);
                found as u64
            }
            Wire::Other => 0,
        }
    }

    fn frames(&mut self, mut bytes: &[u8]) -> u64 {
        let mut found = 0;
        while !bytes.is_empty() {
            let skipped = self.skipped.min(bytes.len());
            self.skipped -= skipped;
            bytes = &bytes[skipped..];
            let wanted = (HEAD - self.kept.len()).min(bytes.len());
            if self.skipped > 0 || wanted == 0 {
                continue;
            }
            self.kept.extend_from_slice(&bytes[..wanted]);
            bytes = &bytes[wanted..];
            if let Ok([l0, l1, l2, l3, xid @ ..]) = <[u8; HEAD]>::try_from(self.kept.as_slice()) {
                found += u64::from(i32::from_be_bytes(xid) == -1);
                let length = u32::from_be_bytes([l0, l1, l2, l3]) as usize;
                self.skipped = length.saturating_sub(HEAD - 4);
                self.kept.clear();
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Events are counted wherever the bytes are split.
    #[test]
    fn events_are_distinguished_from_replies() {
        let frame = |xid: i32, rest: &[u8]| {
            let length = u32::try_from(4 + rest.len()).expect("a short frame");
            [&length.to_be_bytes(), &xid.to_be_bytes(), rest].concat()
        };
        let sent = [
            frame(0, &[7; 32]),
            frame(1, b"reply"),
            frame(-1, &[0xff; 40]),
            frame(-1, b""),
            frame(-2, &[0; 12]),
        ]
        .concat();
        for part in 1..sent.len() {
            let mut events = Events::new(Wire::ZooKeeper);
            let seen: u64 = sent.chunks(part).map(|bytes| events.seen(bytes)).sum();
            assert_eq!(seen, 2, "{part} bytes at a time");
        }
    }

    #[test]
    fn publications_are_distinguished_from_replies() {
        let sent = b"+OK\r\n*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\n0\r\n:1\r\n>3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\n0\r\n";
        for part in 1..sent.len() {
            let mut events = Events::new(Wire::Redis);
            let seen: u64 = sent.chunks(part).map(|bytes| events.seen(bytes)).sum();
            assert_eq!(seen, 2, "{part} bytes at a time");
        }
    }
}
