//! How much of a test a sweep has tried: by fault, operation, path and state of a lock.

use std::{collections::BTreeMap, fmt};

use minikeeper_protocol::SessionId;

use crate::sweep::{
    acts::Act,
    map::{PointState, SweepMap},
};

/// How many of the points of one kind were tried.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Coverage {
    /// What the points have in common: `fault`, `operation`, `path` or `lock`.
    pub by: &'static str,
    /// The fault, operation or path, or in which state of a lock the client was.
    pub name: String,
    /// The number of points tried, in this sweep or in one that it resumes.
    pub tried: u64,
    /// The number of points known, those of rules and equivalent ones not included.
    pub known: u64,
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            by,
            name,
            tried,
            known,
        } = self;
        write!(f, "{by} {}: {tried} of {known}", name.escape_debug())
    }
}

impl SweepMap {
    /// Returns how many points of each kind were tried.
    pub(crate) fn coverage(&self) -> Vec<Coverage> {
        let mut counts: BTreeMap<(usize, &'static str, &str), (u64, u64)> = BTreeMap::new();
        for row in &self.rows {
            for (fault, state) in &row.states {
                if matches!(state, PointState::Equivalent | PointState::LeftOut) {
                    continue;
                }
                let is_tried = !matches!(state, PointState::Untried | PointState::NotReached);
                let kinds = [
                    ("fault", fault.name()),
                    ("operation", &row.op[..]),
                    ("path", &row.path[..]),
                    ("lock", row.lock),
                ];
                for (place, (by, name)) in kinds.into_iter().enumerate() {
                    if !name.is_empty() {
                        let count = counts.entry((place, by, name)).or_default();
                        count.0 += u64::from(is_tried);
                        count.1 += 1;
                    }
                }
            }
        }
        let counts = counts.into_iter();
        let coverage = counts.map(|((_, by, name), (tried, known))| Coverage {
            by,
            name: name.to_owned(),
            tried,
            known,
        });
        coverage.collect()
    }
}

/// The queues of locks while a run goes on: sequential znodes with one parent.
#[derive(Debug, Default)]
pub(crate) struct Queues<'a> {
    /// By parent: the znodes, with the ends of their names, by which they are ordered.
    queues: BTreeMap<&'a str, BTreeMap<(&'a str, &'a str), SessionId>>,
}

/// The length of the number of a sequential znode. Unit: characters.
const NUMBER_CHARS: usize = 10;

impl<'a> Queues<'a> {
    /// Returns in which state of a lock a client does something; empty if it has to do with no lock.
    pub(crate) fn state_at(&self, act: &Act) -> &'static str {
        let Some(path) = act.path() else {
            return "";
        };
        let of_parent = path
            .rsplit_once('/')
            .and_then(|(parent, _)| self.queues.get(parent));
        let Some(queue) = self.queues.get(path).or(of_parent) else {
            return if act.sequential.is_empty() {
                ""
            } else {
                "the queue is empty"
            };
        };
        let own = queue.values().position(|session| *session == act.session);
        match (own, queue.len()) {
            (_, 0) => "the queue is empty",
            (None, _) => "others are in the queue",
            (Some(0), 1) => "it is first, and nobody waits",
            (Some(0), _) => "it is first, and others wait",
            (Some(1), _) => "it is second",
            (Some(_), _) => "it is third or later",
        }
    }

    /// Notes what a client does.
    pub(crate) fn note(&mut self, act: &'a Act) {
        if let Some(created) = &act.created
            && !act.sequential.is_empty()
            && let Some((parent, name)) = created.rsplit_once('/')
        {
            let queue = self.queues.entry(parent).or_default();
            queue.insert((number_of(name), name), act.session);
        }
        let has_succeeded = act.result.starts_with("OK");
        match act.name {
            "delete" | "deleteContainer" if has_succeeded => {
                let Some((parent, name)) = act.path().and_then(|path| path.rsplit_once('/')) else {
                    return;
                };
                if let Some(queue) = self.queues.get_mut(parent) {
                    queue.remove(&(number_of(name), name));
                }
            }
            "closeSession" => {
                for queue in self.queues.values_mut() {
                    queue.retain(|_, session| *session != act.session);
                }
            }
            _ => {}
        }
    }
}

fn number_of(name: &str) -> &str {
    let from = name.len().saturating_sub(NUMBER_CHARS);
    name.get(from..).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn act(session: i64, name: &'static str, path: &str, created: Option<&str>) -> Act {
        Act {
            session: SessionId(session),
            name,
            paths: vec![path.to_owned()],
            result: "OK".to_owned(),
            created: created.map(str::to_owned),
            sequential: created.iter().map(|_| path.to_owned()).collect(),
            ..Act::default()
        }
    }

    #[test]
    fn place_in_the_queue_is_told() {
        let acts = [
            act(1, "create", "/lock/a-", Some("/lock/a-0000000001")),
            act(2, "create", "/lock/b-", Some("/lock/b-0000000000")),
            act(1, "getChildren", "/lock", None),
            act(2, "delete", "/lock/b-0000000000", None),
            act(1, "getChildren", "/lock", None),
            act(1, "closeSession", "", None),
            act(3, "getChildren", "/lock", None),
            act(3, "getData", "/config", None),
        ];
        let mut queues = Queues::default();
        let mut told = Vec::new();
        for act in &acts {
            told.push(queues.state_at(act));
            queues.note(act);
        }
        assert_eq!(
            told,
            [
                "the queue is empty",
                "others are in the queue",
                "it is second",
                "it is first, and others wait",
                "it is first, and nobody waits",
                "",
                "the queue is empty",
                "",
            ]
        );
    }
}
