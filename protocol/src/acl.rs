//! Access lists: which identities may do what with a znode.

use bytes::Bytes;

use crate::{
    error::DecodeError,
    jute::{self, Reader, Ustring},
};

/// A set of permissions. Unknown bits are kept, as in ZooKeeper.
///
/// Source: `docs/zookeeper-protocol.md` section 3.6.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Perms(pub i32);

impl Perms {
    /// Read data, list children, check a version.
    pub const READ: Self = Self(1);
    /// Set data.
    pub const WRITE: Self = Self(2);
    /// Create children.
    pub const CREATE: Self = Self(4);
    /// Delete children.
    pub const DELETE: Self = Self(8);
    /// Set the access list.
    pub const ADMIN: Self = Self(16);
    /// All of the above.
    pub const ALL: Self = Self(31);
}

/// One entry of an access list.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Acl {
    /// The permissions.
    pub perms: Perms,
    /// How the identity is authenticated: `world`, `auth`, `digest`, `ip`, ...
    pub scheme: Option<Ustring>,
    /// The identity.
    pub id: Option<Ustring>,
}

impl Acl {
    /// Creates an entry that gives an identity permissions.
    #[must_use]
    pub fn new(perms: Perms, scheme: impl Into<Ustring>, id: impl Into<Ustring>) -> Self {
        Self {
            perms,
            scheme: Some(scheme.into()),
            id: Some(id.into()),
        }
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            perms: Perms(reader.int()?),
            scheme: reader.ustring()?,
            id: reader.ustring()?,
        })
    }

    fn as_ref(&self) -> AclRef<'_> {
        AclRef {
            perms: self.perms,
            scheme: self.scheme.as_ref().map(Ustring::as_bytes),
            id: self.id.as_ref().map(Ustring::as_bytes),
        }
    }
}

/// One entry of an access list, borrowed from its wire form.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AclRef<'a> {
    /// See [`Acl::perms`].
    pub perms: Perms,
    /// See [`Acl::scheme`].
    pub scheme: Option<&'a [u8]>,
    /// See [`Acl::id`].
    pub id: Option<&'a [u8]>,
}

impl AclRef<'_> {
    /// Returns the size on the wire, in bytes.
    #[must_use]
    pub fn wire_bytes(&self) -> usize {
        let length = |text: Option<&[u8]>| text.map_or(0, <[u8]>::len);
        3 * size_of::<i32>() + length(self.scheme) + length(self.id)
    }

    fn encode(&self, out: &mut Vec<u8>) {
        jute::put_int(out, self.perms.0);
        jute::put_buffer(out, self.scheme);
        jute::put_buffer(out, self.id);
    }
}

fn take_int(rest: &mut &[u8]) -> Option<i32> {
    let (int, behind) = rest.split_first_chunk()?;
    *rest = behind;
    Some(i32::from_be_bytes(*int))
}

/// Reads a string that may be null; the outer `None` means that the input ended.
fn take_string<'a>(rest: &mut &'a [u8]) -> Option<Option<&'a [u8]>> {
    let Ok(length) = usize::try_from(take_int(rest)?) else {
        return Some(None);
    };
    let (text, behind) = rest.split_at_checked(length)?;
    *rest = behind;
    Some(Some(text))
}

/// An access list in its wire form: validated when decoded, parsed when needed.
///
/// Nearly every create has all permissions for `world:anyone`. Comparing and storing the wire form
/// saves a vector and two strings for each of them.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct AclList {
    /// The vector as on the wire, with its count; `None` is the null vector.
    wire: Option<Bytes>,
}

static WORLD_ALL: &[u8] = b"\0\0\0\x01\0\0\0\x1f\0\0\0\x05world\0\0\0\x06anyone";
const WORLD_READ: &[u8] = b"\0\0\0\x01\0\0\0\x01\0\0\0\x05world\0\0\0\x06anyone";

impl AclList {
    /// Returns the list with all permissions for `world:anyone`.
    #[must_use]
    pub const fn world_all() -> Self {
        Self {
            wire: Some(Bytes::from_static(WORLD_ALL)),
        }
    }

    /// Returns the list with READ for `world:anyone`, which `/zookeeper/config` has.
    #[must_use]
    pub const fn world_read() -> Self {
        Self {
            wire: Some(Bytes::from_static(WORLD_READ)),
        }
    }

    /// Returns the null vector, which no znode can have.
    #[must_use]
    pub const fn null() -> Self {
        Self { wire: None }
    }

    /// Creates a list of these entries, in this order.
    #[must_use]
    pub fn new(entries: &[Acl]) -> Self {
        entries.iter().map(Acl::as_ref).collect()
    }

    /// Returns whether this is the null vector.
    #[must_use]
    pub const fn is_null(&self) -> bool {
        self.wire.is_none()
    }

    /// Returns whether this is [`AclList::world_all`], as most lists are. Decoding maps it to one
    /// static, so comparing addresses is enough for most lists.
    #[must_use]
    #[inline]
    pub fn is_world_all(&self) -> bool {
        let wire = self.as_wire().unwrap_or_default();
        std::ptr::eq(wire, WORLD_ALL) || wire == WORLD_ALL
    }

    /// Returns whether there are no entries: this is the null vector, or one without elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries().next().is_none()
    }

    /// Returns the list as on the wire, with its count; `None` is the null vector.
    #[must_use]
    pub fn as_wire(&self) -> Option<&[u8]> {
        self.wire.as_deref()
    }

    /// Returns a copy that does not keep the read buffer alive.
    #[must_use]
    pub fn detached(&self) -> Self {
        Self {
            wire: self.wire.as_deref().map(Bytes::copy_from_slice),
        }
    }

    /// Returns the entries, in order.
    pub fn entries(&self) -> impl Iterator<Item = Acl> + '_ {
        let mut reader = self.wire.as_ref().map(Reader::new);
        let count = reader
            .as_mut()
            .and_then(|reader| reader.count().ok().flatten())
            .unwrap_or(0);
        // The wire form was checked when the list was made, so no entry fails.
        (0..count).map_while(move |_| reader.as_mut().and_then(|reader| Acl::decode(reader).ok()))
    }

    /// Returns the entries, in order, borrowed: their strings need no reference counts.
    pub fn entries_in_place(&self) -> impl Iterator<Item = AclRef<'_>> {
        let mut rest = self.as_wire().unwrap_or_default();
        let count = take_int(&mut rest).unwrap_or(0);
        // The wire form was checked when the list was made, so no entry fails.
        (0..count).map_while(move |_| {
            Some(AclRef {
                perms: Perms(take_int(&mut rest)?),
                scheme: take_string(&mut rest)?,
                id: take_string(&mut rest)?,
            })
        })
    }

    /// Reads a list.
    ///
    /// # Errors
    /// When an entry is malformed or the message ends first.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        // Most lists are this one. Comparing the bytes takes no reference to the buffer.
        if reader.skip(WORLD_ALL) {
            return Ok(Self::world_all());
        }
        let start = reader.position();
        let Some(count) = reader.count()? else {
            return Ok(Self::null());
        };
        for _ in 0..count {
            Acl::decode(reader)?;
        }
        let wire = reader.since(start);
        // ZooKeeper reads a count below -1 as an empty list; all of these get the same form.
        if count == 0 {
            return Ok(Self::new(&[]));
        }
        Ok(Self { wire: Some(wire) })
    }

    /// Appends the list.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match &self.wire {
            Some(wire) => out.extend_from_slice(wire),
            None => jute::put_int(out, -1),
        }
    }
}

impl FromIterator<Acl> for AclList {
    fn from_iter<T: IntoIterator<Item = Acl>>(entries: T) -> Self {
        let mut wire = Encoder::new();
        for entry in entries {
            wire.push(entry.as_ref());
        }
        wire.finish()
    }
}

impl<'a> FromIterator<AclRef<'a>> for AclList {
    fn from_iter<T: IntoIterator<Item = AclRef<'a>>>(entries: T) -> Self {
        let mut wire = Encoder::new();
        entries.into_iter().for_each(|entry| wire.push(entry));
        wire.finish()
    }
}

/// Builds a list entry by entry.
struct Encoder {
    wire: Vec<u8>,
    count: usize,
}

impl Encoder {
    fn new() -> Self {
        let mut wire = Vec::new();
        jute::put_length(&mut wire, 0);
        Self { wire, count: 0 }
    }

    fn push(&mut self, entry: AclRef<'_>) {
        entry.encode(&mut self.wire);
        self.count += 1;
    }

    fn finish(mut self) -> AclList {
        let mut count = Vec::new();
        jute::put_length(&mut count, self.count);
        self.wire[..count.len()].copy_from_slice(&count);
        AclList {
            wire: Some(self.wire.into()),
        }
    }
}

impl Default for AclList {
    fn default() -> Self {
        Self::world_all()
    }
}

impl std::fmt::Debug for AclList {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.is_null() {
            return f.write_str("null");
        }
        f.debug_list().entries(self.entries()).finish()
    }
}
