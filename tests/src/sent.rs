//! What a server sends, taken apart as the connection it is for would.

use bytes::Bytes;
use minikeeper_engine::CloseReason;
use minikeeper_protocol::{
    ConnectResponse, DecodeError, ErrorCode, EventKind, MultiResult, OpCode, Reader, Reply,
    ReplyHeader, WatcherEvent, Xid, Zxid, frame, multi,
};

/// One thing the server did, as the connection it is for sees it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Sent {
    /// The answer to a handshake.
    Connected(ConnectResponse),
    /// The answer to a request.
    Reply {
        /// The request's number.
        xid: Xid,
        /// The state it was answered from.
        zxid: Zxid,
        /// The body, or why the request was refused.
        outcome: Result<Reply, ErrorCode>,
    },
    /// The answer to a multiRead that ended on the spot: refused, with what was read before.
    ///
    /// Source: `docs/zookeeper-protocol.md` section 13.4.
    BrokenOff {
        /// The request's number.
        xid: Xid,
        /// The state it was answered from.
        zxid: Zxid,
        /// Why.
        error: ErrorCode,
        /// The outcomes so far.
        results: Vec<MultiResult>,
    },
    /// A watch fired.
    Event {
        /// What happened.
        kind: EventKind,
        /// To which znode.
        path: String,
        /// The change that caused it.
        zxid: Zxid,
    },
    /// The connection is to be closed.
    Close(CloseReason),
}

impl Sent {
    /// Sorts the names in a listing, which come in any order.
    ///
    /// Source: `docs/zookeeper-protocol.md` sections 10.11 and 10.21.
    pub fn sort_names(&mut self) {
        let reply = match self {
            Self::BrokenOff { results, .. } => return sort_in_results(results),
            Self::Reply {
                outcome: Ok(reply), ..
            } => reply,
            _ => return,
        };
        match reply {
            Reply::Children(names) | Reply::Children2(names, _) | Reply::Ephemerals(names) => {
                names.sort();
            }
            Reply::Multi(results) => sort_in_results(results),
            _ => {}
        }
    }
}

fn sort_in_results(results: &mut [MultiResult]) {
    for result in results {
        if let MultiResult::GetChildren { names } = result {
            names.sort();
        }
    }
}

/// One effect with its connection and its bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Effect {
    /// Whom it is for.
    pub conn: u32,
    /// What it says.
    pub sent: Sent,
    /// The message without its length prefix; empty for [`Sent::Close`].
    pub message: Bytes,
}

/// The message in the one frame that `out` holds.
pub(crate) fn message(out: &[u8]) -> Bytes {
    let body = frame::next(out, usize::MAX)
        .ok()
        .flatten()
        .expect("what was put is a whole frame");
    assert_eq!(body.end, out.len(), "one frame was put");
    Bytes::copy_from_slice(&out[body])
}

/// Takes a message from a server apart.
///
/// `op` is the operation the oldest unanswered request asked for; `None` if there is none.
///
/// # Errors
/// When the message is malformed, or has bytes left over.
pub fn parse(message: &Bytes, op: Option<OpCode>) -> Result<Sent, String> {
    let mut reader = Reader::new(message);
    let fault = |error: DecodeError| format!("message from the server: {error}");
    let header = ReplyHeader::decode(&mut reader).map_err(fault)?;
    let sent = if header.xid == Xid::EVENT {
        let event = WatcherEvent::decode(&mut reader).map_err(fault)?;
        Sent::Event {
            kind: event.kind,
            path: event.path.to_str_lossy().into_owned(),
            zxid: header.zxid,
        }
    } else if let (Some(error), Some(OpCode::MultiRead), 1..) =
        (header.error, op, reader.remaining())
    {
        Sent::BrokenOff {
            xid: header.xid,
            zxid: header.zxid,
            error,
            results: multi::decode_results(&mut reader).map_err(fault)?,
        }
    } else {
        let outcome = match (header.error, op) {
            (Some(error), _) => Err(error),
            (None, Some(op)) => Ok(Reply::decode(op, &mut reader).map_err(fault)?),
            (None, None) => return Err("a reply without a request".to_owned()),
        };
        Sent::Reply {
            xid: header.xid,
            zxid: header.zxid,
            outcome,
        }
    };
    if reader.remaining() > 0 {
        return Err(format!("{} bytes behind {sent:?}", reader.remaining()));
    }
    Ok(sent)
}
