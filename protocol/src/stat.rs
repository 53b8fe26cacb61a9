//! The stat of a znode.

use crate::{
    error::DecodeError,
    ids::{SessionId, Zxid},
    jute::Reader,
};

/// The stat of a znode: its zxids, times, versions and sizes. 68 bytes on the wire.
///
/// Source: `docs/zookeeper-protocol.md` sections 4 and 5.2.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stat {
    /// The zxid of the change that created the znode.
    pub czxid: Zxid,
    /// The zxid of the change that last set its data.
    pub mzxid: Zxid,
    /// When it was created, in milliseconds since 1970.
    pub ctime_ms: i64,
    /// When its data was last set, in milliseconds since 1970.
    pub mtime_ms: i64,
    /// The number of times its data was set.
    pub version: i32,
    /// The number of times a child was created or deleted (`docs/zookeeper-protocol.md` section
    /// 5.3).
    pub cversion: i32,
    /// The number of times its access list was set.
    pub aversion: i32,
    /// The session that owns it; zero unless it is an ephemeral.
    pub ephemeral_owner: SessionId,
    /// The length of its data, in bytes; zero for null.
    pub data_length: i32,
    /// The number of children.
    pub num_children: i32,
    /// The zxid of the change that last created or deleted a child.
    pub pzxid: Zxid,
}

impl Stat {
    /// The size on the wire, in bytes.
    pub const BYTES: usize = 68;

    /// Appends the record.
    #[inline]
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut wire = [0; Self::BYTES];
        let mut at = 0;
        let mut put = |bytes: &[u8]| {
            wire[at..at + bytes.len()].copy_from_slice(bytes);
            at += bytes.len();
        };
        put(&self.czxid.0.to_be_bytes());
        put(&self.mzxid.0.to_be_bytes());
        put(&self.ctime_ms.to_be_bytes());
        put(&self.mtime_ms.to_be_bytes());
        put(&self.version.to_be_bytes());
        put(&self.cversion.to_be_bytes());
        put(&self.aversion.to_be_bytes());
        put(&self.ephemeral_owner.0.to_be_bytes());
        put(&self.data_length.to_be_bytes());
        put(&self.num_children.to_be_bytes());
        put(&self.pzxid.0.to_be_bytes());
        out.extend_from_slice(&wire);
    }

    /// Reads the record.
    ///
    /// # Errors
    /// When the message ends first.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            czxid: Zxid(reader.long()?),
            mzxid: Zxid(reader.long()?),
            ctime_ms: reader.long()?,
            mtime_ms: reader.long()?,
            version: reader.int()?,
            cversion: reader.int()?,
            aversion: reader.int()?,
            ephemeral_owner: SessionId(reader.long()?),
            data_length: reader.int()?,
            num_children: reader.int()?,
            pzxid: Zxid(reader.long()?),
        })
    }
}
