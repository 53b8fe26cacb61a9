//! The compact form of a journal's entries.
//!
//! Each record has a head of fixed length and two texts. What the records of a turn have in common,
//! which is most of what an entry says of a request, stands before them once, as a context.

use std::net::{IpAddr, SocketAddr};

use minikeeper_engine::Now;
use minikeeper_protocol::{ReplyHeader, SessionId, Zxid};

use crate::peer::Peer;

/// The longest path or text that a record keeps. Unit: bytes.
const TEXT_BYTES_MAX: usize = 1_024;

/// The length of a record's head. Unit: bytes.
const HEAD_BYTES: usize = 32;

/// The length of a context. Unit: bytes.
const CONTEXT_BYTES: usize = 64;

/// The first byte of a context, where a record has its kind.
const CONTEXT: u8 = u8::MAX;

/// Where [`Context::micros`] is.
const MICROS_AT: usize = 60;

/// The kind of a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub enum RecordKind {
    #[default]
    Request,
    Event,
    Fault,
    SessionBegan,
    SessionEnded,
    ConnectionOpened,
    ConnectionClosed,
    Clock,
    Verb,
    Omitted,
    Deleted,
}

impl RecordKind {
    const ALL: [Self; 11] = [
        Self::Request,
        Self::Event,
        Self::Fault,
        Self::SessionBegan,
        Self::SessionEnded,
        Self::ConnectionOpened,
        Self::ConnectionClosed,
        Self::Clock,
        Self::Verb,
        Self::Omitted,
        Self::Deleted,
    ];
}

/// What consecutive records have in common.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Context {
    pub(crate) now: Now,
    /// The connection's number; 0 for none.
    pub(crate) conn: u64,
    pub(crate) session: SessionId,
    /// The client's end, if a connection is concerned; `None` for this process, too.
    pub(crate) address: Option<SocketAddr>,
    /// How long the turn took. Unit: microseconds.
    pub(crate) micros: u32,
}

/// What a record contains beside its context and texts. Which fields have a meaning depends on the
/// kind.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Record {
    pub(crate) kind: RecordKind,
    /// A watch is set; an event is held back; a session is new, or has expired.
    pub(crate) is_flagged: bool,
    pub(crate) has_no_reply: bool,
    pub(crate) zxid: Zxid,
    pub(crate) xid: i32,
    /// The operation's code, that of the event's kind, or that of the reason of a deletion; 0 if it is not known.
    pub(crate) op: i32,
    /// The code of the error in the reply; 0 if there is none.
    pub(crate) error: i32,
    /// The version, create mode or watch mode in the request.
    pub(crate) flags: i32,
    /// The length of the data, the number of operations, or a timeout in milliseconds.
    pub(crate) number: u32,
    /// The number of the request that caused it, or of the fault; 0 for none.
    pub(crate) cause: u64,
}

/// A record read from a journal.
pub(crate) struct DecodedRecord<'a> {
    pub(crate) context: Context,
    pub(crate) record: Record,
    pub(crate) text: &'a [u8],
    pub(crate) more: &'a [u8],
}

/// Cuts off what is too long for a record.
pub(crate) fn bounded(text: &[u8]) -> &[u8] {
    &text[..text.len().min(TEXT_BYTES_MAX)]
}

/// Returns the address of a client, as a context has it.
pub(crate) fn address_of(peer: &Peer) -> Option<SocketAddr> {
    match peer {
        Peer::Local => None,
        Peer::V4(ip, port) => Some((*ip, *port).into()),
        Peer::V6(address) => Some((*address.ip(), address.port()).into()),
    }
}

impl Context {
    /// Appends the context.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let mut bytes = [0; CONTEXT_BYTES];
        let mut put = |at: usize, part: &[u8]| bytes[at..at + part.len()].copy_from_slice(part);
        put(0, &[CONTEXT]);
        put(8, &self.now.elapsed_ms.to_le_bytes());
        put(16, &self.now.wall_ms.to_le_bytes());
        put(24, &self.conn.to_le_bytes());
        put(32, &self.session.0.to_le_bytes());
        if let Some(address) = self.address {
            match address.ip() {
                IpAddr::V4(ip) => {
                    put(1, &[4]);
                    put(40, &ip.octets());
                }
                IpAddr::V6(ip) => {
                    put(1, &[6]);
                    put(40, &ip.octets());
                }
            }
            put(56, &address.port().to_le_bytes());
        }
        put(MICROS_AT, &self.micros.to_le_bytes());
        out.extend_from_slice(&bytes);
    }

    fn decode(bytes: &[u8; CONTEXT_BYTES]) -> Self {
        let port = u16::from_le_bytes(part(bytes, 56));
        let address = match bytes[1] {
            4 => Some((IpAddr::from(part::<4>(bytes, 40)), port).into()),
            6 => Some((IpAddr::from(part::<16>(bytes, 40)), port).into()),
            _ => None,
        };
        Self {
            now: Now {
                elapsed_ms: u64::from_le_bytes(part(bytes, 8)),
                wall_ms: i64::from_le_bytes(part(bytes, 16)),
            },
            conn: u64::from_le_bytes(part(bytes, 24)),
            session: SessionId(i64::from_le_bytes(part(bytes, 32))),
            address,
            micros: u32::from_le_bytes(part(bytes, MICROS_AT)),
        }
    }
}

impl Record {
    /// Creates the record of an input with this reply.
    #[inline]
    pub(crate) fn replied(reply: Option<ReplyHeader>) -> Self {
        Self {
            zxid: reply.map_or_else(Zxid::default, |reply| reply.zxid),
            error: reply
                .and_then(|reply| reply.error)
                .map_or(0, |error| error.code()),
            has_no_reply: reply.is_none(),
            ..Self::default()
        }
    }

    /// Appends the record with its texts.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "two percent of a getData with a journal, counted"
    )]
    pub(crate) fn encode(&self, text: &[u8], more: &[u8], out: &mut Vec<u8>) {
        let flags = u8::from(self.is_flagged)
            | u8::from(self.has_no_reply) << 1
            | u8::from(self.cause > 0) << 2;
        let mut head = [0; HEAD_BYTES];
        macro_rules! put {
            ($at:literal, $bytes:expr) => {{
                let bytes = $bytes;
                head[$at..$at + bytes.len()].copy_from_slice(&bytes);
            }};
        }
        put!(0, [self.kind as u8, flags]);
        put!(2, narrow(text.len()));
        put!(4, narrow(more.len()));
        put!(6, narrow_code(self.op));
        put!(8, narrow_code(self.error));
        put!(12, self.xid.to_le_bytes());
        put!(16, self.flags.to_le_bytes());
        put!(20, self.number.to_le_bytes());
        put!(24, self.zxid.0.to_le_bytes());
        out.extend_from_slice(&head);
        out.extend_from_slice(text);
        if !more.is_empty() {
            out.extend_from_slice(more);
        }
        if self.cause > 0 {
            out.extend_from_slice(&self.cause.to_le_bytes());
        }
    }
}

/// Reads records, oldest first.
#[derive(Debug)]
pub(crate) struct Decoder<'a> {
    rest: &'a [u8],
    context: Context,
}

impl<'a> Decoder<'a> {
    /// Reads bytes that begin with a context.
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self {
            rest: bytes,
            context: Context::default(),
        }
    }
}

impl<'a> Iterator for Decoder<'a> {
    type Item = DecodedRecord<'a>;

    fn next(&mut self) -> Option<DecodedRecord<'a>> {
        while *self.rest.first()? == CONTEXT {
            let (context, rest) = self.rest.split_first_chunk()?;
            self.context = Context::decode(context);
            self.rest = rest;
        }
        let (head, rest) = self.rest.split_first_chunk::<HEAD_BYTES>()?;
        let length = |at| usize::from(u16::from_le_bytes(part(head, at)));
        let (text, rest) = rest.split_at_checked(length(2))?;
        let (more, mut rest) = rest.split_at_checked(length(4))?;
        let mut cause = 0;
        if head[1] & 4 != 0 {
            let (bytes, behind) = rest.split_first_chunk()?;
            cause = u64::from_le_bytes(*bytes);
            rest = behind;
        }
        self.rest = rest;
        let record = Record {
            kind: *RecordKind::ALL.get(usize::from(head[0]))?,
            is_flagged: head[1] & 1 != 0,
            has_no_reply: head[1] & 2 != 0,
            zxid: Zxid(i64::from_le_bytes(part(head, 24))),
            xid: i32::from_le_bytes(part(head, 12)),
            op: i16::from_le_bytes(part(head, 6)).into(),
            error: i16::from_le_bytes(part(head, 8)).into(),
            flags: i32::from_le_bytes(part(head, 16)),
            number: u32::from_le_bytes(part(head, 20)),
            cause,
        };
        Some(DecodedRecord {
            context: self.context,
            record,
            text,
            more,
        })
    }
}

/// Sets how long the turn took in a context.
pub(crate) fn set_micros(context: &mut [u8], micros: u32) {
    context[MICROS_AT..MICROS_AT + 4].copy_from_slice(&micros.to_le_bytes());
}

fn part<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut part = [0; N];
    part.copy_from_slice(&bytes[at..at + N]);
    part
}

/// The lengths of texts are below 64 KiB: a path is cut off, a multi lists 32 operations.
const fn narrow(length: usize) -> [u8; 2] {
    debug_assert!(length <= 0xffff);
    let [low, high, ..] = length.to_le_bytes();
    [low, high]
}

/// The codes of operations and errors are small.
const fn narrow_code(code: i32) -> [u8; 2] {
    debug_assert!(code == code << 16 >> 16);
    let [low, high, ..] = code.to_le_bytes();
    [low, high]
}

/// An operation within a multi.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Operation {
    pub(crate) code: i32,
    pub(crate) flags: i32,
    /// The length of the data. Unit: bytes.
    pub(crate) data: u32,
}

impl Operation {
    const BYTES: usize = 16;

    /// Appends the operation with its path.
    pub(crate) fn encode(&self, path: &[u8], out: &mut Vec<u8>) {
        let path = bounded(path);
        out.extend_from_slice(&self.code.to_le_bytes());
        out.extend_from_slice(&self.flags.to_le_bytes());
        out.extend_from_slice(&self.data.to_le_bytes());
        out.extend_from_slice(&narrow(path.len()));
        out.extend_from_slice(&[0, 0]);
        out.extend_from_slice(path);
    }

    /// Returns the first operation, its path, and what follows.
    pub(crate) fn decode(bytes: &[u8]) -> Option<(Self, &[u8], &[u8])> {
        let head: &[u8; Self::BYTES] = bytes.first_chunk()?;
        let part = |at: usize| [head[at], head[at + 1], head[at + 2], head[at + 3]];
        let operation = Self {
            code: i32::from_le_bytes(part(0)),
            flags: i32::from_le_bytes(part(4)),
            data: u32::from_le_bytes(part(8)),
        };
        let length = usize::from(u16::from_le_bytes([head[12], head[13]]));
        let (path, rest) = bytes[Self::BYTES..].split_at_checked(length)?;
        Some((operation, path, rest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_with_every_combination_of_fields_come_back() {
        let context = Context {
            conn: 7,
            session: SessionId(0x1001),
            ..Context::default()
        };
        let records: Vec<_> = (0..128_u8)
            .map(|combination| {
                let has = |bit: u8| combination & bit != 0;
                let record = Record {
                    kind: RecordKind::Request,
                    is_flagged: has(1),
                    has_no_reply: has(2),
                    zxid: Zxid(if has(4) { -1 } else { 5 }),
                    xid: i32::MIN,
                    op: -11,
                    error: -101,
                    flags: if has(8) { i32::MIN } else { 0 },
                    number: if has(16) { u32::MAX } else { 0 },
                    cause: if has(32) { u64::MAX } else { 0 },
                };
                (record, if has(64) { "/more" } else { "" })
            })
            .collect();
        let mut bytes = Vec::new();
        for (index, (record, more)) in records.iter().enumerate() {
            if index % 10 == 0 {
                context.encode(&mut bytes);
            }
            record.encode(b"/path", more.as_bytes(), &mut bytes);
        }
        let mut decoder = Decoder::new(&bytes);
        for (record, more) in &records {
            let decoded = decoder.next().unwrap();
            assert_eq!(format!("{:?}", decoded.record), format!("{record:?}"));
            assert_eq!(
                (decoded.text, decoded.more),
                (&b"/path"[..], more.as_bytes())
            );
            assert_eq!(decoded.context.conn, 7);
        }
        assert!(decoder.next().is_none());
        for length in 0..bytes.len() {
            assert!(Decoder::new(&bytes[..length]).count() < records.len());
        }
    }
}
