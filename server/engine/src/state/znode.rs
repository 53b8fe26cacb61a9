//! One znode, packed, because a million of them fill the server's memory.
//!
//! Path and data share one allocation, and the fields that only parents need are boxed; leaves have
//! no box. With the index, a znode takes about 110 bytes in addition to its path and data.
//!
//! Source: `docs/zookeeper-protocol.md` sections 5.1 to 5.3, 5.6 and 11.

use minikeeper_protocol::{SessionId, Stat, Zxid};

use crate::{
    persist::change::Life,
    state::{
        java_listing,
        keys::{AclId, WatchId, ZnodeId},
    },
};

/// The longest time to live, about 35 years: 40 bits. Unit: milliseconds.
pub const TTL_MS_MAX: i64 = (1 << 40) - 1;

/// The top byte of an owner that is a time to live.
const TTL_MARK: i64 = 0xff << 56;

/// The lifetime of a znode, in the form in which ZooKeeper stores it.
///
/// Source: `docs/zookeeper-protocol.md` section 5.6, ZooKeeper's `EphemeralType`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Owner(pub(crate) i64);

impl Owner {
    pub(crate) const PERSISTENT: Self = Self(0);
    pub(crate) const CONTAINER: Self = Self(i64::MIN);

    pub(crate) const fn session(session: SessionId) -> Self {
        Self(session.0)
    }

    /// Returns the owner of a znode that lives until `ttl_ms` milliseconds after its last change.
    pub(crate) const fn ttl(ttl_ms: i64) -> Self {
        Self(TTL_MARK | ttl_ms)
    }

    pub(crate) const fn is_ephemeral(self) -> bool {
        self.0 != 0 && self.0 != Self::CONTAINER.0 && self.ttl_ms().is_none()
    }

    /// Returns the time to live, if the znode has one.
    pub(crate) const fn ttl_ms(self) -> Option<i64> {
        if self.0 & !TTL_MS_MAX == TTL_MARK {
            Some(self.0 & TTL_MS_MAX)
        } else {
            None
        }
    }

    /// Returns whether the server itself may delete the znode: a container, or one with a time to
    /// live.
    pub(crate) const fn is_collectable(self) -> bool {
        self.0 == Self::CONTAINER.0 || self.ttl_ms().is_some()
    }

    /// Returns the lifetime for reports and logs.
    pub(crate) const fn life(self) -> Life {
        if let Some(ms) = self.ttl_ms() {
            return Life::Ttl { ms };
        }
        match self.0 {
            0 => Life::Persistent,
            owner if owner == Self::CONTAINER.0 => Life::Container,
            owner => Life::Session(SessionId(owner)),
        }
    }

    /// Returns the owner that the stat shows: only sessions. Containers and znodes with a time to
    /// live look persistent.
    pub(crate) const fn on_the_wire(self) -> SessionId {
        if self.is_ephemeral() {
            SessionId(self.0)
        } else {
            SessionId::NONE
        }
    }
}

/// The additional fields of a znode that has children or once had some.
#[derive(Clone, Debug)]
pub(crate) struct Family {
    /// The zxid of the last change that created or deleted a child.
    pub(crate) pzxid: Zxid,
    /// The number of children ever created: the next sequential suffix
    /// (`docs/zookeeper-protocol.md` section 11).
    pub(crate) created_children: i32,
    /// The number of children.
    pub(crate) count: u32,
    /// The total length of their paths, so that the length of a listing is known in advance.
    /// Unit: bytes.
    pub(crate) path_bytes: usize,
    /// The oldest existing child; the others follow by `Znode::next`.
    pub(crate) first: ZnodeId,
    /// The youngest existing child.
    pub(crate) last: ZnodeId,
    /// The size of the hash table in which ZooKeeper would keep the children, as an exponent of
    /// two. Updated only if listings are in that order.
    pub(crate) table_bits: u8,
}

#[derive(Clone, Debug)]
pub(crate) struct Znode {
    /// The path, then the data, in one allocation.
    body: Box<[u8]>,
    /// `None` until the first child.
    pub(crate) family: Option<Box<Family>>,
    pub(crate) czxid: Zxid,
    pub(crate) mzxid: Zxid,
    pub(crate) ctime_ms: i64,
    pub(crate) mtime_ms: i64,
    pub(crate) owner: Owner,
    pub(crate) version: i32,
    pub(crate) aversion: i32,
    /// The length of the path in bytes; the top bit is set if the data is null.
    path_length: u32,
    pub(crate) acl: AclId,
    pub(crate) parent: ZnodeId,
    /// The next younger sibling.
    pub(crate) next: ZnodeId,
    /// The next older sibling.
    pub(crate) prev: ZnodeId,
    /// The head of the ring of watches on this path.
    pub(crate) watched: WatchId,
}

const NULL_DATA: u32 = 1 << 31;

impl Znode {
    /// Creates a leaf that is not linked to other znodes yet.
    pub(crate) fn new(
        path: &[u8],
        data: Option<&[u8]>,
        owner: Owner,
        acl: AclId,
        zxid: Zxid,
        wall_ms: i64,
    ) -> Self {
        let mut znode = Self {
            body: Box::default(),
            family: None,
            czxid: zxid,
            mzxid: zxid,
            ctime_ms: wall_ms,
            mtime_ms: wall_ms,
            owner,
            version: 0,
            aversion: 0,
            path_length: 0,
            acl,
            parent: ZnodeId::NONE,
            next: ZnodeId::NONE,
            prev: ZnodeId::NONE,
            watched: WatchId::NONE,
        };
        znode.write_body(path, data);
        znode
    }

    fn write_body(&mut self, path: &[u8], data: Option<&[u8]>) {
        let bytes = data.unwrap_or_default();
        let mut body = Vec::with_capacity(path.len() + bytes.len());
        body.extend_from_slice(path);
        body.extend_from_slice(bytes);
        self.body = body.into_boxed_slice();
        let length = u32::try_from(path.len()).expect("a path is shorter than a frame");
        self.path_length = length | if data.is_none() { NULL_DATA } else { 0 };
    }

    const fn split(&self) -> usize {
        (self.path_length & !NULL_DATA) as usize
    }

    #[inline]
    pub(crate) fn path(&self) -> &[u8] {
        &self.body[..self.split()]
    }

    /// Returns the last component of the path; empty for the root.
    pub(crate) fn name(&self) -> &[u8] {
        minikeeper_protocol::path::name_of(self.path())
    }

    #[inline]
    pub(crate) fn data(&self) -> Option<&[u8]> {
        (self.path_length & NULL_DATA == 0).then(|| &self.body[self.split()..])
    }

    /// Returns the total length of the children's names. Unit: bytes.
    pub(crate) fn names_bytes(&self) -> usize {
        let Some(family) = &self.family else {
            return 0;
        };
        // Each child's path is this path, a slash and the name; the root's path is itself the
        // slash.
        let before = match self.split() {
            1 => 1,
            length => length + 1,
        };
        family.path_bytes - before * family.count as usize
    }

    /// Returns the length of the data. Unit: bytes.
    #[inline]
    pub(crate) const fn data_bytes(&self) -> usize {
        self.body.len() - self.split()
    }

    /// Returns the length of path and data together. Unit: bytes.
    pub(crate) fn body_bytes(&self) -> usize {
        self.body.len()
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "measured: see benches/README.md")]
    pub(crate) fn set_data(&mut self, data: Option<&[u8]>) {
        let split = self.split();
        match data {
            Some(bytes) if self.body.len() == split + bytes.len() => {
                self.body[split..].copy_from_slice(bytes);
                self.path_length &= !NULL_DATA;
            }
            _ => self.replace_data(data),
        }
    }

    #[inline(never)]
    fn replace_data(&mut self, data: Option<&[u8]>) {
        let body = std::mem::take(&mut self.body);
        self.write_body(&body[..self.split()], data);
    }

    pub(crate) fn num_children(&self) -> u32 {
        self.family.as_ref().map_or(0, |family| family.count)
    }

    pub(crate) fn created_children(&self) -> i32 {
        self.family
            .as_ref()
            .map_or(0, |family| family.created_children)
    }

    pub(crate) fn pzxid(&self) -> Zxid {
        self.family
            .as_ref()
            .map_or(self.czxid, |family| family.pzxid)
    }

    /// Returns the family, created with the first child.
    pub(crate) fn family_mut(&mut self) -> &mut Family {
        let pzxid = self.czxid;
        self.family.get_or_insert_with(|| {
            Box::new(Family {
                pzxid,
                created_children: 0,
                count: 0,
                path_bytes: 0,
                first: ZnodeId::NONE,
                last: ZnodeId::NONE,
                table_bits: java_listing::EMPTY_TABLE_BITS,
            })
        })
    }

    /// Returns the stat that clients see. Source: `docs/zookeeper-protocol.md` sections 5.2 and
    /// 5.3.
    pub(crate) fn stat(&self) -> Stat {
        let num_children = self.num_children().cast_signed();
        Stat {
            czxid: self.czxid,
            mzxid: self.mzxid,
            ctime_ms: self.ctime_ms,
            mtime_ms: self.mtime_ms,
            version: self.version,
            cversion: self
                .created_children()
                .wrapping_mul(2)
                .wrapping_sub(num_children),
            aversion: self.aversion,
            ephemeral_owner: self.owner.on_the_wire(),
            data_length: i32::try_from(self.body.len() - self.split()).unwrap_or(i32::MAX),
            num_children,
            pzxid: self.pzxid(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn znode_is_96_bytes() {
        // The memory goal depends on it: 260 bytes for a znode with 133 bytes of path and data.
        assert_eq!(size_of::<Znode>(), 96);
    }

    #[test]
    fn null_data_and_empty_data_differ() {
        let mut znode = Znode::new(b"/a", None, Owner::PERSISTENT, AclId::WORLD_ALL, Zxid(1), 0);
        assert_eq!(znode.data(), None);
        znode.set_data(Some(b""));
        assert_eq!(znode.data(), Some(&b""[..]));
        znode.set_data(Some(b"xy"));
        assert_eq!((znode.path(), znode.data()), (&b"/a"[..], Some(&b"xy"[..])));
        znode.set_data(None);
        assert_eq!((znode.path(), znode.data()), (&b"/a"[..], None));
        assert_eq!(znode.stat().data_length, 0);
    }
}
