//! States of an engine that can be gone back to, and copies of it.

use minikeeper_protocol::{SessionId, Zxid};

use crate::{Effects, Engine, Mark, Now, input, report::digest::Digests};

impl Engine {
    /// Goes on behind this change, as if everything up to it had happened; never back, and never
    /// so far that the numbers could run out.
    pub fn skip_to(&mut self, zxid: Zxid) {
        let zxid = zxid.min(Zxid(input::ZXID_MAX));
        self.state.zxid = self.state.zxid.max(zxid);
    }

    /// Sets a mark to [`rewind`](Engine::rewind) to. Costs nothing by itself; from here on what
    /// changes is noted down.
    pub fn mark(&mut self) -> Mark {
        self.state.mark()
    }

    /// Goes back to a mark, which stays; marks set after it are forgotten. Costs what has changed
    /// since.
    ///
    /// Znodes are as they were, stats included; so are the watches of connected sessions. Sessions
    /// that have ended since are back, each with a whole timeout to be taken up again; those opened
    /// since are gone, and their connections close. The zxid does not go back, or clients that
    /// have seen it would be turned away: going back uses one up. Nor does time. Nobody is told.
    ///
    /// False, and nothing has happened, if there is no such mark: it was forgotten, or went when
    /// more than [`Settings::undo_bytes_max`](crate::Settings::undo_bytes_max) had changed.
    pub fn rewind(&mut self, mark: Mark, now: Now, effects: &mut impl Effects) -> bool {
        self.elapsed_ms = self.elapsed_ms.max(now.elapsed_ms);
        self.state.rewind(mark, now, effects)
    }

    /// Forgets a mark; whether it was there.
    pub fn forget_mark(&mut self, mark: Mark) -> bool {
        self.state.forget_mark(mark)
    }

    /// Another engine that begins with the same znodes, quotas, zxid and sessions, none of them
    /// connected, and has nothing in common with this one from then on. The next session it
    /// opens has the given id; time goes on for it from where it is here.
    #[must_use]
    pub fn fork(&self, next_session_id: SessionId) -> Self {
        let state = self.state.fork(next_session_id);
        Self {
            digests: state.settings.digests.then(Digests::new),
            state,
            elapsed_ms: self.elapsed_ms,
        }
    }
}
