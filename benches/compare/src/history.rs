//! What happened in a run: the one thing a workload yields, and all that figures and judge look at.
//!
//! Times are nanoseconds of the machine's monotonic clock ([`crate::clock::now_ns`]), which all
//! processes of a machine share; a Java contender's `System.nanoTime()` is the same clock.

use crate::peers::{Access, Kind};

/// One action of a contender, or one result that it got.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Event {
    /// When.
    pub at_ns: u64,
    /// Who: an index into [`History::sessions`].
    pub contender: u32,
    /// What.
    pub what: What,
}

/// An action of a contender, or a result that it got.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum What {
    /// It was time to ask for the lock; in an open loop the asking may come later.
    Due,
    /// It calls acquire.
    Asked(Access),
    /// Acquire returned: the lock is held.
    Granted {
        /// The fencing token, if the lock has one.
        token: Option<u64>,
    },
    /// Acquire returned: certainly not held.
    Refused,
    /// It stopped waiting because the run is over.
    GaveUp,
    /// Acquire failed, and it is unknown whether the lock is held.
    AcquireUnknown,
    /// It wrote to the resource which the lock is there for.
    Wrote {
        /// With what token.
        token: Option<u64>,
        /// Whether the resource took it.
        is_accepted: bool,
    },
    /// The client library said that the lock is lost, and the contender stopped.
    Lost,
    /// Its process ended: it does nothing under the lock any more.
    Died,
    /// It calls release, and does nothing under the lock any more.
    Releasing,
    /// Release returned: the lock is released.
    Released,
    /// Release returned: it was not held any more.
    ReleaseRefused,
    /// Release failed, and it is unknown whether the lock is still held.
    ReleaseUnknown,
}

/// What happened in one run, of one lock.
#[derive(Clone, Debug)]
pub struct History {
    /// What excludes what.
    pub kind: Kind,
    /// Each contender's session, as the server knows it.
    pub sessions: Vec<String>,
    /// Everything that happened, by time. What happened to one contender is in its order.
    pub events: Vec<Event>,
}

impl History {
    /// Puts together what the contenders recorded, each for itself.
    #[must_use]
    pub fn of(kind: Kind, contenders: Vec<Recorder>) -> Self {
        let mut sessions = Vec::with_capacity(contenders.len());
        let mut events = Vec::new();
        for recorder in contenders {
            sessions.push(recorder.session);
            events.extend(recorder.events);
        }
        // Stable: what one contender did at the same nanosecond stays in its order.
        events.sort_by_key(|event| event.at_ns);
        Self {
            kind,
            sessions,
            events,
        }
    }
}

/// What one contender did: appended by itself, without a lock.
#[derive(Debug)]
pub struct Recorder {
    contender: u32,
    session: String,
    events: Vec<Event>,
}

impl Recorder {
    /// An empty one, for a contender with this number and session.
    #[must_use]
    pub fn new(contender: u32, session: String) -> Self {
        Self {
            contender,
            session,
            events: Vec::with_capacity(1_024),
        }
    }

    /// Whose it is.
    #[must_use]
    pub const fn contender(&self) -> u32 {
        self.contender
    }

    /// Adds what happened at this time.
    pub fn add(&mut self, at_ns: u64, what: What) {
        self.events.push(Event {
            at_ns,
            contender: self.contender,
            what,
        });
    }
}
