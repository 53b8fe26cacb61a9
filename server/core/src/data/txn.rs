//! Encodes, decodes and replays one entry of a transaction log.
//!
//! Source: `docs/zookeeper-protocol.md` section 22.3; ZooKeeper's
//! `SerializeUtils.deserializeTxn`.

use bytes::Bytes;
use minikeeper_engine::{Change, ChangeHead, Life, Restoration};
use minikeeper_protocol::{AclList, DecodeError, OpCode, Reader, SessionId, Ustring, Zxid, jute};

use crate::data::error::SnapshotFault as Fault;

/// The code of a refused request, in a log and in a multi.
pub(crate) const ERROR: i32 = -1;

/// The size of the digest after an entry: its version, and the number.
const DIGEST_BYTES: usize = 4 + 8;

/// The header of an entry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TxnHead {
    pub(crate) head: ChangeHead,
    kind: i32,
}

impl TxnHead {
    pub(crate) fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let session = SessionId(reader.long()?);
        // The xid of the request.
        reader.int()?;
        let zxid = Zxid(reader.long()?);
        let wall_ms = reader.long()?;
        let kind = reader.int()?;
        let head = ChangeHead {
            session,
            zxid,
            wall_ms,
        };
        Ok(Self { head, kind })
    }
}

/// Replays an entry's changes. Ignores the digest that follows them.
pub(crate) fn replay(
    txn: TxnHead,
    reader: &mut Reader<'_>,
    restoration: &mut Restoration,
) -> Result<(), Fault> {
    if txn.kind != OpCode::Multi.code() {
        return change(txn, reader, restoration);
    }
    let mut parts = Vec::new();
    for _ in 0..reader.count()?.unwrap_or(0) {
        let kind = reader.int()?;
        parts.push((kind, reader.buffer()?.unwrap_or_default()));
    }
    // A failed multi is logged with all its parts, but none of them has happened.
    if parts.iter().any(|(kind, _)| *kind == ERROR) {
        parts.clear();
    }
    restoration.replay(txn.head, &Change::Nothing)?;
    for (kind, body) in parts {
        let part = TxnHead {
            head: txn.head,
            kind,
        };
        part_of_multi(part, &body, restoration)?;
    }
    Ok(())
}

fn part_of_multi(part: TxnHead, body: &Bytes, restoration: &mut Restoration) -> Result<(), Fault> {
    let is_possible = OpCode::from_code(part.kind).is_some_and(|op| {
        matches!(
            op,
            OpCode::Create
                | OpCode::Create2
                | OpCode::CreateContainer
                | OpCode::CreateTtl
                | OpCode::Delete
                | OpCode::DeleteContainer
                | OpCode::SetData
                | OpCode::Check
        )
    });
    if !is_possible {
        return Err(Fault::TxnType { kind: part.kind });
    }
    change(part, &mut Reader::new(body), restoration)
}

fn change(
    txn: TxnHead,
    reader: &mut Reader<'_>,
    restoration: &mut Restoration,
) -> Result<(), Fault> {
    let unknown = Fault::TxnType { kind: txn.kind };
    let mut replay = |change: &Change<'_>| Ok(restoration.replay(txn.head, change)?);
    if txn.kind == ERROR {
        return replay(&Change::Nothing);
    }
    match OpCode::from_code(txn.kind).ok_or(unknown)? {
        op @ (OpCode::Create | OpCode::Create2 | OpCode::CreateContainer | OpCode::CreateTtl) => {
            let path = path(reader)?;
            let data = reader.buffer()?;
            let acl = AclList::decode(reader)?;
            let mut life = Life::Persistent;
            if matches!(op, OpCode::Create | OpCode::Create2) && reader.bool()? {
                life = Life::Session(txn.head.session);
            }
            // Version 3.3 does not write this field; an entry converted from that version has -1.
            let created_children = match reader.int() {
                Err(_) if op == OpCode::Create => None,
                number => Some(number?).filter(|number| *number != -1),
            };
            match op {
                OpCode::CreateContainer => life = Life::Container,
                OpCode::CreateTtl => life = Life::Ttl { ms: reader.long()? },
                _ => {}
            }
            replay(&Change::Create {
                path: path.as_bytes(),
                data: data.as_deref(),
                acl: &acl,
                life,
                created_children,
            })
        }
        OpCode::Delete | OpCode::DeleteContainer => {
            let path = path(reader)?;
            let path = path.as_bytes();
            replay(&Change::Delete { path })
        }
        // A reconfiguration sets the data of /zookeeper/config.
        OpCode::SetData | OpCode::Reconfig => {
            let path = path(reader)?;
            let data = reader.buffer()?;
            replay(&Change::SetData {
                path: path.as_bytes(),
                data: data.as_deref(),
                version: reader.int()?,
            })
        }
        OpCode::SetAcl => {
            let path = path(reader)?;
            let acl = AclList::decode(reader)?;
            replay(&Change::SetAcl {
                path: path.as_bytes(),
                acl: &acl,
                aversion: reader.int()?,
            })
        }
        OpCode::Check => replay(&Change::Nothing),
        OpCode::CreateSession => replay(&Change::OpenSession {
            timeout_ms: reader.int()?,
        }),
        OpCode::CloseSession => {
            // Versions that do not list the paths write nothing, or only the digest. The tree knows
            // the session's ephemerals anyway.
            let listed = if reader.remaining() == DIGEST_BYTES {
                Vec::new()
            } else {
                reader.ustrings().ok().flatten().unwrap_or_default()
            };
            let paths: Vec<_> = listed.iter().map(Ustring::as_bytes).collect();
            replay(&Change::CloseSession { paths: &paths })
        }
        _ => Err(Fault::TxnType { kind: txn.kind }),
    }
}

fn path(reader: &mut Reader<'_>) -> Result<Ustring, Fault> {
    reader.ustring()?.ok_or(Fault::NullPath)
}

/// The xid in our entries: the log does not know that of the request, and no reader needs it.
const NO_CXID: i32 = 0;

/// The size of the code and the length before each part.
const PART_HEAD_BYTES: usize = 4 + 4;

/// The changes of one zxid, which make one entry.
#[derive(Debug, Default)]
pub(crate) struct TxnEntry {
    head: Option<ChangeHead>,
    /// The code, length and body of each change, as in a multi.
    parts: Vec<u8>,
    count: usize,
}

impl TxnEntry {
    /// Returns the zxid of its changes; `None` if there are none.
    pub(crate) fn zxid(&self) -> Option<Zxid> {
        self.head.map(|head| head.zxid)
    }

    pub(crate) fn clear(&mut self) {
        self.head = None;
        self.parts.clear();
        self.count = 0;
    }

    pub(crate) fn add(&mut self, head: ChangeHead, change: &Change<'_>) {
        self.head = Some(head);
        self.count += 1;
        let start = self.parts.len();
        self.parts.extend_from_slice(&[0; PART_HEAD_BYTES]);
        let kind = put_change(change, &mut self.parts);
        let length = self.parts.len() - start - PART_HEAD_BYTES;
        let mut part_head = Vec::with_capacity(PART_HEAD_BYTES);
        jute::put_int(&mut part_head, kind);
        jute::put_length(&mut part_head, length);
        self.parts[start..start + PART_HEAD_BYTES].copy_from_slice(&part_head);
    }

    /// Appends the entry without its checksum, length and end byte.
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        let Some(head) = self.head else { return };
        jute::put_long(out, head.session.0);
        jute::put_int(out, NO_CXID);
        jute::put_long(out, head.zxid.0);
        jute::put_long(out, head.wall_ms);
        if self.count == 1 {
            let (code, rest) = self.parts.split_at(4);
            out.extend_from_slice(code);
            out.extend_from_slice(&rest[4..]);
        } else {
            jute::put_int(out, OpCode::Multi.code());
            jute::put_length(out, self.count);
            out.extend_from_slice(&self.parts);
        }
    }
}

/// Appends the body of a change. Returns its code.
fn put_change(change: &Change<'_>, out: &mut Vec<u8>) -> i32 {
    let code = match *change {
        Change::OpenSession { timeout_ms } => {
            jute::put_int(out, timeout_ms);
            OpCode::CreateSession
        }
        Change::CloseSession { paths } => {
            jute::put_length(out, paths.len());
            for path in paths {
                jute::put_buffer(out, Some(path));
            }
            OpCode::CloseSession
        }
        Change::Create {
            path,
            data,
            acl,
            life,
            created_children,
        } => {
            jute::put_buffer(out, Some(path));
            jute::put_buffer(out, data);
            acl.encode(out);
            let created_children = created_children.unwrap_or(-1);
            match life {
                Life::Persistent | Life::Session(_) => {
                    jute::put_bool(out, life != Life::Persistent);
                    jute::put_int(out, created_children);
                    OpCode::Create
                }
                Life::Container => {
                    jute::put_int(out, created_children);
                    OpCode::CreateContainer
                }
                Life::Ttl { ms } => {
                    jute::put_int(out, created_children);
                    jute::put_long(out, ms);
                    OpCode::CreateTtl
                }
            }
        }
        Change::Delete { path } => {
            jute::put_buffer(out, Some(path));
            OpCode::Delete
        }
        Change::SetData {
            path,
            data,
            version,
        } => {
            jute::put_buffer(out, Some(path));
            jute::put_buffer(out, data);
            jute::put_int(out, version);
            OpCode::SetData
        }
        Change::SetAcl {
            path,
            acl,
            aversion,
        } => {
            jute::put_buffer(out, Some(path));
            acl.encode(out);
            jute::put_int(out, aversion);
            OpCode::SetAcl
        }
        // A refused request, which has a zxid but changes nothing.
        _ => {
            jute::put_int(out, 0);
            return ERROR;
        }
    };
    code.code()
}
