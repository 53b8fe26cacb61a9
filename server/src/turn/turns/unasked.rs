//! Turns that no connection has asked for: time, tests, what a closed connection leaves behind.

use std::task::Waker;

use minikeeper_engine::{Engine, Input, Now};

use crate::turn::{
    core::{Core, Found, Look},
    effects::TurnEffects,
    turns::Turns,
};

impl Turns {
    /// Lets time pass: expires what is due.
    pub(crate) fn tick(&self) {
        self.apply_unasked(&Input::Tick);
    }

    /// Ends sessions as if their time were up; how many. Found and ended under one lock.
    pub(crate) fn expire(&self, find: impl FnOnce(&Look<'_>) -> Vec<Found>) -> usize {
        let mut count = 0;
        let is_told = self.turn(|core, now| {
            let found = find(&core.look());
            count = found.len();
            self.alter_core(core, now, |engine, now, effects| {
                for (session, _) in found {
                    engine.apply(now, &Input::Expire { session }, effects);
                }
            })
            .1
        });
        if is_told { count } else { 0 }
    }

    pub(crate) fn apply_unasked(&self, input: &Input) {
        self.alter(|engine, now, effects| engine.apply(now, input, effects));
    }

    /// A turn of nobody's connection; `None` on a broken server.
    pub(crate) fn alter<T>(
        &self,
        change: impl FnOnce(&mut Engine, Now, &mut TurnEffects<'_>) -> T,
    ) -> Option<T> {
        let mut result = None;
        let is_told = self.turn(|core, now| {
            let (changed, wakes) = self.alter_core(core, now, change);
            result = Some(changed);
            wakes
        });
        result.filter(|_| is_told)
    }

    pub(super) fn alter_core<T>(
        &self,
        core: &mut Core,
        now: Now,
        change: impl FnOnce(&mut Engine, Now, &mut TurnEffects<'_>) -> T,
    ) -> (T, Vec<Waker>) {
        let mut out = Vec::new();
        let Core {
            engine,
            members,
            counters,
            log,
        } = core;
        let mut effects = self.effects(members, counters, log, None, &mut out);
        let changed = change(engine, now, &mut effects);
        let wakes = effects.wakes;
        if engine.deadline_moved() {
            self.alarm.rearm_for(engine.next_tick_ms());
        }
        (changed, wakes)
    }
}
