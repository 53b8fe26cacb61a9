//! A place of a run, found again in another run: a request or an event of a client, by what the client
//! does before it.
//!
//! Clients of two runs connect in any order, so that a number tells nothing of them. What they do tells:
//! a place counts the clients that come to it, and is reached with the client of its rank.

use std::{collections::BTreeMap, sync::Arc};

use minikeeper_protocol::{OpCode, SessionId};

use crate::faults::{glob::Glob, op::FaultOp};

/// The maximum number of sessions of which a place takes notice.
const SESSIONS_MAX: usize = 10_000;

/// How a place is found again, the most precise way first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PlaceBy {
    /// By all requests of the client up to it, with their paths.
    History,
    /// By the first request of the client, and the ordinal among its requests with this operation and
    /// path.
    Start,
    /// By the ordinal among the requests of any client with this operation and path.
    Anyone,
    /// By the operations of the client up to it, whatever their paths.
    Sequence,
}

impl PlaceBy {
    pub(crate) const ALL: [Self; 4] = [Self::History, Self::Start, Self::Anyone, Self::Sequence];
}

/// A pattern for the paths of a request.
#[derive(Clone, Debug)]
pub(crate) enum PathPattern {
    /// Any path, or none.
    Any,
    Path(String),
    Glob(Glob),
}

impl PathPattern {
    /// Parses a pattern; an empty text stands for any path.
    pub(crate) fn new(text: &str) -> Self {
        if text.is_empty() {
            return Self::Any;
        }
        if !text.contains('*') {
            return Self::Path(text.to_owned());
        }
        Glob::new(text).map_or(Self::Any, Self::Glob)
    }

    pub(crate) fn matches(&self, path: &[u8]) -> bool {
        match self {
            Self::Any => true,
            Self::Path(wanted) => wanted.as_bytes() == path,
            Self::Glob(glob) => glob.matches(path),
        }
    }
}

/// A request of a client.
#[derive(Clone, Debug)]
pub(crate) struct PlaceStep {
    pub(crate) op: OpCode,
    pub(crate) path: PathPattern,
}

/// What a client did, or what it was sent.
#[derive(Clone, Copy)]
pub(crate) struct Deed<'a> {
    pub(crate) session: SessionId,
    /// The operation of a request; `None` for an event.
    pub(crate) op: Option<OpCode>,
    /// Whether one of its paths matches.
    pub(crate) is_at: &'a dyn Fn(&PathPattern) -> bool,
}

/// A place, and what clients have done towards it.
#[derive(Clone, Debug)]
pub(crate) struct FaultPlace {
    pub(crate) by: PlaceBy,
    /// The requests of the client.
    pub(crate) history: Arc<Vec<PlaceStep>>,
    /// How many of them lie before the place or are the place.
    pub(crate) length: usize,
    /// The operation of the place; `None` for an event.
    pub(crate) op: Option<FaultOp>,
    pub(crate) path: PathPattern,
    /// The ordinal, from 1, of each client.
    pub(crate) nth: u64,
    /// Which client that comes to the place is meant, from 1.
    pub(crate) rank: u64,
    sessions: BTreeMap<SessionId, Progress>,
    arrivals: u64,
}

/// What a client has done towards a place.
#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    has_begun: bool,
    /// Whether its first request is the one of the history.
    is_alike: bool,
    /// Whether it has done something else than the history says.
    has_left: bool,
    /// How many requests of the history it has done.
    done: usize,
    count: u64,
}

impl FaultPlace {
    pub(crate) fn new(
        by: PlaceBy,
        (history, length): (Arc<Vec<PlaceStep>>, usize),
        (op, path, nth): (Option<FaultOp>, PathPattern, u64),
    ) -> Self {
        Self {
            by,
            history,
            length,
            op,
            path,
            nth,
            rank: u64::MAX,
            sessions: BTreeMap::new(),
            arrivals: 0,
        }
    }

    /// Takes note of what a client does. Returns its rank if it has come to the place.
    pub(crate) fn arrival(&mut self, deed: &Deed<'_>) -> Option<u64> {
        if self.sessions.len() >= SESSIONS_MAX && !self.sessions.contains_key(&deed.session) {
            return None;
        }
        let progress = self.sessions.entry(deed.session).or_default();
        let with_paths = self.by != PlaceBy::Sequence;
        let mut is_next = false;
        if let Some(op) = deed.op {
            let is_step =
                |step: &PlaceStep| step.op == op && (!with_paths || (deed.is_at)(&step.path));
            if !progress.has_begun {
                progress.has_begun = true;
                progress.is_alike = self.history.first().is_some_and(is_step);
            }
            is_next = !progress.has_left
                && progress.done < self.length
                && is_step(&self.history[progress.done]);
            progress.done += usize::from(is_next);
            progress.has_left |= !is_next;
        }
        let is_of_op = match (deed.op, self.op) {
            (Some(op), Some(wanted)) => wanted.is_of_op(op),
            (None, None) => true,
            _ => false,
        };
        let has_come = match self.by {
            PlaceBy::History | PlaceBy::Sequence => is_next && progress.done == self.length,
            PlaceBy::Start | PlaceBy::Anyone => {
                let counts = is_of_op && (deed.is_at)(&self.path);
                progress.count += u64::from(counts);
                counts
                    && progress.count == self.nth
                    && (self.by != PlaceBy::Start || progress.is_alike)
            }
        };
        has_come.then(|| {
            self.arrivals += 1;
            self.arrivals
        })
    }

    /// Takes note of what a client does. Returns whether the place is reached.
    pub(crate) fn is_reached(&mut self, deed: &Deed<'_>) -> bool {
        self.arrival(deed) == Some(self.rank)
    }
}
