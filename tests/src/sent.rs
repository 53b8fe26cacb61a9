//! Decodes what a server sends, as the receiving client would.

use bytes::Bytes;
use minikeeper_engine::CloseReason;
use minikeeper_protocol::{
    ConnectResponse, DecodeError, ErrorCode, EventKind, MultiResult, OpCode, Reader, Reply,
    ReplyHeader, WatcherEvent, Xid, Zxid, frame, multi,
};

/// One message or close of a server, as its connection sees it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Sent {
    /// The response to a handshake.
    Connected(ConnectResponse),
    /// The reply to a request.
    Reply {
        /// The xid of the request.
        xid: Xid,
        /// The zxid in the reply header.
        zxid: Zxid,
        /// The body, or the error code.
        outcome: Result<Reply, ErrorCode>,
    },
    /// The error reply to a multiRead that stopped midway, with the results so far.
    ///
    /// Source: `docs/zookeeper-protocol.md` section 13.4.
    BrokenOff {
        /// The xid of the request.
        xid: Xid,
        /// The zxid in the reply header.
        zxid: Zxid,
        /// The error code.
        error: ErrorCode,
        /// The results before the error.
        results: Vec<MultiResult>,
    },
    /// A watch fired.
    Event {
        /// The type of the event.
        kind: EventKind,
        /// The path of the znode.
        path: String,
        /// The zxid of the change that fired the watch.
        zxid: Zxid,
    },
    /// The server closes the connection.
    Close(CloseReason),
}

impl Sent {
    /// Sorts the names in listings, whose order is unspecified.
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

/// One effect, with its connection and its encoded form.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Effect {
    /// The connection that receives it.
    pub conn: u32,
    /// The decoded effect.
    pub sent: Sent,
    /// The message without its length prefix; empty for [`Sent::Close`].
    pub message: Bytes,
}

/// Returns the message in the only frame of `out`.
pub(crate) fn message(out: &[u8]) -> Bytes {
    let body = frame::next(out, usize::MAX)
        .ok()
        .flatten()
        .expect("the output is a whole frame");
    assert_eq!(body.end, out.len(), "the output is one frame");
    Bytes::copy_from_slice(&out[body])
}

/// Decodes a message from a server.
///
/// `op` is the operation of the oldest unanswered request; `None` if there is none.
///
/// # Errors
/// When the message is malformed, or longer than its content.
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
            (None, None) => return Err("reply without a request".to_owned()),
        };
        Sent::Reply {
            xid: header.xid,
            zxid: header.zxid,
            outcome,
        }
    };
    if reader.remaining() > 0 {
        return Err(format!(
            "{} bytes left over after {sent:?}",
            reader.remaining()
        ));
    }
    Ok(sent)
}
