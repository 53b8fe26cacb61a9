//! What turns show: the state between two turns, the journal, and a recording.

use minikeeper_engine::{ConnId, Engine, Input};

use crate::{
    journal::{Journal, record::RecordKind},
    recording::recorder::Recorder,
    turn::{
        core::{Core, LockedState},
        sink::Sink,
        turns::Turns,
    },
};

impl Turns {
    /// Makes these turns write a journal of about this many bytes; of none if this is 0.
    pub(crate) fn with_journal(self, bytes_max: usize) -> Self {
        if bytes_max > 0 {
            self.lock().sink = Some(Box::new(Sink::new(bytes_max)));
        }
        self
    }

    /// Adds to the journal, if there is one, what happened outside of requests. A connection that is
    /// named is one whose handshake is done.
    pub(crate) fn note(
        &self,
        kind: RecordKind,
        conn: Option<ConnId>,
        text: impl FnOnce() -> String,
    ) {
        self.lock().note(&self.clock, kind, conn, text);
        if self.activity.is_wanted() {
            self.activity.notify_recorded();
        }
    }

    /// Adds the act of a fault to the journal, if there is one.
    pub(crate) fn note_fault(&self, conn: ConnId, input: &Input, fault: u64, action: &str) {
        let mut core = self.lock();
        let Core { sink, members, .. } = &mut *core;
        if let (Some(sink), Some(member)) = (sink, members.get(conn.0 as usize)) {
            sink.fault(self.clock.now(), member.who(), input, fault, action);
        }
        drop(core);
        if self.activity.is_wanted() {
            self.activity.notify_recorded();
        }
    }

    /// Uses the journal; `None` if there is none.
    pub(crate) fn journal<T>(&self, read: impl FnOnce(&mut Journal) -> T) -> Option<T> {
        self.lock()
            .sink
            .as_mut()
            .map(|sink| read(&mut sink.journal))
    }

    /// Uses what writes a recording, if one is being made; `None` if there is no journal.
    pub(crate) fn recorder<T>(
        &self,
        with: impl FnOnce(&mut Option<Box<Recorder>>) -> T,
    ) -> Option<T> {
        self.lock()
            .sink
            .as_mut()
            .map(|sink| with(&mut sink.recorder))
    }

    /// Reads the engine between two turns.
    pub(crate) fn inspect<T>(&self, read: impl FnOnce(&Engine) -> T) -> T {
        let core = self.lock();
        let seen = read(&core.engine);
        // A caller that looks at the state piece by piece lets others in between.
        Self::unlock(core);
        seen
    }

    /// Reads the whole state between two turns.
    pub(crate) fn read<T>(&self, read: impl FnOnce(LockedState<'_>) -> T) -> T {
        read(self.lock().locked())
    }
}
