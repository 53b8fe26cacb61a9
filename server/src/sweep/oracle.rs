//! Compares what is left at the end of a run with what the runs without faults have left.

use std::{collections::BTreeMap, time::Duration};

use minikeeper_core::faults::place::PathPattern;

use crate::{sweep::model::Model, universe::Universe};

/// The maximum number of facts about an end.
const FACTS_MAX: usize = 10_000;

/// The longest data that are compared. Unit: bytes.
const DATA_BYTES_MAX: usize = 1_024;

/// The maximum number of differences that a failure tells of.
const TOLD_MAX: usize = 5;

/// How long the clients of a run have to close their connections.
const CLOSING_MAX: Duration = Duration::from_millis(500);

/// Something that is there at the end of a run.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Fact {
    /// What it is, such as "a znode".
    what: &'static str,
    /// Where it is; empty if it is nowhere.
    path: String,
    /// Its data, if they are compared.
    data: Option<Vec<u8>>,
}

/// What is there at the end of a run.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct End(Vec<Fact>);

impl End {
    /// Looks at a universe. Sessions without a connection expire first: nobody uses them.
    pub(crate) async fn of(universe: &Universe) -> Self {
        let step = Duration::from_millis(5);
        for _ in 0..CLOSING_MAX.as_millis() / step.as_millis() {
            if universe.connections() == 0 {
                break;
            }
            tokio::time::sleep(step).await;
        }
        for session in universe.sessions() {
            if !session.is_connected {
                // It may have ended.
                let _ = universe.expire(session.id);
            }
        }
        let mut facts = Vec::new();
        let mut add = |what, path: &str, data: Option<&[u8]>| {
            facts.push(Fact {
                what,
                path: path.to_owned(),
                data: data
                    .filter(|data| data.len() <= DATA_BYTES_MAX)
                    .map(<[u8]>::to_vec),
            });
        };
        for (path, znode) in universe.export_tree().iter() {
            add("the znode", path, znode.data().flatten());
        }
        for session in universe.sessions() {
            add("a client that is still connected", "", None);
            for path in &session.ephemerals {
                add("the ephemeral znode", path, None);
            }
            for watch in &session.watches {
                add("a watch", &watch.path, None);
            }
        }
        facts.sort();
        facts.truncate(FACTS_MAX);
        Self(facts)
    }
}

/// What is there at the end of every run without faults.
#[derive(Clone, Debug)]
pub(crate) struct Oracle {
    expected: BTreeMap<(&'static str, String), Expected>,
}

#[derive(Clone, Debug)]
struct Expected {
    pattern: PathPattern,
    count: usize,
    /// The data, if they are the same in all runs.
    data: Option<Vec<u8>>,
    /// Whether the runs without faults differ here.
    is_ignored: bool,
}

impl Oracle {
    /// Begins with the end of the first run.
    pub(crate) fn new(model: &Model, end: &End) -> Self {
        let mut expected: BTreeMap<(&'static str, String), Expected> = BTreeMap::new();
        for fact in &end.0 {
            let pattern = model.pattern(&fact.path);
            let known = expected
                .entry((fact.what, pattern))
                .or_insert_with_key(|(_, pattern)| Expected {
                    pattern: PathPattern::new(pattern),
                    count: 0,
                    data: fact.data.clone(),
                    is_ignored: false,
                });
            known.count += 1;
            if known.data != fact.data {
                known.data = None;
            }
        }
        Self { expected }
    }

    /// Learns from the end of another run without faults what differs by itself.
    pub(crate) fn learn(&mut self, end: &End) {
        let (counts, others) = self.count(end);
        for (key, expected) in &mut self.expected {
            let seen = counts.get(key);
            expected.is_ignored |= seen.map_or(0, |(count, _)| *count) != expected.count;
            if seen.is_none_or(|(_, data)| data.iter().any(|data| *data != &expected.data)) {
                expected.data = None;
            }
        }
        for fact in others {
            self.expected.insert(
                (fact.what, fact.path.clone()),
                Expected {
                    pattern: PathPattern::new(&fact.path),
                    count: 1,
                    data: None,
                    is_ignored: true,
                },
            );
        }
    }

    /// Returns how an end differs from that of the runs without faults.
    pub(crate) fn differences(&self, end: &End) -> Vec<String> {
        let (counts, others) = self.count(end);
        let mut told = Vec::new();
        let at = |what: &str, path: &str| match path {
            "" => what.to_owned(),
            path => format!("{what} {}", path.escape_debug()),
        };
        for ((what, path), expected) in &self.expected {
            if expected.is_ignored {
                continue;
            }
            let seen = counts.get(&(*what, path.clone()));
            let count = seen.map_or(0, |(count, _)| *count);
            if count != expected.count {
                let times = |count: usize| match count {
                    0 => "not at all".to_owned(),
                    1 => "once".to_owned(),
                    count => format!("{count} times"),
                };
                told.push(format!(
                    "{} is there {}, and {} without faults",
                    at(what, path),
                    times(count),
                    times(expected.count)
                ));
            }
            let other =
                seen.and_then(|(_, data)| data.iter().find(|data| **data != &expected.data));
            if let (Some(own), Some(other)) = (&expected.data, other) {
                let text = |data: &[u8]| {
                    String::from_utf8_lossy(data)
                        .chars()
                        .take(100)
                        .collect::<String>()
                };
                told.push(format!(
                    "{} has {:?}, and {:?} without faults",
                    at(what, path),
                    other.as_ref().map_or_else(String::new, |data| text(data)),
                    text(own)
                ));
            }
        }
        told.extend(others.into_iter().map(|fact| {
            format!(
                "{} is there, and not without faults",
                at(fact.what, &fact.path)
            )
        }));
        let more = told.len().saturating_sub(TOLD_MAX);
        told.truncate(TOLD_MAX);
        if more > 0 {
            told.push(format!("{more} further differences"));
        }
        told
    }

    /// Counts the facts of an end by what is expected, and finds those that are not.
    #[expect(clippy::type_complexity, reason = "both callers take it apart at once")]
    fn count<'a>(
        &self,
        end: &'a End,
    ) -> (
        BTreeMap<(&'static str, String), (usize, Vec<&'a Option<Vec<u8>>>)>,
        Vec<&'a Fact>,
    ) {
        let mut counts: BTreeMap<(&'static str, String), (usize, Vec<_>)> = BTreeMap::new();
        let mut others = Vec::new();
        for fact in &end.0 {
            let exact = (fact.what, fact.path.clone());
            let key = if self.expected.contains_key(&exact) {
                Some(exact)
            } else {
                let mut known = self.expected.iter();
                let found = known.find(|((what, _), expected)| {
                    *what == fact.what && expected.pattern.matches(fact.path.as_bytes())
                });
                found.map(|(key, _)| key.clone())
            };
            match key {
                Some(key) => {
                    let (count, data) = counts.entry(key).or_default();
                    *count += 1;
                    data.push(&fact.data);
                }
                None => others.push(fact),
            }
        }
        (counts, others)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(facts: &[(&'static str, &str, &str)]) -> End {
        let fact = |(what, path, data): &(&'static str, &str, &str)| Fact {
            what,
            path: (*path).to_owned(),
            data: Some(data.as_bytes().to_vec()),
        };
        End(facts.iter().map(fact).collect())
    }

    #[test]
    fn what_is_left_or_missing_or_has_other_data_is_told() {
        let model = Model::new(&[]);
        let clean = end(&[("z", "/jobs", ""), ("z", "/jobs/1", "done")]);
        let oracle = Oracle::new(&model, &clean);
        assert!(oracle.differences(&clean).is_empty());
        let twice = end(&[
            ("z", "/jobs", ""),
            ("z", "/jobs/1", "done"),
            ("z", "/jobs/2", "done"),
        ]);
        assert_eq!(
            oracle.differences(&twice),
            ["z /jobs/2 is there, and not without faults"]
        );
        let half = end(&[("z", "/jobs", ""), ("z", "/jobs/1", "begun")]);
        assert_eq!(
            oracle.differences(&half),
            ["z /jobs/1 has \"begun\", and \"done\" without faults"]
        );
        let none = end(&[("z", "/jobs", "")]);
        assert_eq!(
            oracle.differences(&none),
            ["z /jobs/1 is there not at all, and once without faults"]
        );
    }

    #[test]
    fn what_differs_by_itself_is_not_compared() {
        let model = Model::new(&[]);
        let mut oracle = Oracle::new(&model, &end(&[("z", "/a", "at 12:00"), ("z", "/b", "")]));
        oracle.learn(&end(&[("z", "/a", "at 12:01"), ("z", "/c", "")]));
        let other = end(&[("z", "/a", "at 12:02")]);
        assert!(oracle.differences(&other).is_empty());
        let missing = end(&[("z", "/b", "")]);
        assert_eq!(oracle.differences(&missing).len(), 1);
    }
}
