//! The cached counter: numbers that are unique among processes, most of them without a request.
//!
//! Source: Curator's `CachedAtomicLong`.

use std::{fmt, ops::Range};

use tokio::sync::Mutex;

use crate::{
    error::AtomicError,
    values::atomic::{AtomicValue, DistributedAtomicLong},
};

/// A counter that reserves numbers in blocks, compatible with Curator's class of the same name in
/// Java.
///
/// One request in a block's length changes the counter; the others take the next number of the
/// block. Numbers are unique among all processes, and grow within this object; numbers of two
/// processes are in no order. Those of a block that this object does not hand out are lost.
///
/// # Examples
/// ```
/// # minikeeper_test_kit::example(async |server, client| {
/// use minikeeper_recipes::{CachedAtomicLong, DistributedAtomicLong};
///
/// let counter = DistributedAtomicLong::new(client, "/counters/invoices")?;
/// let invoices = CachedAtomicLong::new(counter.clone(), 100);
/// assert_eq!(invoices.next().await?.current, 1);
/// assert_eq!(invoices.next().await?.current, 2);
/// // The whole block is reserved.
/// assert_eq!(counter.get().await?, 100);
/// # Ok(()) });
/// ```
pub struct CachedAtomicLong {
    counter: DistributedAtomicLong,
    block_length: u32,
    /// The offsets that are left of the latest block, and the value before it.
    left: Mutex<(i64, Range<u32>)>,
}

impl fmt::Debug for CachedAtomicLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CachedAtomicLong")
            .field("counter", &self.counter)
            .field("block_length", &self.block_length)
            .finish_non_exhaustive()
    }
}

impl CachedAtomicLong {
    /// Creates a cache of this counter, which reserves so many numbers at a time; 0 counts as 1.
    /// Sends nothing.
    #[must_use]
    pub fn new(counter: DistributedAtomicLong, block_length: u32) -> Self {
        Self {
            counter,
            block_length: block_length.max(1),
            left: Mutex::new((0, 0..0)),
        }
    }

    /// Takes the next number, as [`AtomicValue::current`]; the one before it is
    /// [`AtomicValue::previous`]. After [`i64::MAX`] it continues at [`i64::MIN`], as in Java.
    ///
    /// Tasks that need a new block at the same time wait for the same request.
    ///
    /// # Cancel safety
    /// Dropping the future takes no number. If it was reserving a block, that block may be lost.
    ///
    /// # Errors
    /// Those of [`DistributedAtomicLong::add`](crate::DistributedAtomic::add). No number was taken,
    /// so it is safe to retry.
    pub async fn next(&self) -> Result<AtomicValue, AtomicError> {
        self.counter.update_limit("next").run(self.taken()).await
    }

    async fn taken(&self) -> Result<AtomicValue, AtomicError> {
        let mut left = self.left.lock().await;
        let (mut optimistic_attempts, mut promoted_attempts) = (0, 0);
        let offset = match left.1.next() {
            Some(offset) => offset,
            None => {
                let block = self.counter.add(i64::from(self.block_length)).await?;
                optimistic_attempts = block.optimistic_attempts;
                promoted_attempts = block.promoted_attempts;
                *left = (block.previous, 1..self.block_length);
                0
            }
        };
        let previous = left.0.wrapping_add(i64::from(offset));
        Ok(AtomicValue {
            previous,
            current: previous.wrapping_add(1),
            optimistic_attempts,
            promoted_attempts,
        })
    }
}
