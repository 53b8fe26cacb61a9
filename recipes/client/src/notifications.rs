//! Results, events and state changes, kept until callers take them.

use std::{collections::VecDeque, task::Waker};

use minikeeper_protocol::{EventKind, SessionId, Ustring, Zxid};
use slab::Slab;

use crate::{
    clock::Clock,
    core::{
        outcome::{Change, Effects, Epoch, Outcome, WatchEnd},
        watches::{WatchKind, WatchToken},
    },
    state::{ConnectionState, StateQueue},
};

/// A request that a caller waits for.
#[derive(Debug)]
pub(crate) enum Slot {
    Waiting(Option<Waker>),
    Done(Outcome),
}

/// The largest number of events that wait on one persistent watch. Later ones are dropped, and the
/// caller gets [`WatchEvent::Overflowed`](crate::WatchEvent::Overflowed).
pub(crate) const EVENTS_MAX: usize = 16 * 1024;

/// A watch that a caller waits for.
#[derive(Debug)]
pub(crate) struct WatchSlot {
    pub(crate) kind: WatchKind,
    pub(crate) path: Ustring,
    pub(crate) events: VecDeque<(EventKind, Ustring, Zxid)>,
    pub(crate) end: Option<WatchEnd>,
    /// Whether events were dropped, because too many were waiting.
    pub(crate) overflowed: bool,
    pub(crate) waker: Option<Waker>,
}

/// The events that one subscriber has not read.
#[derive(Debug, Default)]
pub(crate) struct EventQueue {
    pub(crate) events: VecDeque<(EventKind, Ustring, Zxid)>,
    /// Whether events were dropped, because too many were waiting.
    pub(crate) overflowed: bool,
    pub(crate) waker: Option<Waker>,
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Notifications {
    clock: Clock,
    pub(crate) slots: Slab<Slot>,
    pub(crate) watches: Slab<WatchSlot>,
    pub(crate) states: Slab<StateQueue>,
    pub(crate) event_queues: Slab<EventQueue>,
    pub(crate) state: ConnectionState,
    /// The tasks to wake once the client has ended.
    pub(crate) closing: Vec<Waker>,
    /// The tasks to wake once the lock is released.
    pub(crate) wakers: Vec<Waker>,
}

impl Notifications {
    pub(crate) fn new(clock: Clock) -> Self {
        Self {
            clock,
            slots: Slab::new(),
            watches: Slab::new(),
            states: Slab::new(),
            event_queues: Slab::new(),
            state: ConnectionState::Connecting,
            closing: Vec::new(),
            wakers: Vec::new(),
        }
    }

    /// Adds the slot of a watch.
    pub(crate) fn add_watch(&mut self, kind: WatchKind, path: Ustring) -> WatchToken {
        let key = self.watches.insert(WatchSlot {
            kind,
            path,
            events: VecDeque::new(),
            end: None,
            overflowed: false,
            waker: None,
        });
        WatchToken(u32::try_from(key).expect("memory runs out before 2^32 watches"))
    }
}

impl Effects for Notifications {
    fn completed(&mut self, caller: u32, outcome: Outcome) {
        let slot = &mut self.slots[caller as usize];
        if let Slot::Waiting(Some(waker)) = std::mem::replace(slot, Slot::Done(outcome)) {
            self.wakers.push(waker);
        }
    }

    fn watch_ended(&mut self, watch: WatchToken, end: WatchEnd) {
        let slot = &mut self.watches[watch.0 as usize];
        slot.end = Some(end);
        self.wakers.extend(slot.waker.take());
    }

    fn watch_fired(&mut self, watch: WatchToken, kind: EventKind, path: &Ustring, zxid: Zxid) {
        let slot = &mut self.watches[watch.0 as usize];
        if slot.events.len() == EVENTS_MAX {
            slot.overflowed = true;
        } else {
            // The path is copied, because it is a slice of the read buffer.
            let path = bytes::Bytes::copy_from_slice(path.as_bytes()).into();
            slot.events.push_back((kind, path, zxid));
        }
        self.wakers.extend(slot.waker.take());
    }

    fn event(&mut self, kind: EventKind, path: &Ustring, zxid: Zxid) {
        for (_, queue) in &mut self.event_queues {
            if queue.events.len() == EVENTS_MAX {
                queue.overflowed = true;
            } else {
                // The path is copied, because it is a slice of the read buffer.
                let path = bytes::Bytes::copy_from_slice(path.as_bytes()).into();
                queue.events.push_back((kind, path, zxid));
            }
            self.wakers.extend(queue.waker.take());
        }
    }

    fn changed(&mut self, change: Change) {
        self.state = match change {
            Change::Connected {
                epoch,
                session,
                read_only: true,
                ..
            } => ConnectionState::ReadOnly { epoch, session },
            Change::Connected {
                epoch,
                session,
                resumed,
                ..
            } => connected(epoch, session, resumed),
            Change::Suspended { epoch, until } => ConnectionState::Suspended {
                epoch,
                until: self.clock.at(until),
            },
            Change::Lost { epoch, reason } => ConnectionState::Lost { epoch, reason },
            Change::Closed => ConnectionState::Closed,
        };
        tracing::debug!(state = ?self.state, "connection state");
        for (_, queue) in &mut self.states {
            self.wakers.extend(queue.push(self.state));
        }
        if change == Change::Closed {
            for (_, queue) in &mut self.event_queues {
                self.wakers.extend(queue.waker.take());
            }
        }
    }

    fn stopped(&mut self) {
        self.wakers.append(&mut self.closing);
    }
}

fn connected(epoch: Epoch, session: SessionId, resumed: bool) -> ConnectionState {
    if epoch == Epoch(1) && !resumed {
        ConnectionState::Connected { epoch, session }
    } else {
        ConnectionState::Reconnected { epoch, session }
    }
}
