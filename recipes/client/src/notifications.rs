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

/// The largest number of events that wait for one reader. Later ones are dropped, and the reader
/// gets [`WatchEvent::Overflowed`](crate::WatchEvent::Overflowed) in their place.
pub(crate) const EVENTS_MAX: usize = 16 * 1024;

/// The most that the events take that wait for one reader, beyond which they are dropped too. Unit:
/// bytes.
pub(crate) const EVENTS_BYTES_MAX: usize = 16 << 20;

/// The approximate size of an event without its path. Unit: bytes.
const EVENT_BYTES: usize = 64;

/// What waits for the reader of a persistent watch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Notice {
    Event(EventKind, Ustring, Zxid),
    /// Events were dropped here, because too many were waiting.
    Overflowed,
    /// Events may be missing here, because there was no connection.
    Interrupted,
}

/// A watch that a caller waits for.
#[derive(Debug)]
pub(crate) struct WatchSlot {
    pub(crate) kind: WatchKind,
    pub(crate) path: Ustring,
    pub(crate) end: Option<WatchEnd>,
    pub(crate) queue: EventQueue,
}

/// The events that one reader has not read.
#[derive(Debug, Default)]
pub(crate) struct EventQueue {
    notices: VecDeque<Notice>,
    /// The size of the events. Unit: bytes, estimated.
    bytes: usize,
    pub(crate) waker: Option<Waker>,
}

impl EventQueue {
    /// Adds an event. Returns the reader's waker.
    fn push(&mut self, kind: EventKind, path: &Ustring, zxid: Zxid) -> Option<Waker> {
        let bytes = self.bytes + size_of_event(path);
        if self.notices.len() >= EVENTS_MAX || bytes > EVENTS_BYTES_MAX {
            return self.mark(Notice::Overflowed);
        }
        self.bytes = bytes;
        // The path is copied, because it is a slice of the read buffer.
        let path = bytes::Bytes::copy_from_slice(path.as_bytes()).into();
        self.notices.push_back(Notice::Event(kind, path, zxid));
        self.waker.take()
    }

    /// Removes and returns the oldest notice.
    pub(crate) fn pop(&mut self) -> Option<Notice> {
        let notice = self.notices.pop_front()?;
        if let Notice::Event(_, path, _) = &notice {
            self.bytes -= size_of_event(path);
        }
        Some(notice)
    }

    /// Marks a place where events are missing, once. Returns the reader's waker.
    fn mark(&mut self, gap: Notice) -> Option<Waker> {
        let is_behind_a_gap = matches!(
            self.notices.back(),
            Some(Notice::Overflowed | Notice::Interrupted)
        );
        if !is_behind_a_gap {
            self.notices.push_back(gap);
        }
        self.waker.take()
    }
}

fn size_of_event(path: &Ustring) -> usize {
    path.as_bytes().len() + EVENT_BYTES
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
            end: None,
            queue: EventQueue::default(),
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
        self.wakers.extend(slot.queue.waker.take());
    }

    fn watch_fired(&mut self, watch: WatchToken, kind: EventKind, path: &Ustring, zxid: Zxid) {
        let queue = &mut self.watches[watch.0 as usize].queue;
        self.wakers.extend(queue.push(kind, path, zxid));
    }

    fn watch_interrupted(&mut self, watch: WatchToken) {
        let queue = &mut self.watches[watch.0 as usize].queue;
        self.wakers.extend(queue.mark(Notice::Interrupted));
    }

    fn event(&mut self, kind: EventKind, path: &Ustring, zxid: Zxid) {
        for (_, queue) in &mut self.event_queues {
            self.wakers.extend(queue.push(kind, path, zxid));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_queue_says_once_where_events_were_dropped_and_continues_behind() {
        let mut queue = EventQueue::default();
        let path = Ustring::from("/a");
        for zxid in 0..2 * EVENTS_MAX {
            queue.push(EventKind::DataChanged, &path, Zxid(zxid as i64));
        }
        assert_eq!(queue.notices.len(), EVENTS_MAX + 1);
        for _ in 0..EVENTS_MAX {
            assert!(queue.pop().is_some());
        }
        assert_eq!(queue.bytes, 0);
        queue.push(EventKind::Deleted, &path, Zxid(7));
        let event = Notice::Event(EventKind::Deleted, path, Zxid(7));
        assert_eq!(queue.notices, [Notice::Overflowed, event]);
    }

    #[test]
    fn queue_is_bounded_in_bytes() {
        // Only the number of events was bounded: with long paths they took gigabytes.
        let mut queue = EventQueue::default();
        let path = Ustring::from("x".repeat(1 << 20).as_str());
        for _ in 0..100 {
            queue.push(EventKind::DataChanged, &path, Zxid(1));
        }
        assert_eq!(queue.notices.len(), 15 + 1);
        assert!(queue.bytes <= EVENTS_BYTES_MAX);
    }

    #[test]
    fn reconnects_without_an_event_between_them_are_one_gap() {
        let mut queue = EventQueue::default();
        queue.mark(Notice::Interrupted);
        queue.mark(Notice::Interrupted);
        assert_eq!(queue.notices, [Notice::Interrupted]);
    }
}
