//! The engine's lock, and turns that serve requests under it.
//!
//! Source: `docs/zookeeper-protocol.md` sections 1 and 12.4.
//!
//! The rule behind every ordering guarantee: output for a connection is added only under the engine
//! lock, and a turn empties its own connection's outbox before it applies anything.

use std::{sync::Arc, task::Waker, time::Duration};

use minikeeper_engine::{ConnId, Engine, Input, Now};
use minikeeper_protocol::{ConnectRequest, SessionId, Zxid};
use parking_lot::{Mutex, MutexGuard};
use slab::Slab;

use crate::{
    clock::Clock,
    config::Config,
    data::{LogWriter, SaveError},
    ensemble::Ensemble,
    faults::{Faults, PICKED, aftermath::Aftermath},
    outbox::{Close, UnsentTotal},
    recording::recorder::Recorder,
    turn::{
        activity::Activity,
        alarm::Alarm,
        core::Core,
        effects::{Timed, TurnEffects},
        health::{FailStop, Failure, Health},
        members::Member,
        refused_sessions::RefusedSessions,
        sink::{Observer, Sink},
        stats::{Counters, Served},
    },
    work,
};

/// A turn that reads and writes at most this many bytes takes microseconds: its start time serves
/// as its end time, and the clock is not read again.
const LONG_TURN_BYTES: usize = 4 << 10;

/// The engine, behind its lock, and everything that only the lock's holder may touch.
#[derive(Debug)]
pub struct Turns {
    core: Mutex<Core>,
    /// Locked while the state is copied in pieces, and while the copy is read.
    pub copying: Mutex<()>,
    pub(super) clock: Clock,
    /// The injected faults.
    pub faults: Faults,
    pub(super) ensemble: Arc<Ensemble>,
    outbox_bytes_max: usize,
    reply_bytes_max: usize,
    pub(super) unsent: UnsentTotal,
    /// The prefix of the paths that clients use; empty for the server's own universe.
    prefix: String,
    pub(super) health: Health,
    /// Wakes the expiry task.
    pub(crate) alarm: Alarm,
    /// Wakes tasks that wait for server activity.
    pub activity: Activity,
    pub refused_sessions: RefusedSessions,
}

impl Turns {
    pub fn new(engine: Engine, clock: Clock, config: &Config, ensemble: Arc<Ensemble>) -> Self {
        Self {
            ensemble,
            core: Mutex::new(Core::new(engine)),
            copying: Mutex::new(()),
            clock,
            faults: Faults::default(),
            outbox_bytes_max: config.outbox_bytes_max,
            reply_bytes_max: config.reply_bytes_max(),
            unsent: UnsentTotal::new(config.unsent_bytes_max),
            prefix: String::new(),
            health: Health::default(),
            alarm: Alarm::default(),
            activity: Activity::default(),
            refused_sessions: RefusedSessions::default(),
        }
    }

    pub const fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Makes these the turns of a universe other than the server's own: the one with this prefix.
    pub fn with_prefix(mut self, prefix: String) -> Self {
        self.prefix = prefix;
        self
    }

    /// Returns the prefix of the paths that clients use; empty for the server's own universe.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Core> {
        let core = self.core.lock();
        work::begin_hold();
        core
    }

    /// Unlocks the engine, and lets whoever waits for it go first.
    pub(super) fn unlock(core: MutexGuard<'_, Core>) {
        MutexGuard::unlock_fair(core);
        work::end_hold();
    }

    /// Serves a batch of one connection's inputs, in order.
    ///
    /// Appends all output for this connection to `out`, and the tasks to wake to `wakes`; the
    /// caller must wake them soon.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "five percent of a getData, counted; the turns with faults are a second caller"
    )]
    pub(crate) fn serve(
        &self,
        batch: Batch<'_>,
        out: &mut Vec<u8>,
        wakes: &mut Vec<Waker>,
    ) -> Leftover {
        if self.is_broken() {
            return Leftover {
                close: Some(Close::Broken),
                ..Leftover::default()
            };
        }
        let _fail_stop = FailStop::watch(|| self.stop_broken());
        let mut core = self.lock();
        // Read under the lock: time never runs backwards from turn to turn.
        let (now, began_us) = core.begin_turn(&self.clock);
        let mut leftover = Leftover {
            began_ms: now.elapsed_ms,
            ..Leftover::default()
        };
        if let Some(aftermath) = batch.aftermath {
            let member = core.members.get(batch.conn.0 as usize);
            if aftermath.is_of_another(member.map(|member| &member.outbox)) {
                return leftover;
            }
        }
        let close = drain(&core, batch.conn, out);
        let (own_from, zxid_before) = (out.len(), core.engine.zxid());
        let applied = self.apply(&mut core, now, close, &batch, out, wakes);
        leftover.applied = applied.count;
        leftover.close = applied.close;
        let is_logged = core.write_log(now);
        if !is_logged {
            out.truncate(own_from);
            leftover.close = Some(Close::Broken);
        }
        if let Some(aftermath) = batch.aftermath {
            wakes.extend(aftermath.carry_out(out, own_from));
        }
        self.account(&mut core, now, zxid_before, &batch, &applied);
        core.end_turn(began_us, &self.clock);
        drop(core);
        if !is_logged {
            self.stop_unlogged();
        }
        if self.activity.is_wanted() {
            self.activity.notify_served(batch.inputs);
        }
        leftover
    }

    /// Applies the inputs of a batch until the connection must close or `out` is too long.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "part of every turn, see `serve`")]
    fn apply(
        &self,
        core: &mut Core,
        now: Now,
        mut close: Option<Close>,
        batch: &Batch<'_>,
        out: &mut Vec<u8>,
        wakes: &mut Vec<Waker>,
    ) -> Applied {
        let Core {
            engine,
            members,
            counters,
            log,
            sink,
            ..
        } = core;
        let kept = (log, sink);
        let mut effects = self.effects(members, counters, kept, Some(batch.conn), out);
        effects.opens_session = batch
            .hello()
            .is_some_and(|hello| hello.session_id == SessionId::NONE);
        let members = effects.members;
        if batch.hello().is_some() {
            effects.observer.opened(&members[batch.conn.0 as usize]);
        }
        let recorded = effects
            .observer
            .is_on
            .then(|| &members[batch.conn.0 as usize]);
        let mut count = 0;
        for input in batch.inputs {
            if close.is_some() || effects.out.len() > batch.out_bytes_max {
                break;
            }
            if recorded.is_some() {
                effects.observer.begin_input(now, input, effects.out.len());
            }
            engine.apply(now, input, &mut effects);
            if let Some(own) = recorded {
                (effects.observer).end_input(input, batch.conn, own, effects.out);
            }
            count += 1;
            close = effects.close;
        }
        wakes.append(&mut effects.wakes);
        Applied {
            count,
            out_bytes: effects.out.len(),
            replies: effects.replies,
            events: effects.own_events,
            timed: effects.timed,
            session: effects.session,
            close,
        }
    }

    /// Updates the counters after a turn, and sets the alarm if the next deadline has moved.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "part of every turn, see `serve`")]
    fn account(
        &self,
        core: &mut Core,
        now: Now,
        zxid_before: Zxid,
        batch: &Batch<'_>,
        applied: &Applied,
    ) {
        let Core {
            engine,
            members,
            counters,
            ..
        } = core;
        let received = batch.bytes_of_first(applied.count);
        let at_ms = if received.unwrap_or(0) + applied.out_bytes > LONG_TURN_BYTES {
            self.clock.elapsed_ms()
        } else {
            now.elapsed_ms
        };
        if let Some(bytes) = received {
            let latency_ms = at_ms.saturating_sub(batch.arrived_ms.unwrap_or(now.elapsed_ms));
            let Timed {
                failed,
                skipped,
                opened,
            } = applied.timed;
            let served = Served {
                applied: applied.count as u64,
                replies: applied.replies,
                events: applied.events,
                timed: applied.replies - skipped + opened,
                zxid: engine.zxid(),
                latency_ms: u32::try_from(latency_ms).unwrap_or(u32::MAX),
                at_ms,
            };
            counters.bytes_received += bytes as u64;
            counters.count(&served, zxid_before);
            let inputs = &batch.inputs[..applied.count];
            let stats = &mut members[batch.conn.0 as usize].stats;
            stats.count(&served, inputs, failed);
        }
        let hello = batch.hello();
        if let Some(hello) = hello {
            members[batch.conn.0 as usize].session = applied.session;
            counters.handshakes += 1;
            counters.revalidations += u64::from(hello.session_id != SessionId::NONE);
        }
        if engine.deadline_moved() || hello.is_some() {
            self.alarm.rearm_for(engine.next_tick_ms());
        }
    }

    /// Takes a turn that belongs to no connection. Returns false if the server is broken, or breaks
    /// because the changes could not be logged: then no client may see them.
    pub fn turn(&self, serve: impl FnOnce(&mut Core, Now) -> Vec<Waker>) -> bool {
        if self.is_broken() {
            return false;
        }
        let _fail_stop = FailStop::watch(|| self.stop_broken());
        let mut core = self.lock();
        let (now, began_us) = core.begin_turn(&self.clock);
        let wakes = serve(&mut core, now);
        let is_logged = core.write_log(now);
        core.end_turn(began_us, &self.clock);
        // A caller that makes many changes piece by piece lets others in between.
        Self::unlock(core);
        if !is_logged {
            self.stop_unlogged();
        }
        wakes.into_iter().for_each(Waker::wake);
        if self.activity.is_wanted() {
            self.activity.notify_turned();
        }
        is_logged
    }

    fn effects<'a>(
        &'a self,
        members: &'a Slab<Member>,
        counters: &'a mut Counters,
        (log, sink): Kept<'a>,
        own: Option<ConnId>,
        out: &'a mut Vec<u8>,
    ) -> TurnEffects<'a> {
        TurnEffects {
            own,
            out,
            members,
            turns: self,
            faults: &self.faults,
            outbox_bytes_max: self.outbox_bytes_max,
            reply_bytes_max: self.reply_bytes_max,
            unsent: &self.unsent,
            prefix: &self.prefix,
            wakes: Vec::new(),
            close: None,
            counters,
            log: log.as_deref_mut(),
            replies: 0,
            own_events: 0,
            own_event_bytes: 0,
            timed: Timed::default(),
            opens_session: false,
            session: SessionId::NONE,
            observer: Observer::new(sink.as_deref_mut()),
        }
    }

    /// Closes every connection, and those opened until [`Turns::resume`].
    pub fn stop(&self) {
        self.health.set_stopped(true);
        // This drops the events and requests that faults hold back, with the connections that are
        // kept only for such a request.
        drop(self.faults.remove(None));
        drop(self.faults.remove(Some(PICKED)));
        self.faults.marks.lock().clear();
        self.close_all(Close::Shutdown);
        self.activity.notify_recorded();
    }

    /// Serves again after [`Turns::stop`].
    pub fn resume(&self) {
        self.health.set_stopped(false);
        // Deadlines did not count while the server was stopped.
        self.alarm.rearm_for(Some(0));
    }

    /// Replaces the state as a restart does: closes every connection without serving another
    /// request on it, and resets the counters.
    pub fn renew(&self, change: impl FnOnce(&mut Engine, Now, Option<&mut Recorder>)) {
        self.turn(|core, now| {
            let members = core.members.iter();
            let wakes = members
                .filter_map(|(_, member)| member.outbox.close(Close::Shutdown))
                .collect();
            let Core { engine, sink, .. } = core;
            let recorder = sink.as_mut().and_then(|sink| sink.recorder.as_deref_mut());
            change(engine, now, recorder);
            core.note_replaced();
            core.counters = Counters::default();
            if core.engine.deadline_moved() {
                self.alarm.rearm_for(core.engine.next_tick_ms());
            }
            wakes
        });
    }

    /// Returns whether the server is down, for now or for ever.
    pub fn is_stopped(&self) -> bool {
        self.health.is_stopped()
    }

    /// Returns whether the engine is free within this time, rather than held by a thread for ever.
    pub fn is_free_within(&self, patience: Duration) -> bool {
        self.core.try_lock_for(patience).is_some()
    }

    /// Logs every change from now on.
    #[cfg(feature = "data")]
    pub(crate) fn log_to(&self, log: LogWriter) {
        self.lock().log = Some(Box::new(log));
    }

    /// Takes the error that stopped the log, if any.
    fn take_log_failure(&self) -> Option<SaveError> {
        let log = &mut self.lock().log;
        log.as_deref_mut().and_then(|log| log.take_failure())
    }

    /// Changes the server's counters: a reset, or a count from outside of turns.
    pub fn recount(&self, change: impl FnOnce(&mut Counters)) {
        change(&mut self.lock().counters);
    }

    pub fn is_broken(&self) -> bool {
        self.health.is_broken()
    }
}

/// The input of a turn: requests that a connection has read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Batch<'a> {
    pub(crate) conn: ConnId,
    pub(crate) inputs: &'a [Input],
    /// The end of each input in the bytes read.
    pub(crate) ends: &'a [usize],
    /// The start of the first input.
    pub(crate) start: usize,
    /// When an earlier turn began to serve input from the same read, in milliseconds since the
    /// start.
    pub(crate) arrived_ms: Option<u64>,
    /// Once the output is longer than this, the turn serves no more of the batch. Unit: bytes.
    pub(crate) out_bytes_max: usize,
    /// The fate of the output, if a fault decides it.
    pub(crate) aftermath: Option<&'a Aftermath>,
}

impl<'a> Batch<'a> {
    /// Returns the handshake, which comes first if there is one.
    #[inline]
    fn hello(&self) -> Option<&'a ConnectRequest> {
        match self.inputs.first() {
            Some(Input::Connect { hello, .. }) => Some(hello),
            _ => None,
        }
    }

    /// Returns the length of the first `count` inputs in the bytes read; `None` if `count` is 0.
    #[inline]
    fn bytes_of_first(&self, count: usize) -> Option<usize> {
        let last = count.checked_sub(1)?;
        Some(self.ends[last] - self.start)
    }
}

/// The result of applying a batch.
struct Applied {
    /// The number of inputs applied.
    count: usize,
    /// The length of the output afterwards. Unit: bytes.
    out_bytes: usize,
    /// The number of replies to the connection, those to handshakes included.
    replies: u64,
    /// The number of events for the connection.
    events: u64,
    timed: Timed,
    /// The session that the handshake opened or resumed.
    session: SessionId,
    /// Why the connection must close.
    close: Option<Close>,
}

/// The result of a turn for its connection.
#[derive(Debug, Default)]
pub(crate) struct Leftover {
    /// The number of inputs applied; fewer than given if the output grew too large.
    pub(crate) applied: usize,
    /// Why the connection must close once everything is written.
    pub(crate) close: Option<Close>,
    /// When the turn began, in milliseconds since the start.
    pub(crate) began_ms: u64,
}

impl Turns {
    pub(crate) fn apply_unasked(&self, input: &Input) {
        self.alter(|engine, now, effects| effects.apply(engine, now, input));
    }

    /// Takes a turn that belongs to no connection. Returns `None` on a broken server.
    pub fn alter<T>(
        &self,
        change: impl FnOnce(&mut Engine, Now, &mut TurnEffects<'_>) -> T,
    ) -> Option<T> {
        let mut result = None;
        let is_done = self.turn(|core, now| {
            let (changed, wakes) = self.alter_core(core, now, change);
            result = Some(changed);
            wakes
        });
        result.filter(|_| is_done)
    }

    pub(crate) fn alter_core<T>(
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
            sink,
            ..
        } = core;
        let mut effects = self.effects(members, counters, (log, sink), None, &mut out);
        let changed = change(engine, now, &mut effects);
        let wakes = effects.wakes;
        if engine.deadline_moved() {
            self.alarm.rearm_for(engine.next_tick_ms());
        }
        (changed, wakes)
    }
}

impl Turns {
    pub(super) fn stop_broken(&self) {
        tracing::error!("the engine panicked: every connection is closed");
        self.stop_for(Failure::Bug);
    }

    /// Stops the server because changes are missing from the log: no client may see them.
    pub(super) fn stop_unlogged(&self) {
        if let Some(error) = self.take_log_failure() {
            self.stop_unsaved(error);
        }
    }

    /// Stops the server because of this error of the log: no client may see the changes.
    pub(crate) fn stop_unsaved(&self, error: SaveError) {
        tracing::error!(err = %error, "every connection is closed");
        self.stop_for(Failure::Log(Arc::new(error)));
    }

    fn stop_for(&self, failure: Failure) {
        self.health.set_broken(failure);
        self.close_all(Close::Broken);
        self.health.notify_broken();
    }

    /// Waits until the server has failed. Returns why.
    pub async fn broke(&self) -> Failure {
        self.health.broke().await
    }
}

/// Moves a connection's outbox to its output: those events happened before anything that this turn
/// will show. Returns why the connection must close, if it must.
fn drain(core: &Core, conn: ConnId, out: &mut Vec<u8>) -> Option<Close> {
    core.members[conn.0 as usize].outbox.drain(out)
}

/// Where turns write: the log of changes, and the sink of what happens.
type Kept<'a> = (&'a mut Option<Box<LogWriter>>, &'a mut Option<Box<Sink>>);
