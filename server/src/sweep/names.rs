//! The names in a run that differ from run to run, learned by comparison with other runs.
//!
//! Two runs of a test without faults differ in what is random: at the same place of the same client a
//! part of a name is another. That part is random wherever it occurs, whatever its shape. The number
//! of a sequential znode always counts as random. Two names of which both runs have both are not random:
//! threads that race have exchanged them.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
    sync::Arc,
};

use crate::sweep::acts::Act;

/// The digits that a server appends to the name of a sequential znode.
const SEQUENCE_DIGITS: usize = 10;

/// The shortest random part that is looked for in other names. Unit: bytes.
const VALUE_BYTES_MIN: usize = 2;

/// The most words of a name in which random parts of other names are looked for.
const TOKENS_MAX: usize = 40;

/// So many numbers in a row, of which one differs, are one time or one address.
const CLOCK_FIELDS_MIN: usize = 3;

/// What is known of the names in one run.
#[derive(Clone, Debug, Default)]
pub(crate) struct RunNames {
    /// By name, without the number of a sequential znode: the part that is random.
    random: BTreeMap<String, Range<usize>>,
    /// The random parts.
    values: BTreeSet<String>,
    /// The names of sequential znodes that were created.
    created: BTreeSet<String>,
    /// The names with which sequential znodes were asked for.
    asked: BTreeSet<String>,
    /// All names, with and without the numbers of sequential znodes.
    pub(crate) all: Arc<BTreeSet<String>>,
}

impl RunNames {
    pub(crate) fn new(acts: &[Act]) -> Self {
        let mut names = Self::default();
        for act in acts {
            names
                .created
                .extend(act.created.as_deref().map(|path| name_of(path).to_owned()));
            let asked = act.sequential.iter();
            names
                .asked
                .extend(asked.map(|path| name_of(path).to_owned()));
        }
        let paths = acts.iter().flat_map(|act| &act.paths);
        let all = paths.flat_map(|path| path.split('/'));
        let all = all.flat_map(|name| [name, names.split(name).0]);
        names.all = Arc::new(all.map(str::to_owned).collect());
        names
    }

    /// Splits a name into what the client chose and the number that the server appended.
    fn split<'a>(&self, name: &'a str) -> (&'a str, bool) {
        let digits = name.len().checked_sub(SEQUENCE_DIGITS);
        let Some((chosen, number)) = digits.and_then(|at| name.split_at_checked(at)) else {
            return (name, false);
        };
        let is_sequential = number.bytes().all(|byte| byte.is_ascii_digit())
            && (self.created.contains(name) || self.asked.contains(chosen));
        if is_sequential {
            (chosen, true)
        } else {
            (name, false)
        }
    }

    /// Learns from a path of this run and what stands in its place in another run. Returns whether it
    /// is new.
    pub(crate) fn learn(&mut self, own: &str, other: (&str, &Self)) -> bool {
        let (other, others) = other;
        if own == other || own.split('/').count() != other.split('/').count() {
            return false;
        }
        let mut is_new = false;
        for (name, other) in own.split('/').zip(other.split('/')) {
            let (name, other) = (self.split(name).0, others.split(other).0);
            if self.all.contains(other) && others.all.contains(name) {
                continue;
            }
            let Some(mut part) = difference(name, other) else {
                continue;
            };
            if let Some(known) = self.random.get(name) {
                part = part.start.min(known.start)..part.end.max(known.end);
                if part == *known {
                    continue;
                }
            }
            is_new = true;
            if part.len() >= VALUE_BYTES_MIN {
                self.values.insert(name[part.clone()].to_owned());
            }
            self.random.insert(name.to_owned(), part);
        }
        is_new
    }

    /// Returns whether a name that is random is so short that two runs may have the same by chance.
    pub(crate) fn has_short_names(&self) -> bool {
        self.random.values().any(|part| part.len() <= 4)
    }

    /// Returns a path of this run with `*` in place of what is random.
    pub(crate) fn pattern(&self, path: &str) -> String {
        let names = path.split('/').map(|name| {
            let (chosen, is_sequential) = self.split(name);
            let mut pattern = self.pattern_of_name(chosen);
            // Two stars would match across names.
            if is_sequential && !pattern.ends_with('*') {
                pattern.push('*');
            }
            pattern
        });
        names.collect::<Vec<_>>().join("/")
    }

    fn pattern_of_name(&self, name: &str) -> String {
        if let Some(part) = self.random.get(name) {
            return format!("{}*{}", &name[..part.start], &name[part.end..]);
        }
        let tokens = tokens(name);
        if self.values.is_empty() || tokens.len() > TOKENS_MAX {
            return name.to_owned();
        }
        let mut pattern = String::new();
        let mut first = 0;
        'tokens: while first < tokens.len() {
            // The longest first.
            for end in (first + 1..=tokens.len()).rev() {
                let text: String = tokens[first..end].concat();
                if self.values.contains(&text) {
                    if !pattern.ends_with('*') {
                        pattern.push('*');
                    }
                    first = end;
                    continue 'tokens;
                }
            }
            pattern += tokens[first];
            first += 1;
        }
        pattern
    }
}

fn name_of(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

/// Splits a name into words and the separators between them.
fn tokens(name: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = name;
    while let Some(first) = rest.chars().next() {
        let is_word = first.is_alphanumeric();
        let end = if is_word {
            rest.find(|letter: char| !letter.is_alphanumeric())
                .unwrap_or(rest.len())
        } else {
            first.len_utf8()
        };
        let (token, behind) = rest.split_at(end);
        tokens.push(token);
        rest = behind;
    }
    tokens
}

/// Returns the part of a name that is another in the other name: from the first word that differs to
/// the last one. Letters that are equal by chance within a word do not matter.
fn difference(name: &str, other: &str) -> Option<Range<usize>> {
    if name == other {
        return None;
    }
    let (own, others) = (tokens(name), tokens(other));
    let shorter = own.len().min(others.len());
    let same = |pairs: &mut dyn Iterator<Item = (&&str, &&str)>, most: usize| {
        pairs
            .take(most)
            .take_while(|(one, other)| one == other)
            .count()
    };
    let before = same(&mut own.iter().zip(&others), shorter);
    let after = same(
        &mut own.iter().rev().zip(others.iter().rev()),
        shorter - before,
    );
    let (first, end) = clock(&own, before, own.len() - after);
    let length = |tokens: &[&str]| tokens.iter().map(|token| token.len()).sum::<usize>();
    let start = length(&own[..first]);
    Some(start..start + length(&own[first..end]))
}

/// Extends a part of a name to the time or address that it belongs to: what differs of a time between
/// two runs, such as its seconds, is less than what differs an hour later.
fn clock(tokens: &[&str], first: usize, end: usize) -> (usize, usize) {
    let is_number = |token: &&str| {
        token.starts_with(|letter: char| letter.is_ascii_digit())
            && token
                .chars()
                .all(|letter| letter.is_ascii_digit() || "TZtz".contains(letter))
    };
    let is_separator = |token: &&str| matches!(*token, "-" | ":" | "." | "_" | "+" | "T" | " ");
    let is_part = |token: &&str| is_number(token) || is_separator(token);
    if !tokens[first..end].iter().all(is_part) {
        return (first, end);
    }
    let mut from = first;
    while from > 0 && is_part(&tokens[from - 1]) {
        from -= 1;
    }
    let mut to = end;
    while to < tokens.len() && is_part(&tokens[to]) {
        to += 1;
    }
    // Its own separators stand between its numbers.
    while from < first && is_separator(&tokens[from]) {
        from += 1;
    }
    while to > end && is_separator(&tokens[to - 1]) {
        to -= 1;
    }
    let fields = tokens[from..to].iter().filter(|token| is_number(token));
    if fields.count() >= CLOCK_FIELDS_MIN {
        (from, to)
    } else {
        (first, end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the pattern that the first of these paths has after it was compared with the others.
    fn learned(paths: &[&str]) -> String {
        let mut names = RunNames::default();
        let others = RunNames::default();
        for other in &paths[1..] {
            names.learn(paths[0], (other, &others));
        }
        names.pattern(paths[0])
    }

    #[test]
    fn what_differs_between_runs_is_random_whatever_its_shape() {
        for (paths, expected) in [
            (&["/locks/printer", "/locks/printer"][..], "/locks/printer"),
            // Letters that are equal by chance are no part of the prefix.
            (&["/n/node-a1b2", "/n/node-a2b2"], "/n/node-*"),
            (&["/n/nodea1", "/n/nodea2"], "/n/*"),
            (
                &[
                    "/l/_c_0e1f2a3b-4c5d-6e7f-8091-a2b3c4d5e6f7-lock-",
                    "/l/_c_1e1f2a3b-5c5d-6e7f-9091-b2b3c4d5e6f7-lock-",
                ],
                "/l/_c_*-lock-",
            ),
            // A separator in a random part.
            (&["/j/job-Ab_9-x", "/j/job-Zt0q"], "/j/job-*"),
            (&["/j/a-b", "/j/a-x-b"], "/j/a-*b"),
            // Two random parts.
            (&["/j/a-1x-b-2x", "/j/a-3x-b-4x"], "/j/a-*"),
            // A random parent.
            (&["/x7/leaf", "/q9/leaf"], "/*/leaf"),
            // Equal by chance in the second run.
            (&["/a/brave-otter", "/a/calm-otter", "/a/shy-fox"], "/a/*"),
            (
                &["/w/worker-62", "/w/worker-62", "/w/worker-7"],
                "/w/worker-*",
            ),
            // A time, of which only the seconds differ.
            (
                &[
                    "/t/at-2026-11-27T20:42:53Z-x",
                    "/t/at-2026-11-27T20:42:54Z-x",
                ],
                "/t/at-*-x",
            ),
            (&["/h/10.0.0.1:43211", "/h/10.0.0.1:43213"], "/h/*"),
            (&["/h/shard-1-ab", "/h/shard-1-cd"], "/h/shard-1-*"),
            // Not the same place.
            (&["/a/b", "/a"], "/a/b"),
        ] {
            assert_eq!(learned(paths), expected, "{paths:?}");
        }
    }

    /// Each was taken for a random name, and a fault at one znode counted as tried at the other.
    #[test]
    fn names_that_two_runs_exchange_are_not_random() {
        let acts = |paths: [&str; 2]| {
            paths.map(|path| Act {
                paths: vec![path.to_owned()],
                ..Act::default()
            })
        };
        let both = |paths| RunNames::new(&acts(paths));
        let mut names = both(["/jobs/a", "/jobs/b"]);
        let exchanged = both(["/jobs/b", "/jobs/a"]);
        assert!(!names.learn("/jobs/a", ("/jobs/b", &exchanged)));
        assert_eq!(names.pattern("/jobs/a"), "/jobs/a");
        // One of them occurs in both runs by chance.
        let other = both(["/jobs/b", "/jobs/c"]);
        assert!(names.learn("/jobs/a", ("/jobs/b", &other)));
        assert_eq!(names.pattern("/jobs/a"), "/jobs/*");
    }

    #[test]
    fn random_part_is_random_in_other_names() {
        let mut names = RunNames::default();
        names.learn("/jobs/job-k3x-9", ("/jobs/job-p0q-8", &RunNames::default()));
        assert_eq!(names.pattern("/results/k3x-9"), "/results/*");
        assert_eq!(
            names.pattern("/results/of.k3x-9.done"),
            "/results/of.*.done"
        );
        assert_eq!(names.pattern("/results/ak3x-9"), "/results/ak3x-9");
    }

    #[test]
    fn number_of_a_sequential_znode_is_random() {
        let act = Act {
            created: Some("/q/ab-lock-0000000007".to_owned()),
            sequential: vec!["/q/ab-lock-".to_owned()],
            ..Act::default()
        };
        let mut names = RunNames::new(&[act]);
        assert_eq!(names.pattern("/q/ab-lock-0000000007"), "/q/ab-lock-*");
        assert_eq!(names.pattern("/q/ab-lock-0000000009"), "/q/ab-lock-*");
        assert_eq!(names.pattern("/q/other-0000000009"), "/q/other-0000000009");
        names.learn("/q/ab-lock-", ("/q/cd-lock-", &RunNames::default()));
        assert_eq!(names.pattern("/q/ab-lock-0000000009"), "/q/*-lock-*");
    }
}
