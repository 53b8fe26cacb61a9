//! Replies: what a server answers.
//!
//! Two forms of one record set. [`ReplyRef`] borrows from the server's state and is only
//! encoded: a listing of ten thousand names goes from the tree to the output without a vector in
//! between. [`Reply`] owns its parts and is what a client decodes.
//!
//! Source: reference sections 4 and 7.2.

use bytes::Bytes;

use crate::{
    acl::AclList,
    error::{DecodeError, ErrorCode},
    frame,
    ids::{Xid, Zxid},
    jute::{self, Reader, Ustring},
    multi::{self, MultiResult},
    op::OpCode,
    stat::Stat,
};

/// What stands in front of every reply and event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReplyHeader {
    /// The request's number; [`Xid::EVENT`] for events, [`Xid::PING`] for pings.
    pub xid: Xid,
    /// The newest change applied when the request was served.
    pub zxid: Zxid,
    /// Why the request was refused, if it was.
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

    fn write(&self, wire: &mut [u8; Self::BYTES]) {
        wire[..4].copy_from_slice(&self.xid.0.to_be_bytes());
        wire[4..12].copy_from_slice(&self.zxid.0.to_be_bytes());
        wire[12..].copy_from_slice(&self.error.map_or(0, ErrorCode::code).to_be_bytes());
    }
}

/// An identity of a connection, as whoAmI lists it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClientInfo {
    /// How it was proven.
    pub scheme: Ustring,
    /// Who it is, without secrets.
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

impl std::fmt::Debug for ReplyRef<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Empty => "Empty",
            Self::Path(_) => "Path",
            Self::PathStat(..) => "PathStat",
            Self::Stat(_) => "Stat",
            Self::Data(..) => "Data",
            Self::Children(..) => "Children",
            Self::Acl(..) => "Acl",
            Self::Multi(_) => "Multi",
            Self::Ephemerals(_) => "Ephemerals",
            Self::Count(_) => "Count",
            Self::WatchAdded => "WatchAdded",
            Self::Token(_) => "Token",
            Self::ClientInfos(_) => "ClientInfos",
        })
    }
}

impl ReplyRef<'_> {
    /// Appends the reply as a frame, header included.
    pub fn encode(self, header: ReplyHeader, out: &mut Vec<u8>) {
        const PREFIX: usize = frame::PREFIX_BYTES;
        // Prefix and header go out in one piece; the length follows when it is known.
        let start = out.len();
        let mut head = [0; PREFIX + ReplyHeader::BYTES];
        let (_, wire) = head
            .split_last_chunk_mut()
            .expect("the head is longer than the header");
        header.write(wire);
        out.extend_from_slice(&head);
        self.encode_body(out);
        let length = i32::try_from(out.len() - start - PREFIX).expect("a message has 31 bits");
        out[start..start + PREFIX].copy_from_slice(&length.to_be_bytes());
    }

    /// Appends the body alone.
    pub fn encode_body(self, out: &mut Vec<u8>) {
        match self {
            Self::Empty => {}
            Self::Path(path) => jute::put_buffer(out, path),
            Self::PathStat(path, stat) => {
                jute::put_buffer(out, Some(path));
                stat.encode(out);
            }
            Self::Stat(stat) => stat.encode(out),
            Self::Data(data, stat) => {
                jute::put_buffer(out, data);
                stat.encode(out);
            }
            Self::Children(names, stat) => {
                put_names(out, names);
                if let Some(stat) = stat {
                    stat.encode(out);
                }
            }
            Self::Acl(acl, stat) => {
                acl.encode(out);
                stat.encode(out);
            }
            Self::Multi(results) => multi::encode_results(results, out),
            Self::Ephemerals(paths) => put_names(out, paths),
            Self::Count(count) => jute::put_int(out, count),
            Self::WatchAdded => jute::put_int(out, 0),
            Self::Token(token) => jute::put_buffer(out, token),
            Self::ClientInfos(infos) => {
                jute::put_length(out, infos.len());
                for info in infos {
                    jute::put_ustring(out, Some(&info.scheme));
                    jute::put_ustring(out, Some(&info.user));
                }
            }
        }
    }
}

fn put_names(out: &mut Vec<u8>, names: &mut dyn ExactSizeIterator<Item = &[u8]>) {
    jute::put_length(out, names.len());
    for name in names {
        jute::put_buffer(out, Some(name));
    }
}

/// The body of a successful reply, owned: what a client gets.
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
    /// Reads the body of a successful reply to `op`; bytes left over are ignored.
    ///
    /// # Errors
    /// When the body is malformed, or the operation has no reply of its own (check).
    pub fn decode(op: OpCode, reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(match op {
            OpCode::Create | OpCode::Sync => Self::Path(reader.ustring()?),
            OpCode::Create2 | OpCode::CreateContainer | OpCode::CreateTtl => {
                let path = reader
                    .ustring()?
                    .ok_or(DecodeError::Null { field: "path" })?;
                Self::PathStat(path, Stat::decode(reader)?)
            }
            OpCode::Exists | OpCode::SetData | OpCode::SetAcl => Self::Stat(Stat::decode(reader)?),
            OpCode::GetData | OpCode::Reconfig => {
                Self::Data(reader.buffer()?, Stat::decode(reader)?)
            }
            OpCode::GetChildren => Self::Children(names(reader)?),
            OpCode::GetChildren2 => Self::Children2(names(reader)?, Stat::decode(reader)?),
            OpCode::GetAcl => Self::Acl(AclList::decode(reader)?, Stat::decode(reader)?),
            OpCode::Multi | OpCode::MultiRead => Self::Multi(multi::decode_results(reader)?),
            OpCode::GetEphemerals => Self::Ephemerals(names(reader)?),
            OpCode::GetAllChildrenNumber => Self::Count(reader.int()?),
            OpCode::AddWatch => {
                let _error = reader.int()?;
                Self::WatchAdded
            }
            OpCode::Sasl => Self::Token(reader.buffer()?),
            OpCode::WhoAmI => {
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
            OpCode::Delete
            | OpCode::DeleteContainer
            | OpCode::Ping
            | OpCode::CheckWatches
            | OpCode::RemoveWatches
            | OpCode::SetWatches
            | OpCode::SetWatches2
            | OpCode::Auth
            | OpCode::CloseSession => Self::Empty,
            OpCode::Check | OpCode::CreateSession => {
                return Err(DecodeError::Value {
                    field: "operation",
                    value: op.code().into(),
                });
            }
        })
    }

    /// Appends the reply as a frame, header included.
    pub fn encode(&self, header: ReplyHeader, out: &mut Vec<u8>) {
        match self {
            Self::Empty => ReplyRef::Empty.encode(header, out),
            Self::Path(path) => {
                ReplyRef::Path(path.as_ref().map(Ustring::as_bytes)).encode(header, out);
            }
            Self::PathStat(path, stat) => {
                ReplyRef::PathStat(path.as_bytes(), stat).encode(header, out);
            }
            Self::Stat(stat) => ReplyRef::Stat(stat).encode(header, out),
            Self::Data(data, stat) => ReplyRef::Data(data.as_deref(), stat).encode(header, out),
            Self::Children(names) => {
                let mut names = names.iter().map(Ustring::as_bytes);
                ReplyRef::Children(&mut names, None).encode(header, out);
            }
            Self::Children2(names, stat) => {
                let mut names = names.iter().map(Ustring::as_bytes);
                ReplyRef::Children(&mut names, Some(stat)).encode(header, out);
            }
            Self::Acl(acl, stat) => ReplyRef::Acl(acl, stat).encode(header, out),
            Self::Multi(results) => ReplyRef::Multi(results).encode(header, out),
            Self::Ephemerals(paths) => {
                let mut paths = paths.iter().map(Ustring::as_bytes);
                ReplyRef::Ephemerals(&mut paths).encode(header, out);
            }
            Self::Count(count) => ReplyRef::Count(*count).encode(header, out),
            Self::WatchAdded => ReplyRef::WatchAdded.encode(header, out),
            Self::Token(token) => ReplyRef::Token(token.as_deref()).encode(header, out),
            Self::ClientInfos(infos) => ReplyRef::ClientInfos(infos).encode(header, out),
        }
    }
}

fn names(reader: &mut Reader<'_>) -> Result<Vec<Ustring>, DecodeError> {
    Ok(reader.ustrings()?.unwrap_or_default())
}
