//! The journal: what clients did, and what happened to them.

use minikeeper_core::{
    journal::{
        entry::JournalEntry,
        filter::{Expected, JournalError, JournalFilter},
    },
    session_selector::session_id,
};
use serde_json::{Value, json};

use crate::{
    control::{
        error::ControlError,
        parameter::{Arguments, Parameter, ParameterKind},
        verb::{Handler, Method, Verb},
    },
    views::{
        journal,
        schema::{Field, FieldKind},
    },
};

const KIND: Parameter = Parameter::optional(
    "kind",
    ParameterKind::OneOf(JournalEntry::KINDS),
    "Only entries of this kind; `session` and `connection` are all kinds that begin so",
);
const PATH: Parameter = Parameter::optional(
    "path",
    ParameterKind::Text,
    "Only entries with a path that matches: `*` is any part of a name, `**` any part of a path",
);
const SESSION: Parameter = Parameter::optional(
    "session",
    ParameterKind::Text,
    "Only entries of this session, hexadecimal or decimal",
);
const OP: Parameter = Parameter::optional(
    "op",
    ParameterKind::Text,
    "Only requests of this operation, such as `getData`; `create` is every kind of create",
);
const RESULT: Parameter = Parameter::optional(
    "result",
    ParameterKind::Text,
    "Only requests with this result: `OK`, an error such as `NONODE`, `error` for any error, \
     `NONE` for no reply",
);
const SINCE: Parameter = Parameter::optional(
    "since",
    ParameterKind::Count(u64::MAX),
    "Only entries from this number on",
);

pub(super) const VERBS: &[Verb] = &[
    Verb {
        name: "journal",
        method: Method::Get,
        docs: "List what happened: requests and their results, events, deletions, faults, sessions, the clock\n\n\
               Returns the newest matching entries, oldest first, and in `next` the number that the \
               next entry gets: pass it as `since` to read what follows. `text` is the entry in a \
               line. Entries never contain data of znodes. The journal keeps what happened last, \
               within the setting `journal_bytes`; `oldest` is the number of the oldest entry that \
               it still has.",
        parameters: &[
            PATH,
            OP,
            RESULT,
            SESSION,
            KIND,
            SINCE,
            Parameter::required(
                "limit",
                ParameterKind::Count(100_000),
                "The maximum number of entries",
            )
            .with_default("1000"),
        ],
        plain: None,
        answer: &[
            Field::new("entries", FieldKind::Parts(&journal::ENTRY)),
            Field::new("next", FieldKind::Count).help("The number of the next entry"),
            Field::new("oldest", FieldKind::Count).help("The number of the oldest entry"),
        ],
        handler: Handler::AtOnce(|call| {
            let filter = filter(&call.arguments)?;
            let limit = usize::try_from(call.arguments.count("limit")?).unwrap_or(usize::MAX);
            let copied = call
                .universe
                .copy_journal(filter.first())
                .map_err(refused)?;
            let mut entries = std::collections::VecDeque::new();
            for entry in copied.entries().filter(|entry| filter.matches(entry)) {
                if entries.len() == limit {
                    entries.pop_front();
                }
                if limit > 0 {
                    entries.push_back(entry);
                }
            }
            let entries: Vec<_> = entries.iter().map(journal::entry).collect();
            Ok(json!({"entries": entries, "next": copied.next, "oldest": copied.oldest}))
        }),
    },
    Verb {
        name: "tail",
        method: Method::Get,
        docs: "Follow the journal: print what happens as it happens\n\n\
               The answer goes on until the client ends it, the server stops or the universe is \
               dropped: one entry a line, as in `journal`, with empty lines between them now and then. \
               It begins with what happens next, or with the entry `since`. A reader that is too slow \
               loses entries; an entry of the kind `omitted` says how many.",
        parameters: &[PATH, OP, RESULT, SESSION, KIND, SINCE],
        plain: None,
        answer: &[],
        handler: Handler::Streams(|call| {
            let mut filter = filter(&call.arguments)?;
            if call.arguments.given("since").is_some() {
                filter = filter.since(call.arguments.count("since")?.max(1));
            }
            call.universe.tail(filter).map_err(refused)
        }),
    },
    Verb {
        name: "count",
        method: Method::Get,
        docs: "Count entries of the journal\n\n\
               An error (409) if entries that might match have been dropped.",
        parameters: &[PATH, OP, RESULT, SESSION, KIND, SINCE],
        plain: Some("count"),
        answer: &[Field::new("count", FieldKind::Count)],
        handler: Handler::AtOnce(|call| {
            let count = call.universe.count(&filter(&call.arguments)?);
            Ok(json!({"count": count.map_err(refused)?}))
        }),
    },
    Verb {
        name: "verify",
        method: Method::Post,
        docs: "Verify what the journal contains\n\n\
               Give `exactly` (0 for none), `at_least` or `at_most`; without them at least one \
               entry must match. Or give `in_order`: a list of filters such as \
               `create /locks/** -> OK`, which entries must match in this order, with others \
               between them. If the journal differs, the error (409) lists what matches or comes \
               nearest; in Python, Java and Node it is an AssertionError. Returns how many entries match.",
        parameters: &[
            PATH,
            OP,
            RESULT,
            SESSION,
            KIND,
            SINCE,
            Parameter::optional(
                "exactly",
                ParameterKind::Count(u64::MAX),
                "The number of entries that must match",
            ),
            Parameter::optional(
                "at_least",
                ParameterKind::Count(u64::MAX),
                "The least number of entries that must match",
            ),
            Parameter::optional(
                "at_most",
                ParameterKind::Count(u64::MAX),
                "The greatest number of entries that may match",
            ),
            Parameter::optional(
                "in_order",
                ParameterKind::Json(
                    || json!({"type": "array", "items": {"type": "string"}, "minItems": 1}),
                ),
                "Filters that entries must match in this order",
            ),
        ],
        plain: Some("count"),
        answer: &[Field::new("count", FieldKind::Count)],
        handler: Handler::AtOnce(|call| {
            let arguments = &call.arguments;
            let given = |name: &str| {
                let value = arguments.given(name).map(|_| arguments.count(name));
                value.transpose()
            };
            let expected = match (given("exactly")?, given("at_least")?, given("at_most")?) {
                (Some(count), None, None) => Some(Expected::Exactly(count)),
                (None, Some(count), None) => Some(Expected::AtLeast(count)),
                (None, None, Some(count)) => Some(Expected::AtMost(count)),
                (None, None, None) => None,
                _ => {
                    return Err(ControlError::bad_input(
                        "give one of exactly, at_least and at_most",
                    ));
                }
            };
            if let Some(in_order) = arguments.given("in_order") {
                if expected.is_some() {
                    return Err(ControlError::bad_input(
                        "give in_order, or one of exactly, at_least and at_most",
                    ));
                }
                let filters = in_order_of(in_order, arguments)?;
                let verified = call.universe.verify_order(&filters);
                return verified
                    .map(|()| json!({"count": filters.len()}))
                    .map_err(refused);
            }
            let expected = expected.unwrap_or(Expected::AtLeast(1));
            let count = call.universe.verify(&filter(arguments)?, expected);
            Ok(json!({"count": count.map_err(refused)?}))
        }),
    },
    Verb {
        name: "clear_journal",
        method: Method::Post,
        docs: "Forget every entry of the journal; the numbers of entries continue",
        parameters: &[],
        plain: None,
        answer: &[],
        handler: Handler::AtOnce(|call| {
            call.universe.clear_journal().map_err(refused)?;
            Ok(json!({}))
        }),
    },
];

pub(super) fn refused(error: JournalError) -> ControlError {
    match error {
        JournalError::Path { .. }
        | JournalError::Filter { .. }
        | JournalError::NoFilter
        | JournalError::TooManyIgnored { .. }
        | JournalError::Json { .. } => ControlError::bad_input(error.to_string()),
        error => ControlError::cannot_now(error.to_string()),
    }
}

/// Returns the filter in the arguments.
pub(crate) fn filter(arguments: &Arguments) -> Result<JournalFilter, ControlError> {
    let mut filter = JournalFilter::new();
    let text = |name: &str| arguments.given(name).and_then(Value::as_str);
    if let Some(kind) = text("kind") {
        filter = filter.kind(kind);
    }
    if let Some(pattern) = text("path") {
        filter = filter.path(pattern).map_err(refused)?;
    }
    if let Some(id) = text("session") {
        let session = session_id(id).ok_or_else(|| {
            ControlError::bad_input(format!("parameter session: {id:?} is not a session id"))
        })?;
        filter = filter.session(session);
    }
    if let Some(op) = text("op") {
        filter = filter.op(op).map_err(refused)?;
    }
    if let Some(result) = text("result") {
        filter = filter.result(result).map_err(refused)?;
    }
    if arguments.given("since").is_some() {
        filter = filter.since(arguments.count("since")?);
    }
    Ok(filter)
}

fn in_order_of(
    in_order: &Value,
    arguments: &Arguments,
) -> Result<Vec<JournalFilter>, ControlError> {
    let wrong = || ControlError::bad_input("parameter in_order: not a list of texts");
    let texts = in_order.as_array().ok_or_else(wrong)?;
    let common = filter(arguments)?;
    texts
        .iter()
        .map(|text| {
            let filter: JournalFilter =
                text.as_str().ok_or_else(wrong)?.parse().map_err(refused)?;
            Ok(filter.or(&common))
        })
        .collect()
}
