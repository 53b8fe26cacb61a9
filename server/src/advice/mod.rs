//! Advice: known mistakes of clients that a journal shows, with the evidence.
//!
//! [`rules`] has a file for each mistake, with its texts and what finds it. [`pass`] goes over the entries of a journal once,
//! makes a [`step`] of each, and shows it to every rule. [`facts`] is what several rules need, [`held_locks`] what one needs.
//! [`findings`] joins what rules report. A journal may have lost its beginning: each rule needs the entries that prove it.

mod facts;
mod findings;
mod held_locks;
mod pass;
mod rules;
mod step;
#[cfg(test)]
mod tests;

use std::fmt;

use minikeeper_core::{
    glob::Glob,
    journal::{entry::JournalEntry, filter::JournalError},
};

pub use self::rules::AdviceRule;

/// The maximum number of findings of one rule that `Display` prints. Further ones are counted.
const SHOWN_MAX: usize = 5;

/// The known mistakes that a journal shows: the result of [`Universe::advise`](crate::Universe::advise).
///
/// `Display` prints it for people: each rule with its findings, why it matters and what to do.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Advice {
    /// The findings, in the order of [`AdviceRule::ALL`], those with most occurrences first.
    pub findings: Vec<Finding>,
    /// The number of entries that were read.
    pub entry_count: u64,
    /// The number of the first of them. If it is above 1, older ones are gone, and so are mistakes that only these show.
    pub first: u64,
}

/// A known mistake, with its evidence.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Finding {
    /// The rule: name, why it matters, what to do.
    pub rule: &'static AdviceRule,
    /// The path concerned, with `*` for ids and numbers in it; empty if the finding is about sessions.
    pub path: String,
    /// What happened, in a sentence: of several occurrences the worst.
    pub text: String,
    /// How often it happened.
    pub count: u64,
    /// The numbers of the entries that show it: of the occurrence in `text` first, at most 8.
    pub entries: Vec<u64>,
}

impl Advice {
    /// Finds the known mistakes in a list of entries, oldest first: those of [`Universe::journal`](crate::Universe::journal)
    /// or of a [`Story`](crate::Story). `ignored` silences rules by name, and paths by pattern: `herd`, `/config/**`.
    ///
    /// # Errors
    /// [`JournalError::Filter`] if there is no such rule, [`JournalError::Path`] if a pattern is invalid.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use minikeeper::{Advice, JournalFilter};
    /// let server = minikeeper::Server::builder().start().await?;
    /// let entries = server.journal(&JournalFilter::new())?;
    /// assert!(Advice::of(&entries, &["herd", "/config/**"])?.findings.is_empty());
    /// assert!(Advice::of(&entries, &["heard"]).is_err());
    /// # Ok(()) }
    /// ```
    pub fn of(entries: &[JournalEntry], ignored: &[&str]) -> Result<Self, JournalError> {
        let mut pass = pass::Pass::new(Ignored::new(ignored)?);
        entries.iter().for_each(|entry| pass.entry(entry));
        Ok(pass.finish())
    }

    /// Returns the advice on these entries, read one by one.
    pub(crate) fn on(
        entries: &mut dyn Iterator<Item = JournalEntry>,
        ignored: &[&str],
    ) -> Result<Self, JournalError> {
        let mut pass = pass::Pass::new(Ignored::new(ignored)?);
        for entry in entries {
            pass.entry(&entry);
        }
        Ok(pass.finish())
    }
}

/// The maximum number of rules and paths to ignore: each path of the journal is matched with all of them.
const IGNORED_MAX: usize = 100;

/// What a caller silences.
#[derive(Debug, Default)]
struct Ignored {
    rules: Vec<&'static AdviceRule>,
    paths: Vec<Glob>,
}

impl Ignored {
    fn new(words: &[&str]) -> Result<Self, JournalError> {
        if words.len() > IGNORED_MAX {
            return Err(JournalError::TooManyIgnored {
                count: words.len(),
                count_max: IGNORED_MAX,
            });
        }
        let mut ignored = Self::default();
        for word in words {
            if word.starts_with(['/', '*']) {
                let glob = Glob::new(word).map_err(|why| JournalError::Path {
                    pattern: word.chars().take(100).collect(),
                    why,
                })?;
                ignored.paths.push(glob);
            } else {
                let wanted = "the name of a rule of advice, such as herd, or a pattern of paths";
                let rule =
                    AdviceRule::named(word).ok_or_else(|| JournalError::unknown(word, wanted))?;
                ignored.rules.push(rule);
            }
        }
        Ok(ignored)
    }

    fn has(&self, rule: &'static AdviceRule, path: &str) -> bool {
        self.rules.contains(&rule) || self.paths.iter().any(|glob| glob.matches(path.as_bytes()))
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)?;
        if self.count > 1 {
            write!(f, "; {} times", self.count)?;
        }
        for (index, number) in self.entries.iter().enumerate() {
            let before = match (index, self.entries.len()) {
                (0, 1) => " (entry #",
                (0, _) => " (entries #",
                _ => ", #",
            };
            write!(f, "{before}{number}")?;
        }
        f.write_str(if self.entries.is_empty() { "" } else { ")" })
    }
}

impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.entry_count;
        if self.findings.is_empty() {
            writeln!(f, "no known mistakes in {count} entries")?;
        }
        for rule in AdviceRule::ALL {
            let of_rule = || self.findings.iter().filter(|it| it.rule == rule);
            let more = match of_rule().count() {
                0 => continue,
                total => total.saturating_sub(SHOWN_MAX),
            };
            writeln!(f, "{}: {}", rule.name, rule.title)?;
            for finding in of_rule().take(SHOWN_MAX) {
                writeln!(f, "  {finding}")?;
            }
            if more > 0 {
                writeln!(f, "  and on {more} other paths")?;
            }
            writeln!(f, "  why: {}", rule.why)?;
            writeln!(f, "  do:  {}\n", rule.remedy)?;
        }
        if self.first > 1 {
            writeln!(
                f,
                "the journal begins at entry #{}; older ones were not read",
                self.first
            )?;
        }
        Ok(())
    }
}
