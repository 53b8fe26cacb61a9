//! Working memory that busy connections borrow, so that idle ones hold none.

use std::task::Waker;

use bytes::BytesMut;
use minikeeper_engine::Input;
use parking_lot::Mutex;

/// The maximum size of one read. Unit: bytes.
pub(crate) const READ_BYTES: usize = 64 << 10;

/// The maximum number of unused scratches kept.
const KEPT_MAX: usize = 16;

/// A scratch whose output grew beyond this is not kept. Unit: bytes.
const KEPT_BYTES_MAX: usize = 1 << 20;

#[derive(Debug)]
pub(crate) struct Scratch {
    /// The bytes of one read.
    pub(crate) read: BytesMut,
    /// The requests of one turn.
    pub(crate) inputs: Vec<Input>,
    /// The end of each request in the bytes read.
    pub(crate) ends: Vec<usize>,
    /// The bytes to write.
    pub(crate) out: Vec<u8>,
    /// The tasks to wake once the connection's own output is written.
    pub(crate) wakes: Vec<Waker>,
}

impl Scratch {
    pub(crate) fn wake_all(&mut self) {
        self.wakes.drain(..).for_each(Waker::wake);
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A panic must not swallow another task's wake-up.
        self.wake_all();
    }
}

#[derive(Debug, Default)]
pub(crate) struct ScratchPool {
    kept: Mutex<Vec<Scratch>>,
}

impl ScratchPool {
    #[inline]
    pub(crate) fn take(&self) -> Scratch {
        self.kept.lock().pop().unwrap_or_else(|| Scratch {
            read: shareable_buffer(),
            inputs: Vec::new(),
            ends: Vec::new(),
            out: Vec::new(),
            wakes: Vec::new(),
        })
    }

    /// Returns a scratch to the pool; it must be empty.
    #[inline]
    pub(crate) fn give(&self, mut scratch: Scratch) {
        debug_assert!(scratch.out.is_empty() && scratch.inputs.is_empty());
        scratch.wake_all();
        if scratch.out.capacity() > KEPT_BYTES_MAX || scratch.read.capacity() > KEPT_BYTES_MAX {
            return;
        }
        let mut kept = self.kept.lock();
        if kept.len() < KEPT_MAX {
            kept.push(scratch);
        }
    }
}

/// Returns a buffer for reads that can be frozen and taken back without an allocation.
///
/// Freezing a buffer that was never shared allocates a reference count every time. Splitting it
/// once allocates the count for good.
pub(crate) fn shareable_buffer() -> BytesMut {
    let mut buffer = BytesMut::with_capacity(READ_BYTES);
    drop(buffer.split_off(READ_BYTES));
    buffer
}
