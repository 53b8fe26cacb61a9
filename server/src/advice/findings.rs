//! The mistakes found so far, by rule and similar paths, and those that later entries may explain.

use std::mem;

use minikeeper_core::order;
use minikeeper_protocol::SessionId;

use crate::advice::{
    Finding, Ignored,
    facts::{FactTable, Facts},
    rules::AdviceRule,
    step::Scene,
};

/// The maximum number of findings, of suspicions of a rule, and of entries that a finding names.
const FINDINGS_MAX: usize = 1_000;
const SUSPICIONS_MAX: usize = 1_000;
const EVIDENCE_MAX: usize = 8;

/// The weights of occurrences: a habit, which needs several; a finding; harm.
pub(super) const HABIT: u64 = 0;
pub(super) const PROVEN: u64 = 1;
pub(super) const HARM: u64 = 2;

/// The occurrences of mistakes.
#[derive(Debug, Default)]
pub(super) struct Findings {
    ignored: Ignored,
    /// The place of the rule that observes.
    pub(super) rule: usize,
    pub(super) groups: FactTable<Occurrences>,
}

/// The occurrences of one mistake on similar paths.
#[derive(Debug, Default)]
pub(super) struct Occurrences {
    rule: usize,
    path: String,
    weight: u64,
    text: String,
    count: u64,
    entries: Vec<u64>,
}

impl Findings {
    pub(super) fn new(ignored: Ignored) -> Self {
        Self {
            ignored,
            ..Self::default()
        }
    }

    /// Adds occurrences of a mistake to those on similar paths.
    #[inline(never)]
    pub(super) fn add(
        &mut self,
        path: &str,
        weight: u64,
        count: u64,
        entries: &[u64],
        text: String,
    ) {
        let rule = self.rule;
        if self.ignored.has(&AdviceRule::ALL[rule], path) || self.groups.items.len() >= FINDINGS_MAX
        {
            return;
        }
        let path = without_numbers(path);
        let group = self.groups.of(&format!("{rule} {path}"));
        if group.text.is_empty() || weight > group.weight {
            group.text = text;
            group.weight = weight;
            // Those of the text come first; evidence that begins with the same entry is of the same occurrence.
            let mut others = mem::replace(&mut group.entries, entries.to_vec());
            if others.first() != entries.first() {
                group.entries.append(&mut others);
            }
        } else if group.entries.len() < EVIDENCE_MAX {
            group.entries.extend(entries);
        }
        group.entries.retain(|number| *number > 0);
        group.entries.truncate(EVIDENCE_MAX);
        (group.rule, group.path) = (rule, path);
        group.count += count;
    }

    /// Returns the findings in the order of rules, those with most occurrences first.
    pub(super) fn finish(self) -> Vec<Finding> {
        let mut groups = self.groups.items;
        groups.retain(|group| {
            group.weight >= PROVEN || group.count >= AdviceRule::ALL[group.rule].occurrences_min
        });
        order::sort_by_key(&mut groups, |group| (group.rule, u64::MAX - group.count));
        let finding = |group: Occurrences| Finding {
            rule: &AdviceRule::ALL[group.rule],
            path: group.path,
            text: group.text,
            count: group.count,
            entries: group.entries,
        };
        groups.into_iter().map(finding).collect()
    }
}

/// What is a mistake of one rule unless a later entry explains it.
#[derive(Debug, Default)]
pub(super) struct Suspicions(Vec<Suspicion>);

#[derive(Debug)]
struct Suspicion {
    session: SessionId,
    path: String,
    /// The requests of the session so far.
    requests: u64,
    entries: [u64; 2],
    text: String,
}

impl Suspicions {
    /// Adds what this entry and one before show.
    #[inline(never)]
    pub(super) fn add(&mut self, scene: &Scene<'_>, path: &str, before: u64, text: String) {
        if self.0.len() < SUSPICIONS_MAX {
            self.0.push(Suspicion {
                session: scene.at.session,
                path: path.to_owned(),
                requests: scene.client.requests,
                entries: [before, scene.at.number],
                text,
            });
        }
    }

    /// Drops what the session of this entry explains, by path.
    #[inline(never)]
    pub(super) fn explain(&mut self, scene: &Scene<'_>, is_explained: impl Fn(&str) -> bool) {
        self.0
            .retain(|it| it.session != scene.at.session || !is_explained(&it.path));
    }

    /// Drops those whose session has sent nothing since.
    pub(super) fn drop_silent(&mut self, facts: &Facts) {
        self.0
            .retain(|it| facts.session(it.session).requests > it.requests);
    }

    /// Reports all that are left.
    pub(super) fn report(&mut self, findings: &mut Findings) {
        for it in mem::take(&mut self.0) {
            findings.add(&it.path, PROVEN, 1, &it.entries, it.text);
        }
    }
}

/// Returns a path with `*` in place of numbers and UUIDs: of paths that differ only in these, the mistake is the same.
fn without_numbers(path: &str) -> String {
    let mut out = String::new();
    let mut run = String::new();
    // A final slash ends the last run.
    for letter in path.chars().chain(['\0']) {
        if letter.is_ascii_hexdigit() || letter == '-' && run.len() >= 8 {
            run.push(letter);
            continue;
        }
        let is_id = run.len() >= 32 || run.bytes().all(|it| it.is_ascii_digit());
        match run.len() {
            0 => {}
            _ if is_id && !out.ends_with('*') => out.push('*'),
            _ if is_id => {}
            _ => out.push_str(&run),
        }
        run.clear();
        if letter != '\0' {
            out.push(letter);
        }
    }
    out
}
