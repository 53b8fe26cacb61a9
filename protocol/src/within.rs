//! Bounded output: copies nothing that does not fit.

use crate::{acl::AclList, jute, stat::Stat};

/// Appends to `out` up to the length `end`. Every method returns `None` if its value does not fit;
/// the caller must then abandon the message.
///
/// The message is at most [`crate::ReplyRef::BYTES_MAX`] long, so each length in it has 31 bits:
/// no length measured here makes [`jute::put_length`] panic.
pub(crate) struct Within<'a> {
    pub(crate) out: &'a mut Vec<u8>,
    pub(crate) end: usize,
}

impl Within<'_> {
    /// Returns `None` if there is no room for this many bytes.
    fn fits(&self, bytes: usize) -> Option<()> {
        let room = self.end.checked_sub(self.out.len())?;
        (bytes <= room).then_some(())
    }

    /// Appends a buffer or string; `None` is null.
    #[inline]
    pub(crate) fn put_buffer(&mut self, value: Option<&[u8]>) -> Option<()> {
        self.fits(jute::buffer_bytes(value))?;
        jute::put_buffer(self.out, value);
        Some(())
    }

    pub(crate) fn put_int(&mut self, value: i32) -> Option<()> {
        self.fits(4)?;
        jute::put_int(self.out, value);
        Some(())
    }

    /// Appends the count of a vector whose elements have at least four bytes each.
    pub(crate) fn put_count(&mut self, count: usize) -> Option<()> {
        self.fits(count.checked_mul(4)?.saturating_add(4))?;
        jute::put_length(self.out, count);
        Some(())
    }

    pub(crate) fn put_buffers(
        &mut self,
        values: &mut dyn ExactSizeIterator<Item = &[u8]>,
    ) -> Option<()> {
        self.put_count(values.len())?;
        for value in values {
            self.put_buffer(Some(value))?;
        }
        Some(())
    }

    #[inline]
    pub(crate) fn put_stat(&mut self, stat: &Stat) -> Option<()> {
        self.fits(Stat::BYTES)?;
        stat.encode(self.out);
        Some(())
    }

    /// Appends a buffer and a stat, measured together.
    #[inline]
    pub(crate) fn put_data(&mut self, data: Option<&[u8]>, stat: &Stat) -> Option<()> {
        self.fits(jute::buffer_bytes(data) + Stat::BYTES)?;
        jute::put_buffer(self.out, data);
        stat.encode(self.out);
        Some(())
    }

    pub(crate) fn put_acl(&mut self, acl: &AclList) -> Option<()> {
        self.fits(acl.as_wire().map_or(4, <[u8]>::len))?;
        acl.encode(self.out);
        Some(())
    }

    /// Appends a value of a small, fixed size.
    pub(crate) fn put_small<const N: usize>(&mut self, bytes: [u8; N]) -> Option<()> {
        self.fits(N)?;
        self.out.extend_from_slice(&bytes);
        Some(())
    }
}
