//! Counters: plain numbers that only the holder of the engine lock touches.
//!
//! Source: `docs/zookeeper-protocol.md` sections 18.3 and 18.4; ZooKeeper's `ServerStats`,
//! `ServerCnxn`.

use minikeeper_engine::Input;
use minikeeper_protocol::{OpCode, Request, Xid, Zxid};

use crate::{limits::hits::LimitHits, peer::Peer, turn::latency::Latency};

/// The last request served for a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LastOp {
    /// No request yet.
    Nothing,
    /// No request since its statistics were reset, or a write that failed.
    NotApplicable,
    /// A session was opened.
    Session,
    Request(OpCode),
}

impl LastOp {
    /// Returns the text that ZooKeeper prints.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Nothing => "null",
            Self::Session => "SESS",
            Self::Request(op) => op.short_name(),
            Self::NotApplicable => "NA",
        }
    }

    /// Returns the protocol's name of the request; `None` if it is not known.
    pub(crate) const fn name(self) -> Option<&'static str> {
        match self {
            Self::Nothing | Self::NotApplicable => None,
            Self::Session => Some(OpCode::CreateSession.name()),
            Self::Request(op) => Some(op.name()),
        }
    }

    /// Classifies an input that got a reply; `None` if ZooKeeper does not count it.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "part of every turn, which has two callers"
    )]
    fn of(input: &Input, failed: bool) -> Option<Self> {
        match input {
            Input::Connect { .. } => Some(Self::Session),
            Input::Request { request, .. } => match request {
                Request::Auth { .. } | Request::Sasl { .. } => None,
                _ if failed && is_plain_write(request.op()) => Some(Self::NotApplicable),
                _ => Some(Self::Request(request.op())),
            },
            Input::Undecodable { .. } | Input::Refused { .. } => Some(Self::NotApplicable),
            _ => None,
        }
    }
}

/// Returns the xid of an input if its client chose it: pings and the like have fixed ones.
fn chosen_xid(input: &Input) -> Option<Xid> {
    let xid = match input {
        Input::Connect { .. } => Xid(0),
        Input::Request { xid, request, .. } => match request {
            Request::Ping | Request::Auth { .. } | Request::Sasl { .. } => return None,
            _ => *xid,
        },
        Input::Undecodable { xid, .. } | Input::Refused { xid, .. } => *xid,
        _ => return None,
    };
    (xid.0 >= 0).then_some(xid)
}

/// Returns whether ZooKeeper no longer knows the operation once it has failed.
const fn is_plain_write(op: OpCode) -> bool {
    matches!(
        op,
        OpCode::Create
            | OpCode::Create2
            | OpCode::CreateContainer
            | OpCode::CreateTtl
            | OpCode::Delete
            | OpCode::SetData
            | OpCode::SetAcl
            | OpCode::Reconfig
    )
}

/// One connection's counters. Kept small, because an idle session must cost less than 1 KiB in all.
#[derive(Clone, Debug)]
pub struct ConnStats {
    /// The connection's number on this server, which is never reused.
    pub(crate) number: u64,
    pub peer: Peer,
    /// The number of the server of the ensemble that accepted it; 0 for none.
    pub server: u8,
    /// When it was accepted, in milliseconds since 1970.
    pub established_ms: i64,
    /// Valid frames received, four-letter words included.
    pub received: u64,
    /// Frames that its own turns sent; the outbox counts those of other turns.
    pub sent: u64,
    /// The number of timed replies.
    pub(crate) timed: u64,
    /// The sum of their latencies. Unit: milliseconds.
    pub(crate) latency_sum_ms: u64,
    pub last_zxid: Zxid,
    /// When the last timed reply was sent, in milliseconds since the start.
    pub last_reply_ms: u64,
    /// The last xid that the client chose itself.
    pub last_xid: Option<Xid>,
    pub latency_last_ms: u32,
    pub latency_max_ms: u32,
    /// Stays at its initial 0 until a reset sets it to `u32::MAX`, as in ZooKeeper.
    pub latency_min_ms: u32,
    pub last_op: LastOp,
    /// Whether it sent a four-letter word.
    pub is_word: bool,
}

/// The counts of one turn for its own connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Served {
    /// The number of its requests that were applied.
    pub(crate) applied: u64,
    /// The number of replies to it, those to handshakes included.
    pub(crate) replies: u64,
    /// The number of events for it.
    pub(crate) events: u64,
    /// The number of timed replies.
    pub(crate) timed: u64,
    pub(crate) zxid: Zxid,
    pub(crate) latency_ms: u32,
    /// When the turn ended, in milliseconds since the start.
    pub(crate) at_ms: u64,
}

impl ConnStats {
    pub(crate) const fn new(number: u64, peer: Peer, server: u8, established_ms: i64) -> Self {
        Self {
            number,
            peer,
            server,
            established_ms,
            received: 0,
            sent: 0,
            timed: 0,
            latency_sum_ms: 0,
            last_zxid: Zxid(0),
            last_reply_ms: 0,
            last_xid: Some(Xid(0)),
            latency_last_ms: 0,
            latency_max_ms: 0,
            latency_min_ms: 0,
            last_op: LastOp::Nothing,
            is_word: false,
        }
    }

    /// Resets the counters as `crst` does.
    pub(crate) fn reset(&mut self) {
        let peer = std::mem::replace(&mut self.peer, Peer::Local);
        *self = Self {
            last_zxid: Zxid::NONE,
            last_xid: None,
            latency_min_ms: u32::MAX,
            last_op: LastOp::NotApplicable,
            is_word: self.is_word,
            ..Self::new(self.number, peer, self.server, self.established_ms)
        };
    }

    /// Counts a turn that applied these inputs. `failed` says whether the last reply was an error.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "part of every turn, which has two callers"
    )]
    pub(crate) fn count(&mut self, served: &Served, inputs: &[Input], failed: bool) {
        self.received += served.applied;
        self.sent += served.replies + served.events;
        if served.timed == 0 {
            return;
        }
        self.timed += served.timed;
        self.latency_sum_ms += u64::from(served.latency_ms) * served.timed;
        self.latency_last_ms = served.latency_ms;
        self.latency_max_ms = self.latency_max_ms.max(served.latency_ms);
        self.latency_min_ms = self.latency_min_ms.min(served.latency_ms);
        self.last_reply_ms = served.at_ms;
        self.last_zxid = served.zxid;
        if let Some(op) = inputs.last().and_then(|last| LastOp::of(last, failed)) {
            self.last_op = op;
        }
        if let Some(xid) = inputs.iter().rev().find_map(chosen_xid) {
            self.last_xid = Some(xid);
        }
    }

    /// Returns the average latency in whole milliseconds, rounded down as in ZooKeeper.
    pub fn latency_avg_ms(&self) -> u64 {
        self.latency_sum_ms.checked_div(self.timed).unwrap_or(0)
    }
}

/// The smallest, largest and last of a series of sizes. Unit: bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sizes {
    /// Greater than `max` while there is none.
    pub min: usize,
    pub max: usize,
    pub last: usize,
}

impl Default for Sizes {
    fn default() -> Self {
        Self {
            min: usize::MAX,
            max: 0,
            last: 0,
        }
    }
}

impl Sizes {
    pub const fn is_empty(&self) -> bool {
        self.min > self.max
    }

    fn add(&mut self, bytes: usize) {
        self.min = self.min.min(bytes);
        self.max = self.max.max(bytes);
        self.last = bytes;
    }
}

/// The length prefix of a frame, which ZooKeeper does not count. Unit: bytes.
const LENGTH_BYTES: usize = 4;

/// The server's counters since its start, or since `srst`.
#[derive(Clone, Debug, Default)]
pub struct Counters {
    /// Valid frames received, four-letter words included.
    pub packets_received: u64,
    /// Frames sent.
    pub packets_sent: u64,
    /// Bytes of the frames received, length prefixes included.
    pub bytes_received: u64,
    /// Bytes of replies to requests other than pings.
    pub response_bytes: u64,
    /// Bytes of events.
    pub watch_bytes: u64,
    pub response_sizes: Sizes,
    /// Handshakes, and those of them that resumed a session.
    pub handshakes: u64,
    pub revalidations: u64,
    /// Connections closed by their client.
    pub dropped: u64,
    pub sessions_expired: u64,
    pub read_latency: Latency,
    pub update_latency: Latency,
    pub limit_hits: LimitHits,
}

impl Counters {
    /// Resets the counters as `srst` does.
    pub fn reset(&mut self) {
        *self = Self::default();
    }

    /// Counts the size of a reply, given with its length prefix. The turn counts that it was sent.
    #[inline]
    pub(crate) fn reply(&mut self, frame_bytes: usize) {
        let bytes = frame_bytes - LENGTH_BYTES;
        self.response_sizes.add(bytes);
        self.response_bytes += bytes as u64;
    }

    /// Subtracts the reply to a ping again, which ZooKeeper leaves out of the sum.
    pub(crate) const fn ping(&mut self, frame_bytes: usize) {
        self.response_bytes -= (frame_bytes - LENGTH_BYTES) as u64;
    }

    pub(crate) fn event(&mut self, frame_bytes: usize) {
        let bytes = frame_bytes - LENGTH_BYTES;
        self.packets_sent += 1;
        self.response_sizes.add(bytes);
        self.watch_bytes += bytes as u64;
    }

    /// Counts a connection's turn. Each update, failed or not, has taken one zxid.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "part of every turn, which has two callers"
    )]
    pub(crate) fn count(&mut self, served: &Served, zxid_before: Zxid) {
        self.packets_sent += served.replies;
        self.packets_received += served.applied;
        let updates = (served.zxid.0 - zxid_before.0).cast_unsigned();
        let updates = updates.min(served.timed);
        self.update_latency.add(served.latency_ms, updates);
        self.read_latency
            .add(served.latency_ms, served.timed - updates);
    }

    /// Returns the latency of reads and updates together.
    pub fn latency(&self) -> Latency {
        self.read_latency.clone().with(&self.update_latency)
    }
}
