//! The content of a ledger.

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Entry {
    /// The token of the newest grant.
    pub(crate) token: i64,
    /// The number of grants entered.
    pub(crate) count: u64,
    /// The program of the newest grant.
    pub(crate) program: String,
    /// How often a grant followed one to the other program.
    pub(crate) switches: u64,
}

impl Entry {
    pub(crate) const EMPTY: &[u8] = b"0 0 - 0";

    pub(crate) fn parse(ledger: &[u8]) -> Self {
        let text = String::from_utf8_lossy(ledger);
        let words: Vec<_> = text.split(' ').collect();
        let number = |at: usize| words.get(at).and_then(|word| word.parse().ok());
        Self {
            token: number(0).unwrap_or(0),
            count: number(1).unwrap_or(0).unsigned_abs(),
            program: words.get(2).copied().unwrap_or_default().to_owned(),
            switches: number(3).unwrap_or(0).unsigned_abs(),
        }
    }

    /// Returns the entry of the next grant.
    pub(crate) fn next(&self, token: i64) -> Self {
        Self {
            token,
            count: self.count + 1,
            program: "rust".into(),
            switches: self.switches + u64::from(self.program != "rust"),
        }
    }

    pub(crate) fn text(&self) -> String {
        let Self {
            token,
            count,
            program,
            switches,
        } = self;
        format!("{token} {count} {program} {switches}")
    }
}
