//! A place of a run, found again in another run: a request or an event of a client, by what the client
//! does before it.
//!
//! Clients of two runs connect in any order, so that a number tells nothing of them. What they do tells:
//! a place counts the clients that come to it, and is reached with the client of its rank.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use minikeeper_protocol::{OpCode, SessionId};

use crate::{faults::op::FaultOp, glob::Glob};

/// The maximum number of sessions of which a place takes notice.
const SESSIONS_MAX: usize = 10_000;

/// How a place is found again, the most precise way first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PlaceBy {
    /// By all requests of the client up to it, with their paths.
    History,
    /// By the first request of the client, and the ordinal among its requests with this operation and
    /// path.
    Start,
    /// By the ordinal among the requests of any client with this operation and path.
    Anyone,
    /// By the operations of the client up to it, whatever the paths before it, and a
    /// [similar](SimilarPath) path.
    Sequence,
}

impl PlaceBy {
    pub const ALL: [Self; 4] = [Self::History, Self::Start, Self::Anyone, Self::Sequence];
}

/// A pattern for the paths of a request.
#[derive(Clone, Debug)]
pub enum PathPattern {
    /// Any path, or none.
    Any,
    Path(String),
    Glob(Glob),
    Similar(SimilarPath),
}

impl PathPattern {
    /// Parses a pattern; an empty text stands for any path.
    pub fn new(text: &str) -> Self {
        if text.is_empty() {
            return Self::Any;
        }
        if !text.contains('*') {
            return Self::Path(text.to_owned());
        }
        Glob::new(text).map_or(Self::Any, Self::Glob)
    }

    pub fn matches(&self, path: &[u8]) -> bool {
        match self {
            Self::Any => true,
            Self::Path(wanted) => wanted.as_bytes() == path,
            Self::Glob(glob) => glob.matches(path),
            Self::Similar(similar) => similar.matches(path),
        }
    }
}

/// The path of a request of one run, as another run may have it: their names are equal, or may be random
/// in both.
#[derive(Clone, Debug)]
pub struct SimilarPath {
    names: Vec<SimilarName>,
    /// The names in each of the other runs. One that occurs again is not random.
    known: Vec<Arc<BTreeSet<String>>>,
}

#[derive(Clone, Debug)]
struct SimilarName {
    pattern: PathPattern,
    may_be_random: bool,
}

impl SimilarPath {
    /// Takes the names of a path, each with what is known of it as a pattern and whether it may be random
    /// nevertheless.
    pub fn new<'a>(
        names: impl Iterator<Item = (&'a str, bool)>,
        known: Vec<Arc<BTreeSet<String>>>,
    ) -> Self {
        let names = names.map(|(pattern, may_be_random)| SimilarName {
            // A pattern begins with a slash.
            pattern: PathPattern::new(&format!("/{pattern}")),
            may_be_random,
        });
        Self {
            names: names.collect(),
            known,
        }
    }

    fn matches(&self, path: &[u8]) -> bool {
        let Ok(path) = std::str::from_utf8(path) else {
            return false;
        };
        let others: Vec<&str> = path.split('/').collect();
        let is_same = |(name, other): (&SimilarName, &&str)| {
            name.pattern.matches(format!("/{other}").as_bytes())
        };
        let is_fixed = |pair: &(&SimilarName, &&str)| !pair.0.may_be_random && is_same(*pair);
        let may_be_random = |other: &&str| {
            !other.is_empty() && !self.known.iter().any(|known| known.contains(*other))
        };
        let names = &self.names;
        if names.len() == others.len() {
            return names.iter().zip(&others).all(|(name, other)| {
                is_same((name, other)) || name.may_be_random && may_be_random(other)
            });
        }
        // Of another depth: what is between the names at the beginning and at the end that are not random.
        let shorter = names.len().min(others.len());
        let before = names.iter().zip(&others);
        let before = before.take_while(is_fixed).count();
        let after = names.iter().rev().zip(others.iter().rev());
        let after = after.take(shorter - before);
        let after = after.take_while(is_fixed).count();
        let names = &names[before..names.len() - after];
        let others = &others[before..others.len() - after];
        !names.is_empty()
            && !others.is_empty()
            && names.iter().all(|name| name.may_be_random)
            && others.iter().all(may_be_random)
    }
}

/// A request of a client.
#[derive(Clone, Debug)]
pub struct PlaceStep {
    pub op: OpCode,
    pub path: PathPattern,
}

/// What a client did, or what it was sent.
#[derive(Clone, Copy)]
pub struct Deed<'a> {
    pub session: SessionId,
    /// The operation of a request; `None` for an event.
    pub op: Option<OpCode>,
    /// Whether one of its paths matches.
    pub is_at: &'a dyn Fn(&PathPattern) -> bool,
}

/// A place, and what clients have done towards it.
#[derive(Clone, Debug)]
pub struct FaultPlace {
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
    pub fn new(
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

    pub const fn with_rank(mut self, rank: u64) -> Self {
        self.rank = rank;
        self
    }

    /// Takes note of what a client does. Returns its rank if it has come to the place.
    pub fn arrival(&mut self, deed: &Deed<'_>) -> Option<u64> {
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
            PlaceBy::History => is_next && progress.done == self.length,
            PlaceBy::Sequence => {
                is_next && progress.done == self.length && (deed.is_at)(&self.path)
            }
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
    pub fn is_reached(&mut self, deed: &Deed<'_>) -> bool {
        self.arrival(deed) == Some(self.rank)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_is_similar_if_what_differs_may_be_random() {
        // `?` stands before a name that may be random.
        let similar = |names: &str| {
            let names = names.split('/').map(|name| match name.strip_prefix('?') {
                Some(name) => (name, true),
                None => (name, false),
            });
            let known = ["", "a", "b"].map(str::to_owned);
            SimilarPath::new(names, vec![Arc::new(known.into())])
        };
        for (own, other, expected) in [
            ("/a/b", "/a/b", true),
            ("/a/b", "/a/q7", false),
            ("/a/job-*", "/a/job-q7", true),
            ("/a/job-*", "/a/q7", false),
            ("/a/?x3", "/a/x3", true),
            ("/a/?x3", "/a/q7", true),
            // Known from other runs.
            ("/a/?x3", "/a/b", false),
            ("/a/?x3", "/b/q7", false),
            ("/a/?x3", "/", false),
            // Of another depth.
            ("/a/?x3/b", "/a/q7/q8/b", true),
            ("/?x3/?x4", "/q7", true),
            ("/a/?*/?*", "/a/q7", true),
            ("/a/?*", "/a/q7/q8", true),
            ("/a/?*", "/a/q7/b", false),
            ("/a/?x3", "/a", false),
            ("/a", "/a/q7", false),
            ("/a/?x3/b", "/a/q7/b/b", false),
            ("/a/a/?x3", "/a/q7", false),
        ] {
            let is_similar = similar(own).matches(other.as_bytes());
            assert_eq!(is_similar, expected, "{own} {other}");
        }
    }
}
