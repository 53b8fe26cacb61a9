//! The planted bugs that break the one rule of turns, see `tests/planted.md`.

#[cfg(feature = "planted")]
use std::{sync::Arc, task::Waker};

#[cfg(feature = "planted")]
use minikeeper_engine::ConnId;

use crate::turn::turns::Turns;

impl Turns {
    #[cfg(not(feature = "planted"))]
    #[expect(clippy::unused_self, reason = "the planted twin looks at it")]
    pub(super) const fn is_drain_left_out(&self) -> bool {
        false
    }

    #[cfg(feature = "planted")]
    pub(super) fn is_drain_left_out(&self) -> bool {
        self.is_planted(crate::planted::Planted::DrainLeftOut)
    }

    #[cfg(feature = "planted")]
    pub(crate) fn is_planted(&self, bug: crate::planted::Planted) -> bool {
        self.planted == Some(bug)
    }

    /// The planted bug: what a turn has to say is put into the outbox after unlocking, where
    /// another turn's events may have overtaken it.
    #[cfg(feature = "planted")]
    pub(super) fn append_after_unlocking(
        &self,
        core: parking_lot::MutexGuard<'_, super::Core>,
        conn: ConnId,
        late: Vec<u8>,
        wakes: &mut Vec<Waker>,
    ) {
        let outbox = Arc::clone(&core.members[conn.0 as usize].outbox);
        drop(core);
        if !late.is_empty() {
            std::thread::yield_now();
            wakes.extend(
                outbox
                    .push(usize::MAX, |out| out.extend(late))
                    .ok()
                    .and_then(|pushed| pushed.waker),
            );
        }
    }
}
