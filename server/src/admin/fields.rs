//! Values that words and commands have in common.

/// A value: the names that a word and a command give it, each empty if it leaves the value out; its text; and the number, if the
/// command returns that instead.
pub(crate) type ReportField = (&'static str, &'static str, String, Option<i64>);

pub(crate) fn number(
    word: &'static str,
    command: &'static str,
    value: impl TryInto<i64>,
) -> ReportField {
    let number = value.try_into().unwrap_or(i64::MAX);
    (word, command, number.to_string(), Some(number))
}

/// Returns what a word prints, such as `sent=5`.
pub(crate) fn pairs(fields: impl IntoIterator<Item = ReportField>) -> impl Iterator<Item = String> {
    let printed = fields.into_iter().filter(|(word, ..)| !word.is_empty());
    printed.map(|(word, _, text, _)| format!("{word}={text}"))
}
