//! Turns and the clock: what is due, and jumps.

use minikeeper_engine::{ConnId, Input};
use minikeeper_protocol::SessionId;
use slab::Slab;

use crate::{
    clock::Clock,
    ensemble::ServerMode,
    journal::record::RecordKind,
    turn::{
        core::{Core, Found, LockedState},
        members::Member,
        turns::Turns,
    },
};

/// The treatment of connected sessions when the clock jumps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Jump {
    /// Renews the sessions whose clients would have sent pings in that time.
    Keeping,
    /// Renews no session.
    Strict,
}

impl Turns {
    /// Returns the next deadline if the clock jumps, in milliseconds since the start; the outer
    /// `None` on a server that is broken or down.
    pub(crate) fn next_deadline_ms(&self, jump: Jump) -> Option<Option<u64>> {
        let mut core = self.lock();
        let is_up = !self.is_broken() && !self.is_stopped();
        is_up.then(|| {
            let Core {
                engine, members, ..
            } = &mut *core;
            let now = self.clock.now();
            match jump {
                Jump::Strict => engine.next_deadline_ms(now),
                Jump::Keeping => engine.next_deadline_of_silent_ms(now, self.answers(members)),
            }
        })
    }

    /// Advances the clock between two turns; the caller makes sure that nothing falls due on the
    /// way. Renews sessions under the same lock, so that none of them is due at the end. On a
    /// broken or stopped server only the clock moves.
    pub(crate) fn jump(&self, by_ms: u64, jump: Jump) {
        let mut core = self.lock();
        let is_up = !self.is_broken() && !self.is_stopped();
        let before = self.clock.now();
        if is_up {
            let until_ms = before.elapsed_ms.saturating_add(by_ms);
            core.engine.skip_idle_cleanups(before, until_ms);
        }
        self.clock.jump(by_ms);
        let mut renewed = None;
        if jump == Jump::Keeping {
            let Core {
                engine, members, ..
            } = &*core;
            let answers = self.answers(members);
            let is_heard = |(session, timeout_ms, conn): &(SessionId, u32, Option<ConnId>)| {
                conn.is_some_and(|conn| is_up && answers(*session, *timeout_ms, conn))
            };
            let heard = engine.sessions().filter(is_heard);
            renewed = Some(heard.map(|(session, ..)| session).collect::<Vec<_>>());
        }
        if let Some(recorder) = core.recorder()
            && by_ms > 0
        {
            recorder.jump(before, by_ms, is_up, renewed.as_deref());
        }
        if by_ms > 0 {
            let how = match jump {
                Jump::Keeping => "",
                Jump::Strict => ", strictly",
            };
            core.note(&self.clock, RecordKind::Clock, None, || {
                format!("advanced by {by_ms} ms{how}")
            });
        }
        if let Some(renewed) = renewed {
            core.engine.renew_sessions(self.clock.now(), &renewed);
        }
        drop(core);
        self.clock.notify_changed();
    }

    /// Selects the sessions that pings would renew, however far the clock jumps: they are
    /// connected, and neither a fault nor a server that is cut off keeps their pings from being
    /// served.
    fn answers(&self, members: &Slab<Member>) -> impl Fn(SessionId, u32, ConnId) -> bool {
        let has_faults = self.faults.are_set();
        move |session, timeout_ms, conn| {
            let Some(Member { outbox, stats, .. }) = members.get(conn.0 as usize) else {
                return false;
            };
            let is_silenced =
                || has_faults && self.faults.silence(session, &stats.peer, timeout_ms);
            let is_cut_off = || self.ensemble.mode(stats.server) == ServerMode::CutOff;
            !outbox.is_closing() && !outbox.is_delayed() && !is_silenced() && !is_cut_off()
        }
    }

    /// Reads the clock between two turns.
    pub fn read_clock<T>(&self, read: impl FnOnce(&Clock) -> T) -> T {
        let _core = self.lock();
        read(&self.clock)
    }

    /// Changes the clock between two turns, so that they never see time run backwards.
    pub fn change_clock<T>(&self, change: impl FnOnce(&Clock) -> T) -> T {
        let changed = self.read_clock(change);
        self.clock.notify_changed();
        changed
    }

    /// Handles what is due in the engine, such as the expiry of sessions.
    pub(crate) fn tick(&self) {
        self.apply_unasked(&Input::Tick);
    }

    /// Expires sessions as if their timeout were over. Returns how many. Finds and expires them
    /// under one lock.
    pub fn expire(&self, find: impl FnOnce(&LockedState<'_>) -> Vec<Found>) -> usize {
        let mut count = 0;
        let is_done = self.turn(|core, now| {
            let found = find(&core.locked());
            count = found.len();
            self.alter_core(core, now, |engine, now, effects| {
                for (session, _) in found {
                    effects.apply(engine, now, &Input::Expire { session });
                }
            })
            .1
        });
        if is_done { count } else { 0 }
    }
}
