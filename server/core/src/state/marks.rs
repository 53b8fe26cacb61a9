//! Marks of the state to which it can be rewound: snapshots, and the changes that a fault takes back.

use minikeeper_engine::Mark;

use crate::{outbox::Close, state::UniverseState};

impl UniverseState {
    /// Marks the state. On a broken server the default mark, which is not there.
    pub fn mark(&self) -> Mark {
        let mark = self.turns.alter(|engine, now, effects| {
            let mark = engine.mark();
            if let Some(recorder) = effects.observer.recorder() {
                recorder.mark(now, mark);
            }
            mark
        });
        mark.unwrap_or_default()
    }

    /// Removes a mark.
    pub fn forget_mark(&self, mark: Mark) {
        self.turns.alter(|engine, now, effects| {
            engine.forget_mark(mark);
            if let Some(recorder) = effects.observer.recorder() {
                recorder.forget(now, mark);
            }
        });
    }

    /// Rewinds to a mark. Returns whether it exists.
    pub fn rewind(&self, mark: Mark) -> bool {
        let rewound = self.replace_state(|turns, replacement| {
            turns.alter(|engine, now, effects| {
                let is_there = effects.rewind(engine, now, mark);
                replacement.save(engine);
                effects.note_replaced(engine.zxid());
                is_there
            })
        });
        rewound == Some(true)
    }

    /// Marks the state, if the last changes may have to be taken back and something has changed.
    pub(crate) fn mark_for_rollback(&self) {
        let faults = &self.turns.faults;
        let max = faults.rollback_max() as usize;
        if max == 0 {
            return;
        }
        let mut marks = faults.marks.lock();
        let zxid = self.turns.inspect(minikeeper_engine::Engine::zxid);
        if marks.back().is_none_or(|(last, _)| *last != zxid) {
            marks.push_back((zxid, self.mark()));
        }
        // That of the current state is one more than the changes.
        if marks.len() > max + 1
            && let Some((_, oldest)) = marks.pop_front()
        {
            self.forget_mark(oldest);
        }
    }

    /// Removes the marks of changes that no fault takes back any more.
    pub(crate) fn forget_rollback(&self) {
        let faults = &self.turns.faults;
        if faults.rollback_max() == 0 {
            for (_, mark) in faults.marks.lock().drain(..) {
                self.forget_mark(mark);
            }
        }
    }

    /// Takes the last changes back, as far as they are known, and closes all connections.
    pub(crate) fn roll_back(&self, changes: u32) {
        self.turns.close_all(Close::Injected);
        let mut marks = self.turns.faults.marks.lock();
        let zxid = self.turns.inspect(minikeeper_engine::Engine::zxid);
        if marks.back().is_some_and(|(last, _)| *last == zxid) {
            marks.pop_back();
        }
        let kept = marks.len().saturating_sub(changes as usize);
        let Some((_, mark)) = marks.get(kept).copied() else {
            return;
        };
        // Rewinding removes the marks after it.
        marks.truncate(kept);
        self.rewind(mark);
        self.forget_mark(mark);
    }
}
