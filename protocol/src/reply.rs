//! Replies of servers.
//!
//! There are two forms of the same records. [`ReplyRef`] borrows from the server's state and is
//! only encoded: a listing of ten thousand names goes from the tree to the output without a vector
//! in between. [`Reply`] owns its parts; clients decode it.
//!
//! Source: `docs/zookeeper-protocol.md` sections 4 and 7.2.

use std::fmt;

use bytes::Bytes;

use crate::{
    acl::AclList,
    error::{DecodeError, ErrorCode},
    frame,
    ids::{Xid, Zxid},
    jute::{self, Reader, Ustring},
    multi::{self, MultiReadResults, MultiResult},
    request::OpCode,
    stat::Stat,
    within::Within,
};

/// The header of every reply and event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReplyHeader {
    /// The request's number; [`Xid::EVENT`] for events, [`Xid::PING`] for pings.
    pub xid: Xid,
    /// The zxid of the last change when the request was served.
    pub zxid: Zxid,
    /// The error, if the request was refused.
    pub error: Option<ErrorCode>,
}

impl ReplyHeader {
    /// The size on the wire, in bytes.
    pub const BYTES: usize = 16;

    /// Reads the header.
    ///
    /// # Errors
    /// When the message has fewer than sixteen bytes.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (xid, zxid, code) = (reader.int()?, reader.long()?, reader.int()?);
        let error = (code != 0).then(|| ErrorCode::from_code(code));
        Ok(Self {
            xid: Xid(xid),
            zxid: Zxid(zxid),
            error,
        })
    }

    /// Appends the header.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut wire = [0; Self::BYTES];
        self.write(&mut wire);
        out.extend_from_slice(&wire);
    }

    #[inline]
    fn write(&self, wire: &mut [u8; Self::BYTES]) {
        wire[..4].copy_from_slice(&self.xid.0.to_be_bytes());
        wire[4..12].copy_from_slice(&self.zxid.0.to_be_bytes());
        wire[12..].copy_from_slice(&self.error.map_or(0, ErrorCode::code).to_be_bytes());
    }
}

/// An identity of a connection, as whoAmI lists it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClientInfo {
    /// The scheme.
    pub scheme: Ustring,
    /// The identity, without secrets.
    pub user: Ustring,
}

/// The body of a successful reply, borrowed from the server's state.
pub enum ReplyRef<'a> {
    /// delete, ping, setWatches, checkWatches, removeWatches, auth, closeSession, or an error.
    Empty,
    /// create and sync; sync may echo null.
    Path(Option<&'a [u8]>),
    /// create2, createContainer, createTTL.
    PathStat(&'a [u8], &'a Stat),
    /// exists, setData, setACL.
    Stat(&'a Stat),
    /// getData.
    Data(Option<&'a [u8]>, &'a Stat),
    /// getChildren, and getChildren2 with the stat.
    Children(
        &'a mut dyn ExactSizeIterator<Item = &'a [u8]>,
        Option<&'a Stat>,
    ),
    /// getACL.
    Acl(&'a AclList, &'a Stat),
    /// multi and multiRead.
    Multi(&'a [MultiResult]),
    /// multiRead, with its results encoded from the state one by one.
    MultiRead(&'a dyn Fn(&mut MultiReadResults<'_, '_>)),
    /// getEphemerals.
    Ephemerals(&'a mut dyn ExactSizeIterator<Item = &'a [u8]>),
    /// getAllChildrenNumber.
    Count(i32),
    /// addWatch, whose body is four zero bytes.
    WatchAdded,
    /// sasl.
    Token(Option<&'a [u8]>),
    /// whoAmI.
    ClientInfos(&'a [ClientInfo]),
}

impl fmt::Debug for ReplyRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "Empty",
            Self::Path(_) => "Path",
            Self::PathStat(..) => "PathStat",
            Self::Stat(_) => "Stat",
            Self::Data(..) => "Data",
            Self::Children(..) => "Children",
            Self::Acl(..) => "Acl",
            Self::Multi(_) => "Multi",
            Self::MultiRead(_) => "MultiRead",
            Self::Ephemerals(_) => "Ephemerals",
            Self::Count(_) => "Count",
            Self::WatchAdded => "WatchAdded",
            Self::Token(_) => "Token",
            Self::ClientInfos(_) => "ClientInfos",
        })
    }
}

/// A reply that exceeds the limit. Nothing was appended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReplyTooLong {
    /// The limit. Unit: bytes, without the length prefix.
    pub bytes_max: usize,
}

impl fmt::Display for ReplyTooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "reply exceeds the limit of {} bytes", self.bytes_max)
    }
}

impl std::error::Error for ReplyTooLong {}

impl ReplyRef<'_> {
    /// The maximum length of a reply that the length prefix can express. Unit: bytes.
    pub const BYTES_MAX: usize = i32::MAX as usize;

    /// Appends the reply as a frame, header included.
    ///
    /// Measures each part before copying it, so a reply that is too long takes no more memory than
    /// one of `bytes_max`.
    ///
    /// # Errors
    /// When the message would be longer than `bytes_max`, or than [`Self::BYTES_MAX`].
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "three percent of a getData, counted: the variant is known where it is called"
    )]
    pub fn encode(
        self,
        header: ReplyHeader,
        out: &mut Vec<u8>,
        bytes_max: usize,
    ) -> Result<(), ReplyTooLong> {
        // Frequent replies are measured once, as a whole.
        match self {
            Self::Empty => encode_whole(header, 0, out, bytes_max, |_| {}),
            Self::Path(path) => {
                let bytes = jute::buffer_bytes(path);
                encode_whole(header, bytes, out, bytes_max, |out| {
                    jute::put_buffer(out, path);
                })
            }
            Self::PathStat(path, stat) => {
                let path = Some(path);
                let bytes = jute::buffer_bytes(path) + Stat::BYTES;
                encode_whole(header, bytes, out, bytes_max, |out| {
                    jute::put_buffer(out, path);
                    stat.encode(out);
                })
            }
            Self::Stat(stat) => {
                encode_whole(header, Stat::BYTES, out, bytes_max, |out| stat.encode(out))
            }
            Self::Data(data, stat) => {
                let bytes = jute::buffer_bytes(data) + Stat::BYTES;
                encode_whole(header, bytes, out, bytes_max, |out| {
                    jute::put_buffer(out, data);
                    stat.encode(out);
                })
            }
            other => other.encode_in_parts(header, out, bytes_max),
        }
    }

    /// Does the same as [`Self::encode`], but measures each part separately before copying it.
    fn encode_in_parts(
        self,
        header: ReplyHeader,
        out: &mut Vec<u8>,
        bytes_max: usize,
    ) -> Result<(), ReplyTooLong> {
        // The prefix is filled in below, once the length is known.
        let start = out.len();
        encode_whole(header, 0, out, bytes_max, |_| {})?;
        let body = start + frame::PREFIX_BYTES;
        let end = body.saturating_add(bytes_max.min(Self::BYTES_MAX));
        let has_fit = self.encode_body(&mut Within { out, end }).is_some();
        match i32::try_from(out.len() - body) {
            Ok(length) if has_fit => {
                out[start..body].copy_from_slice(&length.to_be_bytes());
                Ok(())
            }
            _ => {
                out.truncate(start);
                Err(ReplyTooLong { bytes_max })
            }
        }
    }

    /// Appends only the body. Returns `None` if it does not fit.
    fn encode_body(self, out: &mut Within<'_>) -> Option<()> {
        match self {
            Self::Empty => Some(()),
            Self::Path(path) => out.put_buffer(path),
            Self::PathStat(path, stat) => {
                out.put_buffer(Some(path))?;
                out.put_stat(stat)
            }
            Self::Stat(stat) => out.put_stat(stat),
            Self::Data(data, stat) => out.put_data(data, stat),
            Self::Children(names, stat) => {
                out.put_buffers(names)?;
                stat.map_or(Some(()), |stat| out.put_stat(stat))
            }
            Self::Acl(acl, stat) => {
                out.put_acl(acl)?;
                out.put_stat(stat)
            }
            Self::Multi(results) => multi::put_results(results, out),
            Self::MultiRead(results) => MultiReadResults::encode(results, out),
            Self::Ephemerals(paths) => out.put_buffers(paths),
            Self::Count(count) => out.put_int(count),
            Self::WatchAdded => out.put_int(0),
            Self::Token(token) => out.put_buffer(token),
            Self::ClientInfos(infos) => {
                out.put_count(infos.len())?;
                for info in infos {
                    out.put_buffer(Some(info.scheme.as_bytes()))?;
                    out.put_buffer(Some(info.user.as_bytes()))?;
                }
                Some(())
            }
        }
    }
}

/// Appends a frame unless it is too long. `put_body` appends the body, of `body_bytes` bytes.
#[inline(never)]
fn encode_whole(
    header: ReplyHeader,
    body_bytes: usize,
    out: &mut Vec<u8>,
    bytes_max: usize,
    put_body: impl FnOnce(&mut Vec<u8>),
) -> Result<(), ReplyTooLong> {
    let bytes = ReplyHeader::BYTES + body_bytes;
    let length = match i32::try_from(bytes) {
        Ok(length) if bytes <= bytes_max => length,
        _ => return Err(ReplyTooLong { bytes_max }),
    };
    let mut head = [0; frame::PREFIX_BYTES + ReplyHeader::BYTES];
    head[..frame::PREFIX_BYTES].copy_from_slice(&length.to_be_bytes());
    if let Some((_, wire)) = head.split_last_chunk_mut() {
        header.write(wire);
    }
    out.extend_from_slice(&head);
    put_body(out);
    Ok(())
}

/// The record of a successful reply; the table in `request.rs` sets it for each operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReplyKind {
    /// There is no reply: check, createSession.
    None,
    /// [`Reply::Empty`].
    Empty,
    /// [`Reply::Path`].
    Path,
    /// [`Reply::PathStat`].
    PathStat,
    /// [`Reply::Stat`].
    Stat,
    /// [`Reply::Data`].
    Data,
    /// [`Reply::Children`].
    Children,
    /// [`Reply::Children2`].
    Children2,
    /// [`Reply::Acl`].
    Acl,
    /// [`Reply::Multi`].
    Multi,
    /// [`Reply::Ephemerals`].
    Ephemerals,
    /// [`Reply::Count`].
    Count,
    /// [`Reply::WatchAdded`].
    WatchAdded,
    /// [`Reply::Token`].
    Token,
    /// [`Reply::ClientInfos`].
    ClientInfos,
}

/// The body of a successful reply, owned, as a client decodes it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reply {
    /// delete, ping, setWatches, checkWatches, removeWatches, auth, closeSession.
    Empty,
    /// create and sync; sync may echo null.
    Path(Option<Ustring>),
    /// create2, createContainer, createTTL.
    PathStat(Ustring, Stat),
    /// exists, setData, setACL.
    Stat(Stat),
    /// getData.
    Data(Option<Bytes>, Stat),
    /// getChildren.
    Children(Vec<Ustring>),
    /// getChildren2.
    Children2(Vec<Ustring>, Stat),
    /// getACL.
    Acl(AclList, Stat),
    /// multi and multiRead.
    Multi(Vec<MultiResult>),
    /// getEphemerals.
    Ephemerals(Vec<Ustring>),
    /// getAllChildrenNumber.
    Count(i32),
    /// addWatch.
    WatchAdded,
    /// sasl.
    Token(Option<Bytes>),
    /// whoAmI.
    ClientInfos(Vec<ClientInfo>),
}

impl Reply {
    /// Reads the body of a successful reply to `op`. Ignores trailing bytes.
    ///
    /// # Errors
    /// When the body is malformed, or the operation has no reply (check, createSession).
    pub fn decode(op: OpCode, reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(match op.reply() {
            ReplyKind::Empty => Self::Empty,
            ReplyKind::Path => Self::Path(reader.ustring()?),
            ReplyKind::PathStat => {
                let path = reader
                    .ustring()?
                    .ok_or(DecodeError::Null { field: "path" })?;
                Self::PathStat(path, Stat::decode(reader)?)
            }
            ReplyKind::Stat => Self::Stat(Stat::decode(reader)?),
            ReplyKind::Data => Self::Data(reader.buffer()?, Stat::decode(reader)?),
            ReplyKind::Children => Self::Children(names(reader)?),
            ReplyKind::Children2 => Self::Children2(names(reader)?, Stat::decode(reader)?),
            ReplyKind::Acl => Self::Acl(AclList::decode(reader)?, Stat::decode(reader)?),
            ReplyKind::Multi => Self::Multi(multi::decode_results(reader)?),
            ReplyKind::Ephemerals => Self::Ephemerals(names(reader)?),
            ReplyKind::Count => Self::Count(reader.int()?),
            ReplyKind::WatchAdded => {
                let _error = reader.int()?;
                Self::WatchAdded
            }
            ReplyKind::Token => Self::Token(reader.buffer()?),
            ReplyKind::ClientInfos => {
                let count = reader.count()?.unwrap_or(0);
                let mut infos = Vec::new();
                for _ in 0..count {
                    infos.push(ClientInfo {
                        scheme: reader.ustring()?.unwrap_or_default(),
                        user: reader.ustring()?.unwrap_or_default(),
                    });
                }
                Self::ClientInfos(infos)
            }
            ReplyKind::None => {
                return Err(DecodeError::Value {
                    field: "operation",
                    value: op.code().into(),
                });
            }
        })
    }

    /// Appends the reply as a frame, header included.
    ///
    /// # Errors
    /// As [`ReplyRef::encode`].
    pub fn encode(
        &self,
        header: ReplyHeader,
        out: &mut Vec<u8>,
        bytes_max: usize,
    ) -> Result<(), ReplyTooLong> {
        match self {
            Self::Empty => ReplyRef::Empty.encode(header, out, bytes_max),
            Self::Path(path) => {
                ReplyRef::Path(path.as_ref().map(Ustring::as_bytes)).encode(header, out, bytes_max)
            }
            Self::PathStat(path, stat) => {
                ReplyRef::PathStat(path.as_bytes(), stat).encode(header, out, bytes_max)
            }
            Self::Stat(stat) => ReplyRef::Stat(stat).encode(header, out, bytes_max),
            Self::Data(data, stat) => {
                ReplyRef::Data(data.as_deref(), stat).encode(header, out, bytes_max)
            }
            Self::Children(names) => {
                let mut names = names.iter().map(Ustring::as_bytes);
                ReplyRef::Children(&mut names, None).encode(header, out, bytes_max)
            }
            Self::Children2(names, stat) => {
                let mut names = names.iter().map(Ustring::as_bytes);
                ReplyRef::Children(&mut names, Some(stat)).encode(header, out, bytes_max)
            }
            Self::Acl(acl, stat) => ReplyRef::Acl(acl, stat).encode(header, out, bytes_max),
            Self::Multi(results) => ReplyRef::Multi(results).encode(header, out, bytes_max),
            Self::Ephemerals(paths) => {
                let mut paths = paths.iter().map(Ustring::as_bytes);
                ReplyRef::Ephemerals(&mut paths).encode(header, out, bytes_max)
            }
            Self::Count(count) => ReplyRef::Count(*count).encode(header, out, bytes_max),
            Self::WatchAdded => ReplyRef::WatchAdded.encode(header, out, bytes_max),
            Self::Token(token) => ReplyRef::Token(token.as_deref()).encode(header, out, bytes_max),
            Self::ClientInfos(infos) => ReplyRef::ClientInfos(infos).encode(header, out, bytes_max),
        }
    }
}

fn names(reader: &mut Reader<'_>) -> Result<Vec<Ustring>, DecodeError> {
    Ok(reader.ustrings()?.unwrap_or_default())
}
