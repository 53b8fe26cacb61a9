//! The ZooKeeper 3.9 client protocol: frames, records and error codes, in both directions.
//!
//! The crate only converts between bytes and values: it has no sockets, no async and no semantics
//! of requests. The same records serve the server (decode a [`Request`], encode a [`ReplyRef`]) and
//! a client (encode a [`Request`], decode a [`Reply`]).
//!
//! Strings and data are reference-counted slices ([`bytes::Bytes`]) of the buffer they were read
//! from, so decoding copies nothing, and no count in the input makes the decoder allocate ahead of
//! the bytes actually received.
//!
//! ```
//! use minikeeper_protocol::{Reader, Request, RequestHeader, Xid, frame};
//!
//! let request = Request::GetData { path: Some("/app/config".into()), watch: true };
//! let mut out = Vec::new();
//! request.encode(Xid(7), &mut out);
//!
//! let body = frame::next(&out, frame::BYTES_MAX_DEFAULT)?.expect("a whole frame was written");
//! let wire = bytes::Bytes::copy_from_slice(&out[body]);
//! let mut reader = Reader::new(&wire);
//! let header = RequestHeader::decode(&mut reader)?;
//! assert_eq!(header.xid, Xid(7));
//! let op = header.op.try_into().expect("getData is a known operation");
//! assert_eq!(Request::decode(op, &mut reader)?, request);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | module | contents |
//! | --- | --- |
//! | [`jute`] | the primitive encodings: int, long, bool, buffer, ustring, vector |
//! | [`frame`] | the length prefix around every message |
//! | [`path`] | [`ZnodePath`] and the rules for paths |
//! | [`request`] | the table of operations, and their requests |
//! | [`reply`], [`create`], [`multi`], [`event`], [`connect`] | the other records |
//! | [`directives`] | the lists in SASL tokens |
//! | [`error`], [`acl`], [`stat`], [`ids`] | the types that the records share |

#[macro_use]
mod table;

pub mod acl;
pub mod connect;
pub mod create;
pub mod directives;
pub mod error;
pub mod event;
pub mod frame;
pub mod ids;
pub mod jute;
pub mod multi;
pub mod path;
mod paths;
pub mod reply;
pub mod request;
pub mod stat;
mod within;

pub use acl::{Acl, AclList, AclRef, Perms};
pub use connect::{ConnectRequest, ConnectResponse};
pub use create::{Create, CreateMode, CreateOp};
pub use error::{DecodeError, ErrorCode};
pub use event::{EventKind, WatcherEvent};
pub use frame::FrameError;
pub use ids::{SessionId, Xid, Zxid};
pub use jute::{Reader, Ustring};
pub use multi::{MultiOp, MultiReadOp, MultiReadResults, MultiResult};
pub use path::{PathError, PathFault, ZnodePath};
pub use reply::{ClientInfo, Reply, ReplyHeader, ReplyKind, ReplyRef, ReplyTooLong};
pub use request::{
    AddWatchMode, FieldKind, OpCode, Request, RequestHeader, UnknownOp, WatcherType,
};
pub use stat::Stat;

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
