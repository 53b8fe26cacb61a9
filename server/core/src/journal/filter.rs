//! Selects entries of the journal, and verifies what a test expects of them.

use std::{error::Error, fmt, fmt::Write as _, str::FromStr};

use minikeeper_protocol::{ErrorCode, OpCode, SessionId};

use crate::{glob::Glob, journal::entry::JournalEntry, order, session_selector::SessionSelector};

/// The maximum number of near misses that a failed verification shows.
const NEAR_MISSES: usize = 5;

/// Selects entries of the journal. All conditions must hold; a condition that is not set holds.
///
/// As text: an operation or a kind of entry, a pattern for paths, `-> RESULT`, `by SESSION`,
/// `on CONNECTION`, `since NUMBER`, each of them optional.
///
/// # Examples
/// ```
/// use minikeeper::JournalFilter;
/// let failed = JournalFilter::new().path("/locks/**")?.op("create")?.result("NODEEXISTS")?;
/// assert_eq!(failed.to_string(), "create /locks/** -> NODEEXISTS");
/// assert_eq!("create /locks/** -> NODEEXISTS".parse(), Ok(failed));
/// # Ok::<(), minikeeper::JournalError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct JournalFilter {
    kind: Option<String>,
    path: Option<(String, Glob)>,
    session: Option<SessionId>,
    connection: Option<u64>,
    op: Option<String>,
    result: Option<String>,
    since: u64,
}

impl JournalFilter {
    /// Selects every entry.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Selects entries of this kind, such as `request`; see [`JournalEntry::kind`]. `session` and
    /// `connection` stand for all kinds that begin with them.
    #[must_use]
    pub fn kind(mut self, kind: impl Into<String>) -> Self {
        self.kind = Some(kind.into());
        self
    }

    /// Selects entries with a path that matches: `*` stands for any part of a name, `**` for any
    /// part of a path.
    ///
    /// # Errors
    /// [`JournalError::Path`] if the pattern is invalid.
    pub fn path(mut self, pattern: &str) -> Result<Self, JournalError> {
        let glob = Glob::new(pattern).map_err(|why| JournalError::Path {
            pattern: pattern.chars().take(100).collect(),
            why,
        })?;
        self.path = Some((pattern.to_owned(), glob));
        Ok(self)
    }

    /// Selects entries of this session; an event is of the session that gets it.
    #[must_use]
    pub const fn session(mut self, session: SessionId) -> Self {
        self.session = Some(session);
        self
    }

    /// Selects entries of the connection with this number.
    #[must_use]
    pub const fn connection(mut self, connection: u64) -> Self {
        self.connection = Some(connection);
        self
    }

    /// Selects requests of this operation, by its name in the protocol, such as `getData`.
    /// `create` also stands for `create2`, `createContainer` and `createTTL`, and `getChildren` for
    /// `getChildren2`, because clients choose between them.
    ///
    /// # Errors
    /// [`JournalError::Filter`] if there is no such operation.
    pub fn op(mut self, op: &str) -> Result<Self, JournalError> {
        if OpCode::from_name(op).is_none() {
            let wanted = "an operation of the protocol, such as create, getData or closeSession";
            return Err(JournalError::unknown(op, wanted));
        }
        self.op = Some(op.to_owned());
        Ok(self)
    }

    /// Selects requests with this result: `OK`, the name of an error such as `NONODE`, `error` for
    /// any error, or `NONE` for requests without a reply.
    ///
    /// # Errors
    /// [`JournalError::Filter`] if there is no such result.
    pub fn result(mut self, result: &str) -> Result<Self, JournalError> {
        let is_known = matches!(result, "OK" | "NONE" | "error" | "OTHER");
        if !is_known && ErrorCode::from_name(result).is_none() {
            let wanted = "OK, the name of an error such as NONODE, error or NONE";
            return Err(JournalError::unknown(result, wanted));
        }
        self.result = Some(result.to_owned());
        Ok(self)
    }

    /// Takes the conditions that are not set from another filter.
    #[must_use]
    pub fn or(self, other: &Self) -> Self {
        Self {
            kind: self.kind.or_else(|| other.kind.clone()),
            path: self.path.or_else(|| other.path.clone()),
            session: self.session.or(other.session),
            connection: self.connection.or(other.connection),
            op: self.op.or_else(|| other.op.clone()),
            result: self.result.or_else(|| other.result.clone()),
            since: self.since.max(other.since),
        }
    }

    /// Selects entries from this number on.
    #[must_use]
    pub const fn since(mut self, number: u64) -> Self {
        self.since = number;
        self
    }

    /// Returns the number of the first entry that may match.
    pub const fn first(&self) -> u64 {
        self.since
    }

    /// Returns whether an entry meets all conditions.
    #[must_use]
    pub fn matches(&self, entry: &JournalEntry) -> bool {
        self.misses(entry) == 0
    }

    /// Returns how many conditions an entry does not meet.
    fn misses(&self, entry: &JournalEntry) -> usize {
        let kind = self.kind.as_ref().is_none_or(|wanted| {
            let kind = entry.kind();
            let family = kind.split('_').next();
            kind == wanted || family == Some(wanted.as_str())
        });
        let path = self
            .path
            .as_ref()
            .is_none_or(|(_, glob)| entry.paths().any(|path| glob.matches(path.as_bytes())));
        let op = self.op.as_ref().is_none_or(|wanted| {
            entry.op().is_some_and(|op| {
                op == wanted
                    || wanted == "create"
                        && matches!(op, "create2" | "createContainer" | "createTTL")
                    || wanted == "getChildren" && op == "getChildren2"
            }) && (self.kind.is_some() || entry.kind() == "request")
        });
        let result = self.result.as_ref().is_none_or(|wanted| {
            entry.result().is_some_and(|result| {
                result == wanted || wanted == "error" && !matches!(result, "OK" | "NONE")
            })
        });
        let conditions = [
            kind,
            path,
            op,
            result,
            self.session
                .is_none_or(|wanted| entry.session == Some(wanted)),
            self.connection
                .is_none_or(|wanted| entry.connection == Some(wanted)),
            entry.number >= self.since,
        ];
        conditions.into_iter().filter(|holds| !holds).count()
    }
}

impl FromStr for JournalFilter {
    type Err = JournalError;

    fn from_str(text: &str) -> Result<Self, JournalError> {
        let mut filter = Self::new();
        let mut words = text.split_whitespace();
        while let Some(word) = words.next() {
            let mut value = || {
                let missing = || JournalError::unknown(word, "followed by a value");
                words.next().ok_or_else(missing)
            };
            let whole = |digits: &str| {
                let number = digits.parse();
                number.map_err(|_| JournalError::unknown(digits, "a whole number"))
            };
            filter = match word {
                "->" => filter.result(value()?)?,
                "on" => filter.connection(whole(value()?.trim_start_matches('#'))?),
                "since" => filter.since(whole(value()?)?),
                "by" => {
                    let id = value()?;
                    match SessionSelector::from_str(id) {
                        Ok(SessionSelector::Session(session)) => filter.session(session),
                        _ => return Err(JournalError::unknown(id, "a session id")),
                    }
                }
                path if path.starts_with(['/', '*']) => filter.path(path)?,
                kind if JournalEntry::KINDS.contains(&kind) => filter.kind(kind),
                op => filter.op(op)?,
            };
        }
        Ok(filter)
    }
}

/// The filter in a line.
impl fmt::Display for JournalFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut line = String::new();
        let mut put = |before: &str, text: &dyn fmt::Display| {
            let space = if line.is_empty() { "" } else { " " };
            let _ = write!(line, "{space}{before}{text}");
        };
        if let Some(op) = &self.op {
            put("", op);
        }
        if let Some(kind) = &self.kind {
            put("", kind);
        }
        if let Some((pattern, _)) = &self.path {
            put("", pattern);
        }
        if let Some(result) = &self.result {
            put("-> ", result);
        }
        if let Some(session) = &self.session {
            put("by ", session);
        }
        if let Some(connection) = &self.connection {
            put("on ", connection);
        }
        if self.since > 0 {
            put("since ", &self.since);
        }
        f.write_str(if line.is_empty() { "any entry" } else { &line })
    }
}

/// How many entries a test expects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Expected {
    /// Exactly this many; 0 for none.
    Exactly(u64),
    /// This many or more.
    AtLeast(u64),
    /// This many or fewer.
    AtMost(u64),
}

impl Expected {
    const fn holds(self, count: u64) -> bool {
        match self {
            Self::Exactly(wanted) => count == wanted,
            Self::AtLeast(least) => count >= least,
            Self::AtMost(most) => count <= most,
        }
    }
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exactly(0) => f.write_str("none"),
            Self::Exactly(count) => write!(f, "exactly {count}"),
            Self::AtLeast(count) => write!(f, "at least {count}"),
            Self::AtMost(count) => write!(f, "at most {count}"),
        }
    }
}

/// Why the journal cannot be read, or does not contain what a test expects.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum JournalError {
    /// The server keeps no journal.
    Off,
    /// The pattern for paths is invalid.
    Path {
        /// The start of the pattern.
        pattern: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A filter names something that does not exist.
    Filter {
        /// What it names.
        word: String,
        /// What is expected.
        wanted: &'static str,
    },
    /// A list of filters is empty: every journal has nothing in order.
    NoFilter,
    /// Too many rules and paths are to be ignored.
    TooManyIgnored {
        /// How many.
        count: usize,
        /// The limit.
        count_max: usize,
    },
    /// A text is not the JSON of a journal.
    Json {
        /// What is wrong with it.
        what: String,
    },
    /// Entries that might match are no longer in the journal.
    Incomplete {
        /// The number of the oldest entry that is left.
        oldest: u64,
    },
    /// The number of matching entries is not the expected one. The text lists what comes close.
    Count {
        /// What was looked for.
        filter: String,
        /// How many were expected.
        expected: Expected,
        /// How many there are.
        found: u64,
        /// Entries, as text: those that match, or else those that nearly do.
        entries: Vec<String>,
        /// Whether those entries match.
        do_match: bool,
    },
    /// Entries are not in the expected order.
    Order {
        /// What was not found in its place.
        filter: String,
        /// What had to come before it, with the entry found; `None` if it is the first.
        after: Option<String>,
        /// An entry that matches but came earlier, or entries that nearly match.
        entries: Vec<String>,
    },
}

impl JournalError {
    /// Creates the error for a word that is no `wanted`.
    pub fn unknown(word: &str, wanted: &'static str) -> Self {
        let word = word.chars().take(100).collect();
        Self::Filter { word, wanted }
    }
}

impl fmt::Display for JournalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str(
                "the server keeps no journal; set journal_bytes (--journal-bytes) above 0",
            ),
            Self::Path { pattern, why } => write!(f, "path pattern {pattern:?}: {why}"),
            Self::Filter { word, wanted } => write!(f, "filter: {word:?} is not {wanted}"),
            Self::NoFilter => f.write_str(
                "the list of filters is empty, so every journal would pass; give at least one",
            ),
            Self::TooManyIgnored { count, count_max } => write!(
                f,
                "{count} rules and paths to ignore exceed the limit of {count_max}; use patterns such as /config/**"
            ),
            Self::Json { what } => write!(
                f,
                "not the JSON of a journal: {what}; write it with minikeeper ctl journal --json, or take that of a story"
            ),
            Self::Incomplete { oldest } => write!(
                f,
                "the journal begins at entry {oldest}, older ones have been dropped; set \
                 journal_bytes (--journal-bytes) higher, call clear_journal before the part under \
                 test, or pass since"
            ),
            Self::Count {
                filter,
                expected,
                found,
                entries,
                do_match,
            } => {
                write!(f, "{filter}: {found} found, {expected} expected")?;
                let heading = if *do_match { "found" } else { "nearest" };
                list(f, heading, entries)
            }
            Self::Order {
                filter,
                after,
                entries,
            } => {
                write!(f, "{filter}: not found")?;
                if let Some(after) = after {
                    write!(f, " after {after}")?;
                }
                list(f, "nearest", entries)
            }
        }
    }
}

fn list(f: &mut fmt::Formatter<'_>, heading: &str, entries: &[String]) -> fmt::Result {
    if entries.is_empty() {
        return Ok(());
    }
    write!(f, "; {heading}:")?;
    entries
        .iter()
        .try_for_each(|entry| write!(f, "\n  {entry}"))
}

impl Error for JournalError {}

/// Returns the first entries that miss the fewest conditions. Requests come before others.
fn nearest(filter: &JournalFilter, entries: &[JournalEntry]) -> Vec<String> {
    let mut ranked: Vec<_> = entries
        .iter()
        .filter(|entry| entry.number >= filter.since)
        .map(|entry| (filter.misses(entry), entry.kind() != "request", entry))
        .collect();
    order::sort_by_key(&mut ranked, |(misses, is_other, entry)| {
        (*misses, *is_other, entry.number)
    });
    let best = ranked
        .first()
        .map(|(misses, is_other, _)| (*misses, *is_other));
    ranked.retain(|(misses, is_other, _)| Some((*misses, *is_other)) == best);
    ranked.truncate(NEAR_MISSES);
    ranked.into_iter().map(|(.., entry)| shown(entry)).collect()
}

fn shown(entry: &JournalEntry) -> String {
    format!("{} {}", entry.number, entry.to_string().trim_start())
}

/// Checks how many entries match.
///
/// # Errors
/// When another number matches.
pub fn verify_count(
    filter: &JournalFilter,
    expected: Expected,
    entries: &[JournalEntry],
) -> Result<u64, JournalError> {
    let matching: Vec<_> = entries
        .iter()
        .filter(|entry| filter.matches(entry))
        .collect();
    let found = matching.len() as u64;
    if expected.holds(found) {
        return Ok(found);
    }
    let do_match = found > 0;
    let entries = if do_match {
        matching.into_iter().take(NEAR_MISSES).map(shown).collect()
    } else {
        nearest(filter, entries)
    };
    Err(JournalError::Count {
        filter: filter.to_string(),
        expected,
        found,
        entries,
        do_match,
    })
}

/// Checks that entries match these filters in this order; others may stand between them.
///
/// # Errors
/// The first filter that no entry behind the others matches.
pub fn verify_order(
    filters: &[JournalFilter],
    entries: &[JournalEntry],
) -> Result<(), JournalError> {
    let mut at = 0;
    let mut after = None;
    for filter in filters {
        let found = entries[at..].iter().position(|entry| filter.matches(entry));
        let Some(offset) = found else {
            let earlier = entries[..at]
                .iter()
                .rev()
                .find(|entry| filter.matches(entry));
            let entries = match earlier {
                Some(entry) => vec![format!("{} (too early)", shown(entry))],
                None => nearest(filter, &entries[at..]),
            };
            return Err(JournalError::Order {
                filter: filter.to_string(),
                after,
                entries,
            });
        };
        after = Some(shown(&entries[at + offset]));
        at += offset + 1;
    }
    Ok(())
}
