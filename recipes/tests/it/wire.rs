//! A link that fails at one message, or at one byte, counted from the call that arms it.
//!
//! Messages are whole frames, so that replies which leave the server together can be told apart.

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

/// Where a handshake has the session's id: behind its length, the protocol's version, a zxid and
/// the timeout.
const SESSION_ID: std::ops::Range<usize> = 20..28;

/// Where a frame of a request has its xid, and its operation; one of a reply has its xid there too.
const XID: std::ops::Range<usize> = 4..8;
const OP: std::ops::Range<usize> = 8..12;

/// Where a frame of a reply has its error, and where its header ends.
const ERROR: std::ops::Range<usize> = 16..20;

/// The most requests that are refused: far more than tests allow.
const REFUSED_MAX: usize = 5_000;

/// What happens at the message of this number, the first one being 0.
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
    /// The session expires behind this reply, or event.
    ExpireBehind(SessionId, usize),
    /// The connection ends instead of carrying this reply, and the client's session with it.
    ExpireAtReply(usize),
    /// The same instead of carrying this request.
    ExpireAtRequest(usize),
    /// The server refuses this request. Pings and the like, which no recipe makes, do not count.
    Refuse(usize, ErrorCode),
    /// The server refuses this request and all that follow.
    RefuseFrom(usize, ErrorCode),
    /// Notifies the test when this reply or event arrives.
    Tell(usize),
}

/// The link, as the test holds it.
#[derive(Clone)]
pub(crate) struct Wire {
    server: Arc<Server>,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    faults: Mutex<Vec<Fault>>,
    /// How many requests there were that may be refused.
    refusable: AtomicUsize,
    refused: AtomicUsize,
    requests: AtomicUsize,
    replies: AtomicUsize,
    /// What came from the server. Unit: bytes.
    received: AtomicUsize,
    /// What went to the server. Unit: bytes.
    sent: AtomicUsize,
    told: Notify,
    /// Counts the cuts of connections.
    cuts: watch::Sender<u32>,
    forgets_sessions: AtomicBool,
    is_read_only: AtomicBool,
    /// The first one of the client.
    session: Mutex<Option<SessionId>>,
}

impl Wire {
    pub(crate) fn to(server: &Arc<Server>) -> Self {
        Self {
            server: Arc::clone(server),
            state: Arc::default(),
        }
    }

    /// A client over this link.
    pub(crate) async fn client(&self, seed: u64) -> Client {
        let builder = Client::builder("server").unwrap();
        let builder = builder.session_timeout(SESSION_TIMEOUT).seed(seed);
        let builder = builder.allow_read_only(true);
        let client = builder.transport(self.clone()).connect().await.unwrap();
        *self.state.session.lock() = client.session_id();
        client
    }

    /// Messages are counted from here on.
    pub(crate) fn arm(&self, faults: impl IntoIterator<Item = Fault>) {
        self.state.requests.store(0, Ordering::Relaxed);
        self.state.replies.store(0, Ordering::Relaxed);
        self.state.refusable.store(0, Ordering::Relaxed);
        self.state.refused.store(0, Ordering::Relaxed);
        self.state.received.store(0, Ordering::Relaxed);
        self.state.sent.store(0, Ordering::Relaxed);
        *self.state.faults.lock() = faults.into_iter().collect();
    }

    /// Whether a fault has not happened, because there were fewer messages.
    pub(crate) fn is_armed(&self) -> bool {
        self.armed() > 0
    }

    /// How many faults have not happened.
    pub(crate) fn armed(&self) -> usize {
        self.state.faults.lock().len()
    }

    /// How much came from the server. Unit: bytes.
    pub(crate) fn received(&self) -> usize {
        self.state.received.load(Ordering::Relaxed)
    }

    /// How many requests there were, handshakes included.
    pub(crate) fn requests(&self) -> usize {
        self.state.requests.load(Ordering::Relaxed)
    }

    /// How many requests were refused.
    pub(crate) fn refused(&self) -> usize {
        self.state.refused.load(Ordering::Relaxed)
    }

    /// Ends the connection there is.
    pub(crate) fn cut(&self) {
        self.state.cuts.send_modify(|cuts| *cuts += 1);
    }

    /// From now on a client that asks for its session gets another, and is not told.
    pub(crate) fn forget_sessions(&self) {
        self.state.forgets_sessions.store(true, Ordering::Relaxed);
    }

    /// From now on the server says in handshakes that it only reads, as one does that has lost the
    /// others.
    pub(crate) fn read_only(&self) {
        self.state.is_read_only.store(true, Ordering::Relaxed);
    }

    /// Ends the session of the client on this link.
    fn expire_own(&self) {
        let session = *self.state.session.lock();
        if let Some(session) = session {
            self.server.expire(session).unwrap_or(0);
        }
    }

    /// Resolves when the message that was to be told of arrives.
    pub(crate) async fn told(&self) {
        self.state.told.notified().await;
    }
}

impl State {
    /// The fault that is this message's, if there is one. It happens once.
    fn fault_of(&self, fits: impl Fn(Fault) -> bool) -> Option<Fault> {
        let mut faults = self.faults.lock();
        let at = faults.iter().position(|fault| fits(*fault))?;
        Some(faults.remove(at))
    }

    /// With what the server refuses this request.
    fn refusal_of(&self, frame: &[u8]) -> Option<ErrorCode> {
        let is_own = number(frame, XID) < 0 || number(frame, OP) == OpCode::CloseSession.code();
        if is_own {
            return None;
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
            // Time may stand still while requests come without a pause.
            self.faults.lock().clear();
        }
        Some(code)
    }
}

/// A number in a frame.
fn number(frame: &[u8], at: std::ops::Range<usize>) -> i32 {
    let bytes = frame.get(at).and_then(|bytes| bytes.try_into().ok());
    bytes.map_or(0, i32::from_be_bytes)
}

/// In place of a refused request: one that changes nothing, and whose reply keeps its place among
/// the others.
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
                // Either end's end is the other's.
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
                // Its last byte says so.
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
        let fault = wire.state.fault_of(|fault| match fault {
            Fault::LoseReply(at)
            | Fault::ExpireBehind(_, at)
            | Fault::ExpireAtReply(at)
            | Fault::Tell(at) => at == count,
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
            Some(Fault::ExpireBehind(session, _)) => drop(wire.server.expire(session)),
            Some(Fault::Tell(_)) => wire.state.told.notify_one(),
            _ => {}
        }
    }
}

/// One message with its length in front.
async fn frame(from: &mut (impl AsyncRead + Unpin)) -> io::Result<Vec<u8>> {
    let mut frame = vec![0; 4];
    from.read_exact(&mut frame).await?;
    let length = u32::from_be_bytes(frame[..].try_into().expect("four bytes"));
    frame.resize(4 + length as usize, 0);
    from.read_exact(&mut frame[4..]).await?;
    Ok(frame)
}
