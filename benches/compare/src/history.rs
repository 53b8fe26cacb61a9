//! The events of a run: the only result of a workload, and the only input of figures and judge.
//!
//! Times are nanoseconds of the machine's monotonic clock ([`crate::clock::now_ns`]), which all
//! processes of a machine share; a Java contender's `System.nanoTime()` is the same clock.

use crate::peers::{Access, Kind};

/// One action of a contender, or one result it received, with its time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Event {
    /// The time.
    pub at_ns: u64,
    /// The contender: an index into [`History::sessions`].
    pub contender: u32,
    /// The action or result.
    pub what: What,
}

/// An action of a contender, or a result it received.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum What {
    /// It was due to ask for the lock; in an open loop it may ask later.
    Due,
    /// It calls acquire.
    Asked(Access),
    /// Acquire returned: the lock is held.
    Granted {
        /// The fencing token, if the lock has one.
        token: Option<u64>,
    },
    /// Acquire returned: the lock is certainly not held.
    Refused,
    /// It stopped waiting because the run is over.
    GaveUp,
    /// Acquire failed, and it is unknown whether the lock is held.
    AcquireUnknown,
    /// It wrote to the resource that the lock protects.
    Wrote {
        /// The token of the write.
        token: Option<u64>,
        /// Whether the resource accepted it.
        is_accepted: bool,
    },
    /// The client library reported that the lock is or may be lost, and the contender stopped.
    Lost,
    /// Its process ended: it does not use the lock any more.
    Died,
    /// It calls release and does not use the lock any more.
    Releasing,
    /// Release returned: the lock is released.
    Released,
    /// Release returned: the lock was not held any more.
    ReleaseRefused,
    /// Release failed, and it is unknown whether the lock is still held.
    ReleaseUnknown,
}

/// The events of one run of one lock.
#[derive(Clone, Debug)]
pub struct History {
    /// Which holds exclude one another.
    pub kind: Kind,
    /// Each contender's session, as the server knows it.
    pub sessions: Vec<String>,
    /// All events in the order of their times. The events of one contender are in the order they
    /// happened.
    pub events: Vec<Event>,
}

impl History {
    /// Merges the records of the contenders.
    #[must_use]
    pub fn of(kind: Kind, contenders: Vec<Recorder>) -> Self {
        let mut sessions = Vec::with_capacity(contenders.len());
        let mut events = Vec::new();
        for recorder in contenders {
            sessions.push(recorder.session);
            events.extend(recorder.events);
        }
        // Stable: events of one contender in the same nanosecond stay in order.
        events.sort_by_key(|event| event.at_ns);
        Self {
            kind,
            sessions,
            events,
        }
    }
}

/// The events of one contender, which appends them itself, without a lock.
#[derive(Debug)]
pub struct Recorder {
    contender: u32,
    session: String,
    events: Vec<Event>,
}

impl Recorder {
    /// Creates an empty recorder for a contender with this number and session.
    #[must_use]
    pub fn new(contender: u32, session: String) -> Self {
        Self {
            contender,
            session,
            events: Vec::with_capacity(1_024),
        }
    }

    /// The contender's number.
    #[must_use]
    pub const fn contender(&self) -> u32 {
        self.contender
    }

    /// Adds an event at this time.
    pub fn add(&mut self, at_ns: u64, what: What) {
        self.events.push(Event {
            at_ns,
            contender: self.contender,
            what,
        });
    }
}
