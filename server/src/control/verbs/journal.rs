//! The journal: what clients did, and what happened to them.

use std::time::{Duration, UNIX_EPOCH};

use minikeeper_protocol::{ErrorCode, EventKind, OpCode, Zxid};
use serde_json::{Map, Value, json};

use crate::{
    control::{
        error::ControlError,
        parameter::{Arguments, Parameter, ParameterKind},
        verb::{Field, FieldKind, Handler, Method, Part, Verb},
        verbs::sessions::session_id,
    },
    journal::{
        entry::{
            DeletionReason, JournalEntry, JournalOperation, JournalRequest, Occurrence, known_mode,
        },
        filter::{Expected, JournalError, JournalFilter},
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

const ENTRY: Part = Part::new(
    "JournalEntry",
    "An entry of the journal, with the fields that apply to its kind",
    &[
        Field::new("number", FieldKind::Count),
        Field::new("kind", FieldKind::Text)
            .help("`request`, `event`, `deleted`, `fault`, `session_opened` and so on"),
        Field::new("at_ms", FieldKind::DurationMs)
            .help("The time by the universe's clock, since the start"),
        Field::optional("wall_ms", FieldKind::UnixMs).help("The time of day"),
        Field::new("text", FieldKind::Text).help("The entry in a line"),
        Field::optional("connection", FieldKind::Count).help("The number of the connection"),
        Field::optional("session", FieldKind::Session),
        Field::optional("address", FieldKind::Text),
        Field::optional("op", FieldKind::Text)
            .help("The operation of a request, or the one that a fault acted on"),
        Field::optional("path", FieldKind::Text),
        Field::optional("zxid", FieldKind::Hex),
        Field::optional("xid", FieldKind::Integer)
            .help("The number that the client gave the request"),
        Field::optional("created", FieldKind::Text)
            .help("The path of a create, with the number that was appended"),
        Field::optional("version", FieldKind::Integer)
            .help("The version that the request demands, -1 for any"),
        Field::optional("mode", FieldKind::Text).help("The mode of a create, such as `EPHEMERAL`"),
        Field::optional("watch", FieldKind::Flag).help("Whether the request sets a watch"),
        Field::optional("data_bytes", FieldKind::Count),
        Field::optional("timeout_ms", FieldKind::DurationMs),
        Field::optional("operations", FieldKind::Parts(&OPERATION))
            .help("The first 32 operations of a multi"),
        Field::optional("operation_count", FieldKind::Count),
        Field::optional("result", FieldKind::Text)
            .help("`OK`, the name of an error, or `NONE` without a reply"),
        Field::optional("duration_us", FieldKind::Count)
            .help("How long the turn took that served the request, in microseconds"),
        Field::optional("event", FieldKind::Text)
            .help("The kind of the event, such as `NodeCreated`"),
        Field::optional("why", FieldKind::Text).help(
            "Why the server deleted the znode without a request for it, such as `session_expired`",
        ),
        Field::optional("cause", FieldKind::Count)
            .help("The number of the entry that caused the event or the deletion"),
        Field::optional("is_held", FieldKind::Flag).help("Whether a fault holds the event"),
        Field::optional("fault", FieldKind::Count).help("The number of the fault that acted"),
        Field::optional("action", FieldKind::Text).help("What the fault did"),
        Field::optional("reason", FieldKind::Text).help("Why the connection was closed"),
        Field::optional("what", FieldKind::Text)
            .help("What was done to the clock, or the verb with its arguments"),
        Field::optional("count", FieldKind::Count).help("How many entries were omitted"),
    ],
);

const OPERATION: Part = Part::new(
    "MultiOperation",
    "An operation of a multi",
    &[
        Field::new("op", FieldKind::Text),
        Field::new("path", FieldKind::Text),
        Field::optional("version", FieldKind::Integer)
            .help("The version that it demands, -1 for any"),
        Field::optional("mode", FieldKind::Text).help("The mode of a create"),
        Field::optional("data_bytes", FieldKind::Count),
    ],
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
            Field::new("entries", FieldKind::Parts(&ENTRY)),
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
            let entries: Vec<_> = entries.iter().map(shown).collect();
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

/// Returns an entry as JSON: only the fields that apply.
pub(crate) fn shown(entry: &JournalEntry) -> Value {
    let mut fields = Map::new();
    let mut put = |name: &str, value: Value| {
        if !value.is_null() {
            fields.insert(name.to_owned(), value);
        }
    };
    let wall_ms = entry.wall.duration_since(UNIX_EPOCH);
    put("number", entry.number.into());
    put("kind", entry.kind().into());
    put("at_ms", millis(entry.at));
    put("wall_ms", wall_ms.map_or(Value::Null, millis));
    put("connection", entry.connection.into());
    put("session", entry.session.map(|id| id.to_string()).into());
    put("address", entry.address.map(|it| it.to_string()).into());
    match &entry.what {
        Occurrence::Request(request) => request_fields(request, &mut put),
        Occurrence::Event {
            kind,
            path,
            zxid,
            cause,
            is_held,
        } => {
            put("event", kind.name().into());
            put("path", path.as_str().into());
            put("zxid", zxid.to_string().into());
            put("cause", (*cause).into());
            put("is_held", is_held.then_some(true).into());
        }
        Occurrence::Deleted {
            path,
            zxid,
            why,
            cause,
        } => {
            put("path", path.as_str().into());
            put("zxid", zxid.to_string().into());
            put("why", why.name().into());
            put("cause", (*cause).into());
        }
        Occurrence::Fault {
            fault,
            action,
            op,
            path,
        } => {
            put("fault", (*fault).into());
            put("action", action.as_str().into());
            put("op", (*op).into());
            put("path", path.clone().into());
        }
        Occurrence::SessionBegan { timeout, .. } => put("timeout_ms", millis(*timeout)),
        Occurrence::ConnectionClosed { reason } => put("reason", reason.as_str().into()),
        Occurrence::Clock(text) | Occurrence::Verb(text) => put("what", text.as_str().into()),
        Occurrence::Omitted { count } => put("count", (*count).into()),
        Occurrence::SessionEnded { .. } | Occurrence::ConnectionOpened => {}
    }
    put("text", entry.to_string().into());
    fields.into()
}

fn request_fields(request: &JournalRequest, put: &mut impl FnMut(&str, Value)) {
    put("op", request.op.into());
    put("xid", request.xid.into());
    put("path", request.path.clone().into());
    put("created", request.created.clone().into());
    put("version", request.version.into());
    put("mode", request.mode.into());
    put("watch", request.watch.then_some(true).into());
    put("data_bytes", request.data_bytes.into());
    put("timeout_ms", request.timeout.map_or(Value::Null, millis));
    if !request.operations.is_empty() {
        let operations: Vec<_> = request.operations.iter().map(operation_fields).collect();
        put("operations", operations.into());
        put("operation_count", request.operation_count.into());
    }
    put("result", request.result().into());
    put(
        "zxid",
        request.is_answered.then(|| request.zxid.to_string()).into(),
    );
    let micros = u64::try_from(request.duration.as_micros()).unwrap_or(u64::MAX);
    put("duration_us", micros.into());
}

fn operation_fields(operation: &JournalOperation) -> Value {
    json!({
        "op": operation.op,
        "path": operation.path,
        "version": operation.version,
        "mode": operation.mode,
        "data_bytes": operation.data_bytes,
    })
}

/// Reads the entries of JSON with the field `entries`, as far as advice needs them.
///
/// # Errors
/// [`JournalError::Json`] if it is no such JSON.
pub(super) fn read(text: &str) -> Result<Vec<JournalEntry>, JournalError> {
    let wrong = |what: String| JournalError::Json { what };
    let mut value: Value = serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?;
    let Some(Value::Array(entries)) = value.get_mut("entries").map(Value::take) else {
        return Err(wrong("it has no list \"entries\"".to_owned()));
    };
    let parsed = |(index, entry): (usize, &Value)| {
        let unknown = || {
            wrong(format!(
                "\"entries\" number {index} is no entry of a journal"
            ))
        };
        parsed(entry).ok_or_else(unknown)
    };
    entries.iter().enumerate().map(parsed).collect()
}

/// Returns an entry that [`shown`] made.
fn parsed(entry: &Value) -> Option<JournalEntry> {
    let text = |name: &str| entry[name].as_str();
    let owned = |name: &str| text(name).map(str::to_owned);
    let path = || owned("path").unwrap_or_default();
    let ms = |name: &str| Duration::from_millis(entry[name].as_u64().unwrap_or(0));
    let what = match text("kind")? {
        "request" => Occurrence::Request(request_of(entry)),
        "event" => Occurrence::Event {
            kind: EVENTS
                .into_iter()
                .find(|it| text("event") == Some(it.name()))?,
            path: path(),
            zxid: Zxid(text("zxid").and_then(session_id)?.0),
            cause: entry["cause"].as_u64(),
            is_held: entry["is_held"] == true,
        },
        "deleted" => Occurrence::Deleted {
            path: path(),
            zxid: Zxid(text("zxid").and_then(session_id)?.0),
            why: text("why").and_then(DeletionReason::named)?,
            cause: entry["cause"].as_u64(),
        },
        "fault" => Occurrence::Fault {
            fault: entry["fault"].as_u64()?,
            action: owned("action").unwrap_or_default(),
            op: op_of(entry),
            path: owned("path"),
        },
        kind @ ("session_opened" | "session_resumed") => Occurrence::SessionBegan {
            timeout: ms("timeout_ms"),
            is_new: kind == "session_opened",
        },
        kind @ ("session_expired" | "session_closed") => Occurrence::SessionEnded {
            expired: kind == "session_expired",
        },
        "connection_opened" => Occurrence::ConnectionOpened,
        "connection_closed" => Occurrence::ConnectionClosed {
            reason: owned("reason").unwrap_or_default(),
        },
        "clock" => Occurrence::Clock(owned("what").unwrap_or_default()),
        "verb" => Occurrence::Verb(owned("what").unwrap_or_default()),
        "omitted" => Occurrence::Omitted {
            count: entry["count"].as_u64().unwrap_or(0),
        },
        _ => return None,
    };
    Some(JournalEntry {
        number: entry["number"].as_u64()?,
        at: ms("at_ms"),
        // Some systems cannot tell a time so late.
        wall: UNIX_EPOCH.checked_add(ms("wall_ms")).unwrap_or(UNIX_EPOCH),
        connection: entry["connection"].as_u64(),
        session: text("session").and_then(session_id),
        address: text("address").and_then(|it| it.parse().ok()),
        what,
    })
}

const EVENTS: [EventKind; 4] = [
    EventKind::Created,
    EventKind::Deleted,
    EventKind::DataChanged,
    EventKind::ChildrenChanged,
];

fn op_of(fields: &Value) -> &'static str {
    let op = fields["op"].as_str().and_then(OpCode::from_name);
    op.map_or("unknown", OpCode::name)
}

fn request_of(fields: &Value) -> JournalRequest {
    let owned = |name: &str| fields[name].as_str().map(str::to_owned);
    let result = fields["result"].as_str().unwrap_or("NONE");
    let number = |it: &Value| it.as_u64().and_then(|it| u32::try_from(it).ok());
    let version = |it: &Value| it.as_i64().and_then(|it| i32::try_from(it).ok());
    let operation = |it: &Value| {
        let request = request_of(it);
        JournalOperation {
            op: request.op,
            path: request.path.unwrap_or_default(),
            version: request.version,
            mode: request.mode,
            data_bytes: request.data_bytes,
        }
    };
    let operations = fields["operations"].as_array();
    JournalRequest {
        xid: version(&fields["xid"]).unwrap_or(0),
        op: op_of(fields),
        path: owned("path"),
        created: owned("created"),
        version: version(&fields["version"]),
        mode: fields["mode"].as_str().and_then(known_mode),
        watch: fields["watch"] == true,
        data_bytes: number(&fields["data_bytes"]),
        timeout: None,
        operations: operations.into_iter().flatten().map(operation).collect(),
        operation_count: number(&fields["operation_count"]).unwrap_or(0),
        error: (!matches!(result, "OK" | "NONE"))
            .then(|| ErrorCode::from_name(result).unwrap_or(ErrorCode::from_code(i32::MIN))),
        is_answered: result != "NONE",
        zxid: Zxid::default(),
        duration: Duration::ZERO,
    }
}

fn millis(time: Duration) -> Value {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX).into()
}
