//! Turns: the only file that locks the engine.
//!
//! The one rule behind every ordering promise: something for a connection is appended only while
//! the engine lock is held, and a turn empties its own outbox before it applies anything.

use std::{
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::Waker,
};

use minikeeper_engine::{CloseReason, ConnId, Effects, Engine, Event, Input, Limit, Now};
use minikeeper_protocol::{ConnectResponse, ReplyHeader, ReplyRef, SessionId, event};
use parking_lot::Mutex;
use slab::Slab;
use tokio::sync::Notify;

use crate::{
    clock::Clock,
    outbox::{Close, Outbox},
};

/// The engine, behind its lock, and everything that only the lock's holder may touch.
#[derive(Debug)]
pub(crate) struct Turns {
    core: Mutex<Core>,
    clock: Clock,
    outbox_bytes_max: usize,
    /// Set once, by a panic inside a turn.
    broken: AtomicBool,
    /// Set once, by shutting down.
    stopped: AtomicBool,
    /// Resolves [`crate::Server::closed`] when broken.
    broke: Notify,
    /// What the expiry task sleeps until, in milliseconds since the start.
    armed_ms: AtomicU64,
    /// Wakes the expiry task when something is due earlier.
    rearm: Notify,
    #[cfg(feature = "planted")]
    planted: Option<crate::planted::Planted>,
}

#[derive(Debug)]
struct Core {
    engine: Engine,
    /// By connection number.
    outboxes: Slab<Arc<Outbox>>,
    counters: Counters,
}

/// What happened so far; plain numbers under a lock already held.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counters {
    /// Frames that came in and made sense.
    pub(crate) packets_received: u64,
    /// Frames that went out.
    pub(crate) packets_sent: u64,
    /// Requests refused because of a limit.
    pub(crate) limits_hit: u64,
}

/// What a turn leaves behind for its connection.
#[derive(Debug, Default)]
pub(crate) struct Leftover {
    /// How many of the inputs were applied; fewer than given if there was too much to write.
    pub(crate) applied: usize,
    /// Why the connection must close once everything is written.
    pub(crate) close: Option<Close>,
}

impl Turns {
    pub(crate) fn new(engine: Engine, clock: Clock, outbox_bytes_max: usize) -> Self {
        Self {
            core: Mutex::new(Core {
                engine,
                outboxes: Slab::new(),
                counters: Counters::default(),
            }),
            clock,
            outbox_bytes_max,
            broken: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
            broke: Notify::new(),
            armed_ms: AtomicU64::new(0),
            rearm: Notify::new(),
            #[cfg(feature = "planted")]
            planted: None,
        }
    }

    #[cfg(feature = "planted")]
    pub(crate) fn plant(&mut self, bug: Option<crate::planted::Planted>) {
        self.planted = bug;
    }

    pub(crate) const fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Makes room for a connection.
    pub(crate) fn register(&self, peer: IpAddr) -> (ConnId, Arc<Outbox>) {
        let outbox = Arc::new(Outbox::default());
        let mut core = self.core.lock();
        let key = core.outboxes.insert(Arc::clone(&outbox));
        let conn = ConnId(u32::try_from(key).expect("connections_max is far below"));
        // Asked under the lock: whoever closes all of them has seen this one, or is seen here.
        if self.is_broken() {
            outbox.close(Close::Broken);
            return (conn, outbox);
        }
        if self.stopped.load(Ordering::Acquire) {
            outbox.close(Close::Shutdown);
        }
        drop(core);
        self.apply_unasked(&Input::Open { conn, peer });
        (conn, outbox)
    }

    /// The connection is gone.
    pub(crate) fn unregister(&self, conn: ConnId) {
        if self.is_broken() {
            self.core.lock().outboxes.remove(conn.0 as usize);
            return;
        }
        self.turn(|core, now| {
            core.outboxes.remove(conn.0 as usize);
            let mut out = Vec::new();
            let mut effects = self.effects(&core.outboxes, core.counters, None, &mut out);
            core.engine
                .apply(now, &Input::Disconnect { conn }, &mut effects);
            effects.wakes
        });
    }

    /// Serves a batch of one connection's inputs, in order.
    ///
    /// Everything for this connection is appended to `out`; whom to wake is appended to `wakes`
    /// and is the caller's to do, soon. Stops early once `out` is longer than `out_bytes_max`.
    pub(crate) fn serve(
        &self,
        conn: ConnId,
        inputs: &[Input],
        out: &mut Vec<u8>,
        out_bytes_max: usize,
        wakes: &mut Vec<Waker>,
    ) -> Leftover {
        if self.is_broken() {
            return Leftover {
                applied: 0,
                close: Some(Close::Broken),
            };
        }
        let _fail_stop = FailStop::watch(self);
        #[cfg(feature = "planted")]
        let mut late = Vec::new();
        let mut leftover = Leftover::default();
        let mut core = self.core.lock();
        // Read under the lock: time never runs backwards from turn to turn.
        let now = self.clock.now();
        let Core {
            engine,
            outboxes,
            counters,
        } = &mut *core;
        // What other turns have put there happened before anything this turn will show.
        leftover.close = if self.is_drain_left_out() {
            None
        } else {
            outboxes[conn.0 as usize].drain(out)
        };
        #[cfg(feature = "planted")]
        let out = if self.is_planted(crate::planted::Planted::ReplyAfterUnlock) {
            &mut late
        } else {
            out
        };
        let mut effects = self.effects(outboxes, *counters, Some(conn), out);
        for input in inputs {
            if leftover.close.is_some() || effects.out.len() > out_bytes_max {
                break;
            }
            trace(input, engine.zxid());
            engine.apply(now, input, &mut effects);
            leftover.applied += 1;
            leftover.close = effects.close;
        }
        counters.packets_received += leftover.applied as u64;
        counters.packets_sent += effects.packets_sent;
        counters.limits_hit += effects.limits_hit;
        wakes.append(&mut effects.wakes);
        if engine.deadline_moved() || matches!(inputs.first(), Some(Input::Connect { .. })) {
            self.rearm_for(engine.next_deadline_ms());
        }
        #[cfg(feature = "planted")]
        self.append_after_unlocking(core, conn, late, wakes);
        leftover
    }

    /// Lets time pass: expires what is due.
    pub(crate) fn tick(&self) {
        self.apply_unasked(&Input::Tick);
    }

    /// Ends a session as if its time were up; whether it was there.
    pub(crate) fn expire(&self, session: SessionId) -> bool {
        let known = !self.is_broken()
            && self.inspect(|engine| engine.sessions().any(|(id, ..)| id == session));
        if known {
            self.apply_unasked(&Input::Expire { session });
        }
        known
    }

    fn apply_unasked(&self, input: &Input) {
        self.turn(|core, now| {
            let mut out = Vec::new();
            let mut effects = self.effects(&core.outboxes, core.counters, None, &mut out);
            core.engine.apply(now, input, &mut effects);
            core.counters.packets_sent += effects.packets_sent;
            effects.wakes
        });
    }

    /// A turn that belongs to no connection.
    fn turn(&self, serve: impl FnOnce(&mut Core, Now) -> Vec<Waker>) {
        if self.is_broken() {
            return;
        }
        let _fail_stop = FailStop::watch(self);
        let mut core = self.core.lock();
        let now = self.clock.now();
        let wakes = serve(&mut core, now);
        drop(core);
        wakes.into_iter().for_each(Waker::wake);
    }

    fn effects<'a>(
        &'a self,
        outboxes: &'a Slab<Arc<Outbox>>,
        counters: Counters,
        own: Option<ConnId>,
        out: &'a mut Vec<u8>,
    ) -> TurnEffects<'a> {
        TurnEffects {
            own,
            out,
            outboxes,
            outbox_bytes_max: self.outbox_bytes_max,
            wakes: Vec::new(),
            close: None,
            packets_sent: 0,
            limits_hit: 0,
            limits_hit_before: counters.limits_hit,
        }
    }

    /// Tells every connection to close.
    pub(crate) fn close_all(&self, why: Close) {
        let core = self.core.lock();
        let wakes: Vec<_> = core
            .outboxes
            .iter()
            .filter_map(|(_, outbox)| outbox.close(why))
            .collect();
        drop(core);
        wakes.into_iter().for_each(Waker::wake);
    }

    /// Tells the connection of a session to close; whether it had one.
    ///
    /// Found and told under one lock: a moment later its number may be somebody else's.
    pub(crate) fn disconnect(&self, session: SessionId) -> bool {
        let core = self.core.lock();
        let conn = core
            .engine
            .sessions()
            .find_map(|(id, _, conn)| conn.filter(|_| id == session));
        let waker = conn.and_then(|conn| core.outboxes[conn.0 as usize].close(Close::Asked));
        drop(core);
        waker.into_iter().for_each(Waker::wake);
        conn.is_some()
    }

    /// Closes every connection, those that come later included.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
        self.close_all(Close::Shutdown);
    }

    /// Whether nothing more is served.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    /// Looks at the engine between two turns.
    pub(crate) fn inspect<T>(&self, look: impl FnOnce(&Engine) -> T) -> T {
        look(&self.core.lock().engine)
    }

    pub(crate) fn counters(&self) -> Counters {
        self.core.lock().counters
    }

    pub(crate) fn connections(&self) -> usize {
        self.core.lock().outboxes.len()
    }

    pub(crate) fn is_broken(&self) -> bool {
        self.broken.load(Ordering::Acquire)
    }

    /// Waits until a panic inside a turn has stopped the server.
    pub(crate) async fn broke(&self) {
        let broke = self.broke.notified();
        if !self.is_broken() {
            broke.await;
        }
    }

    pub(crate) fn rearm_for(&self, deadline_ms: Option<u64>) {
        if deadline_ms.is_some_and(|deadline| deadline < self.armed_ms.load(Ordering::Acquire)) {
            self.rearm.notify_one();
        }
    }

    /// Notes what the expiry task will sleep until, and gives what may wake it earlier.
    pub(crate) fn arm(&self, deadline_ms: u64) -> &Notify {
        self.armed_ms.store(deadline_ms, Ordering::Release);
        &self.rearm
    }

    #[cfg(not(feature = "planted"))]
    #[expect(clippy::unused_self, reason = "the planted twin looks at it")]
    const fn is_drain_left_out(&self) -> bool {
        false
    }

    #[cfg(feature = "planted")]
    fn is_drain_left_out(&self) -> bool {
        self.is_planted(crate::planted::Planted::DrainLeftOut)
    }

    #[cfg(feature = "planted")]
    fn is_planted(&self, bug: crate::planted::Planted) -> bool {
        self.planted == Some(bug)
    }

    /// The planted bug: what a turn has to say is put into the outbox after unlocking, where
    /// another turn's events may have overtaken it.
    #[cfg(feature = "planted")]
    fn append_after_unlocking(
        &self,
        core: parking_lot::MutexGuard<'_, Core>,
        conn: ConnId,
        late: Vec<u8>,
        wakes: &mut Vec<Waker>,
    ) {
        let outbox = Arc::clone(&core.outboxes[conn.0 as usize]);
        drop(core);
        if !late.is_empty() {
            std::thread::yield_now();
            wakes.extend(
                outbox
                    .push(usize::MAX, |out| out.extend(late))
                    .ok()
                    .flatten(),
            );
        }
    }
}

/// One debug event a request, built only when somebody listens. Data is never logged.
fn trace(input: &Input, zxid: minikeeper_protocol::Zxid) {
    match input {
        Input::Request { conn, xid, request } => tracing::debug!(
            conn = conn.0,
            xid = xid.0,
            op = request.op().name(),
            path = request.path().map(tracing::field::display),
            %zxid,
            "request"
        ),
        Input::Connect { conn, hello } => tracing::debug!(
            conn = conn.0,
            session = %hello.session_id,
            timeout_ms = hello.timeout_ms,
            "handshake"
        ),
        other => tracing::debug!(?other, "input"),
    }
}

/// Stops everything when a turn panics: half a change may have been made, and this lock does not
/// poison.
struct FailStop<'a> {
    turns: &'a Turns,
    /// Whether the thread was unwinding already when the turn began: an in-process connection is
    /// dropped by its owner's panic, which is none of ours.
    was_panicking: bool,
}

impl<'a> FailStop<'a> {
    fn watch(turns: &'a Turns) -> Self {
        Self {
            turns,
            was_panicking: std::thread::panicking(),
        }
    }
}

impl Drop for FailStop<'_> {
    fn drop(&mut self) {
        if self.was_panicking || !std::thread::panicking() {
            return;
        }
        self.turns.broken.store(true, Ordering::Release);
        tracing::error!("the engine panicked: every connection is closed");
        self.turns.close_all(Close::Broken);
        self.turns.broke.notify_waiters();
    }
}

/// Carries out what the engine says, as far as that can be done under the lock.
struct TurnEffects<'a> {
    /// The connection whose turn it is.
    own: Option<ConnId>,
    out: &'a mut Vec<u8>,
    outboxes: &'a Slab<Arc<Outbox>>,
    outbox_bytes_max: usize,
    wakes: Vec<Waker>,
    /// Why the own connection must close.
    close: Option<Close>,
    packets_sent: u64,
    limits_hit: u64,
    limits_hit_before: u64,
}

impl Effects for TurnEffects<'_> {
    fn connected(&mut self, _: ConnId, response: &ConnectResponse) {
        self.packets_sent += 1;
        response.encode(self.out);
    }

    fn reply(&mut self, _: ConnId, header: ReplyHeader, body: ReplyRef<'_>) {
        self.packets_sent += 1;
        body.encode(header, self.out);
    }

    fn event(&mut self, to: ConnId, event: &Event<'_>) {
        self.packets_sent += 1;
        let write = |out: &mut Vec<u8>| event::encode(event.kind, event.path, event.zxid, out);
        if self.own == Some(to) {
            return write(self.out);
        }
        match self.outboxes[to.0 as usize].push(self.outbox_bytes_max, write) {
            Ok(waker) => self.wakes.extend(waker),
            Err(overflow) => {
                tracing::warn!(
                    conn = to.0,
                    bytes_max = self.outbox_bytes_max,
                    "outbox_bytes_max reached: the connection is closed"
                );
                self.wakes.extend(overflow.waker);
            }
        }
    }

    fn close(&mut self, conn: ConnId, why: CloseReason) {
        if self.own == Some(conn) {
            self.close = Some(Close::Engine(why));
        } else if let Some(outbox) = self.outboxes.get(conn.0 as usize) {
            self.wakes.extend(outbox.close(Close::Engine(why)));
        }
    }

    fn limit_hit(&mut self, limit: Limit, max: usize) {
        self.limits_hit += 1;
        // One line for the first, then ever fewer: a client may run into a limit in a loop.
        if (self.limits_hit_before + self.limits_hit).is_power_of_two() {
            tracing::warn!(
                setting = limit.setting(),
                max,
                "limit reached: a request is refused"
            );
        }
    }

    fn session_opened(&mut self, session: SessionId, timeout_ms: u32) {
        tracing::info!(%session, timeout_ms, "session opened");
    }

    fn session_ended(&mut self, session: SessionId, expired: bool) {
        tracing::info!(%session, expired, "session ended");
    }
}
