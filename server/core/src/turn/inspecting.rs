//! What turns show: the state between two turns, the journal, and a recording.

use minikeeper_engine::Engine;

use crate::{
    journal::Journal,
    recording::recorder::Recorder,
    turn::{core::LockedState, sink::Sink, turns::Turns},
};

impl Turns {
    /// Makes these turns write a journal of about this many bytes; of none if this is 0.
    pub fn with_journal(self, bytes_max: usize) -> Self {
        if bytes_max > 0 {
            self.lock().sink = Some(Box::new(Sink::new(bytes_max)));
        }
        self
    }

    /// Uses the journal; `None` if there is none.
    pub fn journal<T>(&self, read: impl FnOnce(&mut Journal) -> T) -> Option<T> {
        self.lock()
            .sink
            .as_mut()
            .map(|sink| read(&mut sink.journal))
    }

    /// Uses what writes a recording, if one is being made; `None` if there is no journal.
    pub fn recorder<T>(&self, with: impl FnOnce(&mut Option<Box<Recorder>>) -> T) -> Option<T> {
        self.lock()
            .sink
            .as_mut()
            .map(|sink| with(&mut sink.recorder))
    }

    /// Reads the engine between two turns.
    pub fn inspect<T>(&self, read: impl FnOnce(&Engine) -> T) -> T {
        let core = self.lock();
        let seen = read(&core.engine);
        // A caller that looks at the state piece by piece lets others in between.
        Self::unlock(core);
        seen
    }

    /// Reads the whole state between two turns.
    pub fn read<T>(&self, read: impl FnOnce(LockedState<'_>) -> T) -> T {
        read(self.lock().locked())
    }
}
