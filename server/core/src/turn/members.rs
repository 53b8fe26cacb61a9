//! The connections that turns know: registered, moved, closed, woken and counted.

use std::{net::IpAddr, sync::Arc, task::Waker};

use minikeeper_engine::{ConnId, Input};
use minikeeper_protocol::SessionId;

use crate::{
    journal::Who,
    outbox::{self, Close, Outbox},
    peer::Peer,
    turn::{
        core::{Found, LockedState},
        stats::ConnStats,
        turns::Turns,
    },
};

/// The state that turns keep about a connection.
#[derive(Debug)]
pub struct Member {
    pub outbox: Arc<Outbox>,
    /// The session it opened or resumed; NONE before that.
    pub(crate) session: SessionId,
    pub stats: Box<ConnStats>,
}

impl Member {
    /// Returns what the journal says of the connection.
    pub(crate) fn who(&self) -> Who<'_> {
        Who {
            conn: self.stats.number,
            session: self.session,
            peer: &self.stats.peer,
        }
    }
}

impl Turns {
    /// Registers a connection.
    pub(crate) fn register(&self, peer: Peer, server: u8) -> (ConnId, Arc<Outbox>) {
        let outbox = Arc::new(Outbox::default());
        let (number, wall_ms) = {
            let mut core = self.lock();
            core.registered += 1;
            (core.registered, self.clock.now().wall_ms)
        };
        let stats = ConnStats::new(number, peer, server, wall_ms);
        let conn = self.attach(Member {
            outbox: Arc::clone(&outbox),
            session: SessionId::NONE,
            stats: Box::new(stats),
        });
        (conn, outbox)
    }

    /// Adds a connection: a new one, or one that another universe has detached.
    pub(crate) fn attach(&self, member: Member) -> ConnId {
        let (outbox, peer) = (Arc::clone(&member.outbox), member.stats.peer.ip());
        let mut core = self.lock();
        let key = core.members.insert(member);
        let conn = ConnId(u32::try_from(key).expect("connections_max is far below"));
        // Checked under the lock: either `close_all` finds this connection, or this check sees why
        // it was called.
        if self.is_broken() {
            outbox.close(Close::Broken);
            return conn;
        }
        if self.health.is_stopped() {
            outbox.close(Close::Shutdown);
        }
        drop(core);
        self.apply_unasked(&Input::Open { conn, peer });
        conn
    }

    /// Removes a connection that moves to another universe. `None` on a broken server.
    pub(crate) fn detach(&self, conn: ConnId) -> Option<Member> {
        let mut member = None;
        self.turn(|core, now| {
            member = core.members.try_remove(conn.0 as usize);
            let input = Input::Disconnect { conn };
            self.alter_core(core, now, |engine, now, effects| {
                effects.apply(engine, now, &input);
            })
            .1
        });
        member
    }

    /// Removes a closed connection; `dropped` says whether its client closed it.
    pub(crate) fn unregister(&self, conn: ConnId, dropped: bool) {
        if self.is_broken() {
            self.lock().members.remove(conn.0 as usize);
            return;
        }
        self.turn(|core, now| {
            core.members.remove(conn.0 as usize);
            core.counters.dropped += u64::from(dropped);
            if self.faults.are_set() {
                self.faults.forget_events(conn);
            }
            let input = Input::Disconnect { conn };
            self.alter_core(core, now, |engine, now, effects| {
                effects.apply(engine, now, &input);
            })
            .1
        });
    }

    /// Returns the number of a connection, which is never reused; 0 if it has ended.
    pub(crate) fn number_of(&self, conn: ConnId) -> u64 {
        let core = self.lock();
        let member = core.members.get(conn.0 as usize);
        member.map_or(0, |member| member.stats.number)
    }

    /// Orders every connection to close.
    pub fn close_all(&self, why: Close) {
        self.wake(|member| member.outbox.close(why));
    }

    /// Orders every connection to a server of the ensemble to close.
    pub fn close_server(&self, server: u8) {
        self.wake(|member| {
            let is_of_it = member.stats.server == server;
            is_of_it.then(|| member.outbox.close(Close::Asked))?
        });
    }

    /// Wakes every connection to a server of the ensemble.
    pub fn wake_server(&self, server: u8) {
        self.wake(|member| {
            let is_of_it = member.stats.server == server;
            is_of_it.then(|| member.outbox.take_waker())?
        });
    }

    fn wake(&self, waker: impl Fn(&Member) -> Option<Waker>) {
        let core = self.lock();
        let members = core.members.iter();
        let wakes: Vec<_> = members.filter_map(|(_, member)| waker(member)).collect();
        drop(core);
        wakes.into_iter().for_each(Waker::wake);
    }

    /// Orders the connections of sessions to close. Returns how many there were.
    ///
    /// Finds and closes them under one lock, because their numbers may be reused afterwards.
    pub fn disconnect(&self, find: impl FnOnce(&LockedState<'_>) -> Vec<Found>) -> usize {
        let core = self.lock();
        let found = find(&core.locked());
        let conns: Vec<_> = found.into_iter().filter_map(|(_, conn)| conn).collect();
        let close = |conn: &ConnId| {
            let member = core.members.get(conn.0 as usize)?;
            member.outbox.close(Close::Asked)
        };
        let wakes: Vec<_> = conns.iter().filter_map(close).collect();
        drop(core);
        wakes.into_iter().for_each(Waker::wake);
        conns.len()
    }

    /// Records the output of a connection that its socket has not taken. Must not be called in a
    /// turn.
    pub(crate) fn note_unsent(&self, outbox: &Outbox, bytes: usize) {
        outbox.set_unsent(bytes);
        if !self.unsent.add(bytes) {
            return;
        }
        let mut core = self.lock();
        let outboxes = core.members.iter().map(|(_, member)| &*member.outbox);
        let (closed, wakes) = self.unsent.relieve(outboxes);
        core.counters.limit_hits.unsent += closed;
        drop(core);
        wakes.into_iter().for_each(Waker::wake);
    }

    /// Closes connections as [`outbox::free_held`] does. Returns how many bytes this freed, and of
    /// how many connections.
    pub(crate) fn free_held(&self, since: u64, bytes: usize) -> (usize, u64) {
        let core = self.lock();
        let outboxes = core.members.iter().map(|(_, member)| &*member.outbox);
        let (freed, closed, wakes) = outbox::free_held(outboxes, since, bytes);
        drop(core);
        wakes.into_iter().for_each(Waker::wake);
        (freed, closed)
    }

    /// Counts a connection's four-letter word. Returns the client's address.
    pub(crate) fn count_word(&self, conn: ConnId, bytes: u64) -> IpAddr {
        let mut core = self.lock();
        core.counters.packets_received += 1;
        core.counters.bytes_received += bytes;
        let stats = &mut core.members[conn.0 as usize].stats;
        stats.received += 1;
        stats.is_word = true;
        stats.peer.ip()
    }

    /// Resets the counters of every connection.
    pub fn reset_connections(&self) {
        for (_, member) in &mut self.lock().members {
            member.stats.reset();
            member.outbox.reset_events();
        }
    }

    pub fn connections(&self) -> usize {
        self.lock().members.len()
    }
}
