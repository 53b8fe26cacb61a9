//! Entries of a transaction log, put together from the changes they are about.
//!
//! Source: `docs/zookeeper-protocol.md` section 22.3; the original's
//! `SerializeUtils.serializeRequest`.

use minikeeper_engine::{Change, ChangeHead, Life};
use minikeeper_protocol::{OpCode, Zxid, jute};

use crate::data::txn::ERROR;

/// The number a client gave its request is not known where changes are told, and nobody needs it.
const NO_CXID: i32 = 0;

/// The code and the length in front of each part.
const PART_HEAD_BYTES: usize = 4 + 4;

/// The changes of one zxid: an entry, or the parts of one.
#[derive(Debug, Default)]
pub(crate) struct Entry {
    head: Option<ChangeHead>,
    /// The code of each change, its length and what it says: what a multi has.
    parts: Vec<u8>,
    count: usize,
}

impl Entry {
    /// The number of its changes; `None` if there are none.
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

    /// Writes the entry without what stands around it.
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

/// Gives the code.
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
        // A refused request: what has a number, and changes nothing.
        _ => {
            jute::put_int(out, 0);
            return ERROR;
        }
    };
    code.code()
}
