//! Checks a run by the changes on the server, in the order of zxids: contenders must hold the lock
//! in order of arrival, and one at a time.
//!
//! No contender gives up, so the znodes of a lock must be deleted in the order of their creation.
//! Between two deletions the ledger is written once: by the contender at the head of the queue.

use std::collections::{BTreeMap, BTreeSet};

use super::names::{self, Kind, LEASES, MEMBERS};

/// The rule for the children of a directory.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Rule {
    /// One holder at a time, which writes to this ledger.
    Alone { ledger: String },
    /// One writer at a time, which writes to this ledger; readers hold together.
    ReadWrite { ledger: String },
    /// One at a time. Each creates a lease before it leaves; at most `max` leases may exist then.
    LeaseLock { leases: String, max: usize },
    /// Deleted in any order.
    Leases,
}

#[derive(Debug)]
struct Directory {
    rule: Rule,
    /// The znodes by sequence number and whether they are readers: a writer that downgrades has
    /// both.
    live: BTreeMap<(u64, bool), String>,
    /// The largest number so far.
    newest: Option<u64>,
    /// The number of writes by the contender at the head.
    writes: u32,
}

/// A change of a znode.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Change {
    Created,
    Deleted,
    Written,
}

#[derive(Debug)]
pub(crate) struct Judge {
    directories: BTreeMap<String, Directory>,
    gauge: String,
    marks: BTreeSet<String>,
    marks_max: usize,
    last_program: String,
    /// The number of writes to the ledgers.
    pub(crate) writes: u32,
    /// The number of marks created.
    pub(crate) marked: u32,
    /// How often a mark of one program followed one of the other.
    pub(crate) passes: u32,
    /// The maximum number of marks at once.
    pub(crate) inside_max: usize,
    /// The maximum length of a queue.
    pub(crate) queue_max: usize,
    /// The violations, as text.
    pub(crate) violations: Vec<String>,
}

impl Judge {
    pub(crate) fn new(kind: Kind, path: &str) -> Self {
        let ledger = names::ledger(path, "");
        let (locks, leases) = (format!("{path}/locks"), format!("{path}/leases"));
        let rules = match kind {
            Kind::Mutex | Kind::LeaderLatch => vec![(path.to_owned(), Rule::Alone { ledger })],
            Kind::ReadWrite => vec![(path.to_owned(), Rule::ReadWrite { ledger })],
            Kind::SemaphoreMutex => vec![
                (leases.clone(), Rule::Alone { ledger }),
                (locks, Rule::LeaseLock { leases, max: 1 }),
            ],
            Kind::Semaphore => vec![
                (leases.clone(), Rule::Leases),
                (
                    locks,
                    Rule::LeaseLock {
                        leases,
                        max: LEASES,
                    },
                ),
            ],
            Kind::MultiLock => MEMBERS
                .map(|member| {
                    let ledger = names::ledger(path, member);
                    (names::member(path, member), Rule::Alone { ledger })
                })
                .into(),
        };
        let directory = |rule| Directory {
            rule,
            live: BTreeMap::new(),
            newest: None,
            writes: 0,
        };
        Self {
            directories: rules
                .into_iter()
                .map(|(path, rule)| (path, directory(rule)))
                .collect(),
            gauge: names::gauge(path),
            marks: BTreeSet::new(),
            marks_max: match kind {
                Kind::Semaphore => LEASES,
                _ => usize::MAX,
            },
            last_program: String::new(),
            writes: 0,
            marked: 0,
            passes: 0,
            inside_max: 0,
            queue_max: 0,
            violations: Vec::new(),
        }
    }

    pub(crate) fn see(&mut self, change: Change, path: &str) {
        if change == Change::Written {
            self.written(path);
            return;
        }
        if let Some(directory) = self.directories.get_mut(path) {
            // The server deleted the empty container; its numbers begin again.
            directory.newest = None;
            return;
        }
        let Some((parent, name)) = path.rsplit_once('/') else {
            return;
        };
        if parent == self.gauge {
            self.marked(change, name);
        } else if self.directories.contains_key(parent) {
            match change {
                Change::Created => self.created(parent, name),
                _ => self.deleted(parent, name),
            }
        }
    }

    /// Reports the znodes and marks that still exist at the end.
    pub(crate) fn finish(&mut self) {
        for directory in self.directories.values() {
            let left = directory.live.values();
            self.violations
                .extend(left.map(|name| format!("{name} is left behind")));
        }
        let left = self.marks.iter();
        self.violations
            .extend(left.map(|name| format!("the mark {name} is left behind")));
    }

    fn written(&mut self, path: &str) {
        let found = self.directories.values_mut().find(|directory| {
            matches!(&directory.rule,
                Rule::Alone { ledger } | Rule::ReadWrite { ledger } if ledger == path)
        });
        let Some(directory) = found else { return };
        self.writes += 1;
        directory.writes += 1;
        if directory.writes > 1 {
            self.violations
                .push(format!("{path} is written twice under one lock"));
        }
        match directory.live.first_key_value() {
            None => self.violations.push(format!(
                "{path} is written while no contender holds the lock"
            )),
            Some(((_, true), name)) => self
                .violations
                .push(format!("{path} is written while {name} reads")),
            Some(_) => {}
        }
        if !self.marks.is_empty() {
            self.violations
                .push(format!("{path} is written while {:?} read", self.marks));
        }
    }

    fn marked(&mut self, change: Change, name: &str) {
        if change == Change::Deleted {
            self.marks.remove(name);
            return;
        }
        self.marks.insert(name.to_owned());
        self.marked += 1;
        self.inside_max = self.inside_max.max(self.marks.len());
        if self.marks.len() > self.marks_max {
            self.violations
                .push(format!("{:?} hold leases at once", self.marks));
        }
        let program = name.split('-').next().unwrap_or_default();
        if program != self.last_program {
            self.passes += u32::from(!self.last_program.is_empty());
            program.clone_into(&mut self.last_program);
        }
    }

    fn created(&mut self, parent: &str, name: &str) {
        let Some(directory) = self.directories.get_mut(parent) else {
            return;
        };
        let Some(key) = key(name) else {
            self.violations.push(format!("{name} is in no queue"));
            return;
        };
        // A writer that downgrades keeps its number as a reader.
        let is_again = key.1 && directory.live.contains_key(&(key.0, false));
        if !is_again && directory.newest.is_some_and(|newest| key.0 <= newest) {
            self.violations
                .push(format!("{name} enters ahead of others"));
        }
        directory.newest = directory.newest.max(Some(key.0));
        directory.live.insert(key, name.to_owned());
        self.queue_max = self.queue_max.max(directory.live.len());
    }

    fn deleted(&mut self, parent: &str, name: &str) {
        let Some(directory) = self.directories.get_mut(parent) else {
            return;
        };
        let Some(key) = key(name).filter(|key| directory.live.contains_key(key)) else {
            self.violations
                .push(format!("{name} is deleted but did not exist"));
            return;
        };
        let wrong = match &directory.rule {
            Rule::Alone { .. } | Rule::LeaseLock { .. } => directory.live.range(..key).next(),
            Rule::ReadWrite { .. } => {
                let mut ahead = directory.live.range(..key);
                ahead.find(|((_, is_reader), _)| !key.1 || !is_reader)
            }
            Rule::Leases => None,
        };
        if let Some((_, first)) = wrong {
            self.violations
                .push(format!("{name} leaves before {first}"));
        }
        let is_writer = match directory.rule {
            Rule::Alone { .. } => true,
            Rule::ReadWrite { .. } => !key.1,
            _ => false,
        };
        if is_writer {
            if directory.writes == 0 {
                self.violations.push(format!("{name} has written nothing"));
            }
            directory.writes = 0;
        }
        directory.live.remove(&key);
        if let Rule::LeaseLock { leases, max } = &directory.rule {
            let (leases, max) = (leases.clone(), *max);
            let there = self.directories.get(&leases).map_or(0, |d| d.live.len());
            if there > max {
                self.violations.push(format!(
                    "{name} leaves while {there} leases of at most {max} exist"
                ));
            }
        }
    }
}

/// Returns the sequence number of a znode, and whether it belongs to a reader.
fn key(name: &str) -> Option<(u64, bool)> {
    let digits = name.get(name.len().checked_sub(10)?..)?;
    Some((digits.parse().ok()?, name.contains("__READ__")))
}

#[cfg(test)]
mod tests {
    use super::{Change::*, *};

    /// Judges a script: `+` creates, `-` deletes, `=` writes.
    fn judged(kind: Kind, script: &str) -> Vec<String> {
        let mut judge = Judge::new(kind, "/l");
        for word in script.split_whitespace() {
            let (change, path) = word.split_at(1);
            let change = match change {
                "+" => Created,
                "-" => Deleted,
                _ => Written,
            };
            judge.see(change, &format!("/l{path}"));
        }
        judge.finish();
        judge.violations
    }

    const W1: &str = "/__WRIT__0000000001";
    const W2: &str = "/__WRIT__0000000002";
    const R2: &str = "/__READ__0000000002";
    const R1: &str = "/__READ__0000000001";

    #[test]
    fn correct_orders_have_no_violations() {
        let one_by_one = "+/lock-0000000001 +/lock-0000000002 =-ledger -/lock-0000000001 =-ledger -/lock-0000000002";
        assert_eq!(judged(Kind::Mutex, one_by_one), [""; 0]);
        let readers = format!("+{R1} +{R2} +-gauge/java-1 --gauge/java-1 -{R2} -{R1}");
        assert_eq!(judged(Kind::ReadWrite, &readers), [""; 0]);
        let downgrade = format!("+{W1} =-ledger +{W2} +{R1} -{W1} -{R1} =-ledger -{W2}");
        assert_eq!(judged(Kind::ReadWrite, &downgrade), [""; 0]);
        let swept = "+/lock-0000000001 =-ledger -/lock-0000000001 - + +/lock-0000000000 =-ledger -/lock-0000000000";
        assert_eq!(judged(Kind::Mutex, swept), [""; 0]);
    }

    #[track_caller]
    fn assert_wrong(kind: Kind, script: &str, why: &str) {
        let found = judged(kind, script);
        assert!(found.iter().any(|found| found.contains(why)), "{found:?}");
    }

    #[test]
    fn wrong_orders_are_found() {
        let overtaken = "+/lock-0000000001 +/lock-0000000002 =-ledger -/lock-0000000002";
        assert_wrong(Kind::Mutex, overtaken, "leaves before lock-0000000001");
        let reader = format!("+{W1} +{R2} -{R2} =-ledger -{W1}");
        assert_wrong(Kind::ReadWrite, &reader, "leaves before");
        assert_wrong(
            Kind::LeaderLatch,
            "+/latch-0000000002 +/latch-0000000001",
            "enters ahead of others",
        );
        assert_wrong(Kind::Mutex, "+/lock-1", "is in no queue");
    }

    #[test]
    fn two_holders_are_found() {
        let twice = "+/lock-0000000001 +/lock-0000000002 =-ledger =-ledger -/lock-0000000001";
        assert_wrong(Kind::Mutex, twice, "written twice");
        assert_wrong(
            Kind::MultiLock,
            "+/a/lock-0000000001 =-ledgera -/a/lock-0000000001 =-ledgera",
            "while no contender holds",
        );
        let beside = format!("+{R1} +-gauge/rust-1 -{R1} +{W2} =-ledger");
        assert_wrong(Kind::ReadWrite, &beside, "is written while {\"rust-1\"}");
        let early = format!("+{R1} +{W2} =-ledger");
        assert_wrong(Kind::ReadWrite, &early, "is written while __READ__");
        let crowd = "+-gauge/a-1 +-gauge/a-2 +-gauge/a-3 +-gauge/a-4";
        assert_wrong(Kind::Semaphore, crowd, "hold leases at once");
        let leases = "+/leases/l-0000000001 +/leases/l-0000000002 +/locks/lock-0000000001 -/locks/lock-0000000001";
        assert_wrong(
            Kind::SemaphoreMutex,
            leases,
            "while 2 leases of at most 1 exist",
        );
    }

    #[test]
    fn lost_grants_and_leftovers_are_found() {
        assert_wrong(
            Kind::Mutex,
            "+/lock-0000000001 -/lock-0000000001",
            "has written nothing",
        );
        assert_wrong(Kind::Mutex, "+/lock-0000000001", "is left behind");
        assert_wrong(Kind::Semaphore, "+-gauge/a-1", "the mark a-1 is left");
    }
}
