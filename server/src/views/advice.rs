//! Advice as JSON.

use serde_json::{Value, json};

use crate::{
    advice::{Advice, Finding},
    views::{
        journal,
        schema::{Field, FieldKind, Part},
    },
};

pub(crate) const FINDING: Part = Part::new(
    "Finding",
    "A known mistake of clients",
    &[
        Field::new("rule", FieldKind::Text).help("The rule, such as `polling`"),
        Field::new("title", FieldKind::Text).help("What the mistake is"),
        Field::new("path", FieldKind::Text).help(
            "The path concerned, with * for ids and numbers in it; empty if it is about sessions",
        ),
        Field::new("text", FieldKind::Text).help("What happened: of several occurrences the worst"),
        Field::new("count", FieldKind::Count).help("How often it happened"),
        Field::new("entries", FieldKind::Counts)
            .help("The numbers of the entries of the journal that show it, at most 8"),
        Field::new("why", FieldKind::Text).help("Why it matters"),
        Field::new("do", FieldKind::Text).help("What to do instead"),
    ],
);

pub(crate) fn advice(advice: &Advice) -> Value {
    json!({
        "findings": findings(advice),
        "entry_count": advice.entry_count,
        "first": advice.first,
        "text": advice.to_string(),
    })
}

pub(crate) fn findings(advice: &Advice) -> Value {
    advice.findings.iter().map(finding).collect()
}

fn finding(finding: &Finding) -> Value {
    json!({
        "rule": finding.rule.name,
        "title": finding.rule.title,
        "path": finding.path,
        "text": finding.text,
        "count": finding.count,
        "entries": finding.entries,
        "why": finding.rule.why,
        "do": finding.rule.remedy,
    })
}

impl Advice {
    /// Finds the known mistakes in the JSON that `minikeeper ctl journal --json` prints, or in that of a
    /// [`Story`](crate::Story).
    ///
    /// # Errors
    /// [`JournalError::Json`](crate::JournalError::Json) if the text is not such JSON, otherwise as for [`Advice::of`].
    ///
    /// # Examples
    /// ```
    /// let journal = r#"{"entries": [{"number": 1, "kind": "request", "session": "0x1", "op": "create",
    ///     "path": "/lock-", "mode": "EPHEMERAL_SEQUENTIAL", "result": "OK"}]}"#;
    /// let advice = minikeeper::Advice::of_json(journal, &[])?;
    /// assert_eq!(advice.findings[0].rule.name, "unprotected-sequential");
    /// # Ok::<(), minikeeper::JournalError>(())
    /// ```
    pub fn of_json(
        text: &str,
        ignored: &[&str],
    ) -> Result<Self, minikeeper_core::journal::filter::JournalError> {
        let entries = journal::read(text)?;
        Self::of(&entries, ignored)
    }

    /// Returns the advice as JSON, as the verb `advise` does.
    #[must_use]
    pub fn to_json(&self) -> String {
        advice(self).to_string()
    }
}
