//! A link that injects a fault at one message, or at one byte, counted from the call that arms it.
//!
//! Messages are whole frames, so that replies which the server sends together count separately.

use std::{
    collections::HashMap,
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use minikeeper::Server;
use minikeeper_client::{Client, Connecting, ErrorCode, SessionId, Transport};
use minikeeper_protocol::{OpCode, Request, Xid};
use parking_lot::Mutex;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, duplex, split},
    sync::{Notify, watch},
};

use crate::kit::{SESSION_TIMEOUT, spawn};

/// The position of the session's id in a handshake: after its length, the protocol version, a zxid
/// and the timeout.
const SESSION_ID: std::ops::Range<usize> = 20..28;

/// The positions of the xid and the operation in a frame of a request. A reply has its xid at the
/// same position.
const XID: std::ops::Range<usize> = 4..8;
const OP: std::ops::Range<usize> = 8..12;

/// The position of the error in a frame of a reply, which ends its header.
const ERROR: std::ops::Range<usize> = 16..20;

/// The largest number of requests that are refused: far more than tests allow.
const REFUSED_MAX: usize = 5_000;

/// A fault at the message with this number, counted from 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fault {
    /// The connection ends instead of carrying this request.
    LoseRequest(usize),
    /// The connection ends instead of carrying this reply, or event.
    LoseReply(usize),
    /// The connection ends after this number of bytes of requests.
    CutRequests(usize),
    /// The connection ends after this number of bytes of replies and events.
    CutReplies(usize),
    /// The session expires after this reply, or event.
    ExpireAfter(SessionId, usize),
    /// The connection and the client's session end instead of carrying this reply.
    ExpireAtReply(usize),
    /// The connection and the client's session end instead of carrying this request.
    ExpireAtRequest(usize),
    /// The server refuses this request. Pings and other requests that no recipe makes do not count.
    Refuse(usize, ErrorCode),
    /// The server refuses this request and all that follow.
    RefuseFrom(usize, ErrorCode),
    /// Notifies the test when this reply or event arrives.
    Notify(usize),
    /// The byte with this number of the replies and events is changed by these bits.
    DamageReplies(usize, u8),
}

/// The test's handle of the link.
#[derive(Clone)]
pub(crate) struct Wire {
    server: Arc<Server>,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    faults: Mutex<Vec<Fault>>,
    /// The number of requests that may be refused.
    refusable: AtomicUsize,
    refused: AtomicUsize,
    requests: AtomicUsize,
    replies: AtomicUsize,
    /// The bytes from the server.
    received: AtomicUsize,
    /// The bytes to the server.
    sent: AtomicUsize,
    notified: Notify,
    /// Counts the cuts of connections.
    cuts: watch::Sender<u32>,
    forgets_sessions: AtomicBool,
    is_read_only: AtomicBool,
    /// The client's first session.
    session: Mutex<Option<SessionId>>,
}

impl Wire {
    pub(crate) fn to(server: &Arc<Server>) -> Self {
        Self {
            server: Arc::clone(server),
            state: Arc::default(),
        }
    }

    /// Connects a client over this link.
    pub(crate) async fn client(&self, seed: u64) -> Client {
        let builder = Client::builder("server").unwrap();
        let builder = builder.session_timeout(SESSION_TIMEOUT).seed(seed);
        let builder = builder.allow_read_only(true);
        let client = builder.transport(self.clone()).connect().await.unwrap();
        *self.state.session.lock() = client.session_id();
        client
    }

    /// Sets the faults, and restarts the count of messages.
    pub(crate) fn arm(&self, faults: impl IntoIterator<Item = Fault>) {
        self.state.requests.store(0, Ordering::Relaxed);
        self.state.replies.store(0, Ordering::Relaxed);
        self.state.refusable.store(0, Ordering::Relaxed);
        self.state.refused.store(0, Ordering::Relaxed);
        self.state.received.store(0, Ordering::Relaxed);
        self.state.sent.store(0, Ordering::Relaxed);
        *self.state.faults.lock() = faults.into_iter().collect();
    }

    /// Returns whether a fault has not happened, because there were fewer messages.
    pub(crate) fn is_armed(&self) -> bool {
        self.armed() > 0
    }

    /// Returns how many faults have not happened.
    pub(crate) fn armed(&self) -> usize {
        self.state.faults.lock().len()
    }

    /// Returns how much came from the server. Unit: bytes.
    pub(crate) fn received(&self) -> usize {
        self.state.received.load(Ordering::Relaxed)
    }

    /// Returns the number of requests, including handshakes.
    pub(crate) fn requests(&self) -> usize {
        self.state.requests.load(Ordering::Relaxed)
    }

    /// Returns how many requests were refused.
    pub(crate) fn refused(&self) -> usize {
        self.state.refused.load(Ordering::Relaxed)
    }

    /// Ends the current connection.
    pub(crate) fn cut(&self) {
        self.state.cuts.send_modify(|cuts| *cuts += 1);
    }

    /// From now on a client that resumes its session silently gets another one.
    pub(crate) fn forget_sessions(&self) {
        self.state.forgets_sessions.store(true, Ordering::Relaxed);
    }

    /// Sets whether the server is read-only, as a server is that has lost its ensemble: it says so in
    /// handshakes, and refuses changes. Cut the connection, since it does that too.
    pub(crate) fn read_only(&self, is_read_only: bool) {
        self.state
            .is_read_only
            .store(is_read_only, Ordering::Relaxed);
    }

    /// Ends the session of the client on this link.
    fn expire_own(&self) {
        let session = *self.state.session.lock();
        if let Some(session) = session {
            self.server.expire(session).unwrap_or(0);
        }
    }

    /// Waits until the message of [`Fault::Notify`] arrives.
    pub(crate) async fn notified(&self) {
        self.state.notified.notified().await;
    }
}

impl State {
    /// Removes and returns the fault for this message, if there is one.
    fn fault_of(&self, fits: impl Fn(Fault) -> bool) -> Option<Fault> {
        let mut faults = self.faults.lock();
        let at = faults.iter().position(|fault| fits(*fault))?;
        Some(faults.remove(at))
    }

    /// Returns the error with which the server refuses this request, if it does.
    fn refusal_of(&self, frame: &[u8]) -> Option<ErrorCode> {
        let is_own = number(frame, XID) < 0 || number(frame, OP) == OpCode::CloseSession.code();
        if is_own {
            return None;
        }
        if self.is_read_only.load(Ordering::Relaxed) && is_change(number(frame, OP)) {
            return Some(ErrorCode::NotReadOnly);
        }
        let at = self.refusable.fetch_add(1, Ordering::Relaxed);
        let once = self.fault_of(|fault| matches!(fault, Fault::Refuse(number, _) if number == at));
        let always = || {
            let faults = self.faults.lock();
            let of = |fault: &Fault| matches!(fault, Fault::RefuseFrom(from, _) if *from <= at);
            faults.iter().copied().find(of)
        };
        let (Fault::Refuse(_, code) | Fault::RefuseFrom(_, code)) = once.or_else(always)? else {
            return None;
        };
        if self.refused.fetch_add(1, Ordering::Relaxed) == REFUSED_MAX {
            // Time may not pass while requests come without a pause.
            self.faults.lock().clear();
        }
        Some(code)
    }
}

/// Returns whether a read-only server refuses this operation.
///
/// Source: `ReadOnlyRequestProcessor` of ZooKeeper.
fn is_change(op: i32) -> bool {
    let op = OpCode::from_code(op);
    op.is_some_and(|op| {
        matches!(
            op,
            OpCode::Sync
                | OpCode::Create
                | OpCode::Create2
                | OpCode::CreateTtl
                | OpCode::CreateContainer
                | OpCode::Delete
                | OpCode::DeleteContainer
                | OpCode::SetData
                | OpCode::Reconfig
                | OpCode::SetAcl
                | OpCode::Multi
                | OpCode::Check
        )
    })
}

/// Reads a number in a frame.
fn number(frame: &[u8], at: std::ops::Range<usize>) -> i32 {
    let bytes = frame.get(at).and_then(|bytes| bytes.try_into().ok());
    bytes.map_or(0, i32::from_be_bytes)
}

/// Returns a request that replaces a refused one: it changes nothing, and its reply keeps its place
/// among the others.
fn harmless(frame: &[u8]) -> Vec<u8> {
    let request = Request::Exists {
        path: Some("/".into()),
        watch: false,
    };
    let mut harmless = Vec::new();
    request.encode(Xid(number(frame, XID)), &mut harmless);
    harmless
}

/// The refusals of one connection, by the xids of requests.
type Refusals = Mutex<HashMap<i32, ErrorCode>>;

impl Transport for Wire {
    fn connect(&mut self, _: &str) -> Connecting {
        let this = self.clone();
        Box::pin(async move {
            let (near, far) = duplex(1 << 20);
            let (from_client, to_client) = split(far);
            let (from_server, to_server) = split(this.server.local());
            let mut cuts = this.state.cuts.subscribe();
            let refusals = Refusals::default();
            spawn(async move {
                // When one end closes, so does the other.
                tokio::select! {
                    biased;
                    _ = cuts.changed() => {}
                    _ = carry_requests(&this, &refusals, from_client, to_server) => {}
                    _ = carry_replies(&this, &refusals, from_server, to_client) => {}
                }
            });
            let (reader, writer) = split(near);
            Ok((Box::new(reader) as _, Box::new(writer) as _))
        })
    }
}

async fn carry_requests(
    wire: &Wire,
    refusals: &Refusals,
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
) -> io::Result<()> {
    let mut is_handshake = true;
    loop {
        let mut frame = frame(&mut from).await?;
        if std::mem::take(&mut is_handshake) {
            if wire.state.forgets_sessions.load(Ordering::Relaxed) {
                frame[SESSION_ID].fill(0);
            }
        } else if let Some(code) = wire.state.refusal_of(&frame) {
            refusals.lock().insert(number(&frame, XID), code);
            frame = harmless(&frame);
        }
        let at = wire.state.requests.fetch_add(1, Ordering::Relaxed);
        let is_it = |fault| [Fault::LoseRequest(at), Fault::ExpireAtRequest(at)].contains(&fault);
        match wire.state.fault_of(is_it) {
            Some(Fault::ExpireAtRequest(_)) => {
                wire.expire_own();
                return Ok(());
            }
            Some(_) => return Ok(()),
            None => {}
        }
        let before = wire.state.sent.fetch_add(frame.len(), Ordering::Relaxed);
        let end = before + frame.len();
        let is_cut = |fault| matches!(fault, Fault::CutRequests(at) if at < end);
        if let Some(Fault::CutRequests(at)) = wire.state.fault_of(is_cut) {
            return to.write_all(&frame[..at - before]).await;
        }
        to.write_all(&frame).await?;
    }
}

async fn carry_replies(
    wire: &Wire,
    refusals: &Refusals,
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
) -> io::Result<()> {
    let mut is_handshake = true;
    loop {
        let mut frame = frame(&mut from).await?;
        if std::mem::take(&mut is_handshake) {
            if wire.state.is_read_only.load(Ordering::Relaxed) {
                // Its last byte is the read-only flag.
                *frame.last_mut().expect("it has a length") = 1;
            }
        } else if let Some(code) = refusals.lock().remove(&number(&frame, XID)) {
            frame.truncate(ERROR.end);
            let length = u32::try_from(frame.len() - 4).expect("it is short");
            frame[..4].copy_from_slice(&length.to_be_bytes());
            frame[ERROR].copy_from_slice(&code.code().to_be_bytes());
        }
        let count = wire.state.replies.fetch_add(1, Ordering::Relaxed);
        let before = wire
            .state
            .received
            .fetch_add(frame.len(), Ordering::Relaxed);
        let end = before + frame.len();
        let is_cut = |fault| matches!(fault, Fault::CutReplies(at) if at < end);
        if let Some(Fault::CutReplies(at)) = wire.state.fault_of(is_cut) {
            return to.write_all(&frame[..at - before]).await;
        }
        let is_damaged = |fault| matches!(fault, Fault::DamageReplies(at, _) if at < end);
        if let Some(Fault::DamageReplies(at, bits)) = wire.state.fault_of(is_damaged) {
            frame[at - before] ^= bits;
        }
        let fault = wire.state.fault_of(|fault| match fault {
            Fault::LoseReply(at)
            | Fault::ExpireAfter(_, at)
            | Fault::ExpireAtReply(at)
            | Fault::Notify(at) => at == count,
            _ => false,
        });
        match fault {
            Some(Fault::ExpireAtReply(_)) => {
                wire.expire_own();
                return Ok(());
            }
            Some(Fault::LoseReply(_)) => return Ok(()),
            _ => {}
        }
        to.write_all(&frame).await?;
        match fault {
            Some(Fault::ExpireAfter(session, _)) => drop(wire.server.expire(session)),
            Some(Fault::Notify(_)) => wire.state.notified.notify_one(),
            _ => {}
        }
    }
}

/// Reads one message, with its length in front.
async fn frame(from: &mut (impl AsyncRead + Unpin)) -> io::Result<Vec<u8>> {
    let mut frame = vec![0; 4];
    from.read_exact(&mut frame).await?;
    let length = u32::from_be_bytes(frame[..].try_into().expect("four bytes"));
    frame.resize(4 + length as usize, 0);
    from.read_exact(&mut frame[4..]).await?;
    Ok(frame)
}
