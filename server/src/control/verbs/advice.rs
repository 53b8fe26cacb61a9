//! Advice on what clients did.

use serde_json::Value;

use crate::{
    control::{
        parameter::{Parameter, ParameterKind},
        verb::{Handler, Method, Verb},
        verbs::journal,
    },
    views::{
        self,
        schema::{Field, FieldKind},
    },
};

pub(super) const VERBS: &[Verb] = &[Verb {
    name: "advise",
    method: Method::Get,
    docs: "Find known mistakes of clients in the journal: what, why it matters, what to do\n\n\
           Such as a sequential ephemeral that a lost reply orphans, polling, or a write that loses an update. Each \
           finding has the numbers of the entries that show it. It is about what the journal still has; `first` is \
           the number of the oldest entry read.",
    parameters: &[Parameter::optional(
        "ignore",
        ParameterKind::Words,
        "Rules such as `herd`, and paths such as `/config/**`, to leave out, separated by commas",
    )],
    plain: None,
    answer: &[
        Field::new("findings", FieldKind::Parts(&views::advice::FINDING))
            .help("The mistakes, by rule"),
        Field::new("entry_count", FieldKind::Count).help("The number of entries that were read"),
        Field::new("first", FieldKind::Count).help("The number of the oldest entry"),
        Field::new("text", FieldKind::Text).help("The same for people"),
    ],
    handler: Handler::AtOnce(|call| {
        let ignored = call.arguments.given("ignore").and_then(Value::as_str);
        let ignored = words(ignored.unwrap_or_default());
        let advice = call.universe.advise(&ignored);
        Ok(views::advice::advice(&advice.map_err(journal::refused)?))
    }),
}];

/// Returns the words of a list with commas.
pub(crate) fn words(text: &str) -> Vec<&str> {
    let words = text.split(',').map(str::trim);
    words.filter(|word| !word.is_empty()).collect()
}
