//! Entries of the journal as JSON, and back.

use std::time::{Duration, UNIX_EPOCH};

use minikeeper_core::{
    journal::{
        entry::{
            DeletionReason, JournalEntry, JournalOperation, JournalRequest, Occurrence, known_mode,
        },
        filter::JournalError,
    },
    session_selector::session_id,
};
use minikeeper_protocol::{ErrorCode, EventKind, OpCode, Zxid};
use serde_json::{Map, Value, json};

use crate::views::schema::{Field, FieldKind, Part};

pub(crate) const ENTRY: Part = Part::new(
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

/// Returns an entry as JSON: only the fields that apply.
pub(crate) fn entry(entry: &JournalEntry) -> Value {
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
        // The text says the rest.
        _ => {}
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

/// Returns an entry that [`entry`] made.
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
    // Some systems cannot tell a time so late.
    let wall = UNIX_EPOCH.checked_add(ms("wall_ms")).unwrap_or(UNIX_EPOCH);
    let mut read = JournalEntry::new(entry["number"].as_u64()?, ms("at_ms"), wall, what);
    read.connection = entry["connection"].as_u64();
    read.session = text("session").and_then(session_id);
    read.address = text("address").and_then(|it| it.parse().ok());
    Some(read)
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
        let mut operation = JournalOperation::new(request.op, request.path.unwrap_or_default());
        operation.version = request.version;
        operation.mode = request.mode;
        operation.data_bytes = request.data_bytes;
        operation
    };
    let operations = fields["operations"].as_array();
    let mut request = JournalRequest::default();
    request.xid = version(&fields["xid"]).unwrap_or(0);
    request.op = op_of(fields);
    request.path = owned("path");
    request.created = owned("created");
    request.version = version(&fields["version"]);
    request.mode = fields["mode"].as_str().and_then(known_mode);
    request.watch = fields["watch"] == true;
    request.data_bytes = number(&fields["data_bytes"]);
    request.operations = operations.into_iter().flatten().map(operation).collect();
    request.operation_count = number(&fields["operation_count"]).unwrap_or(0);
    request.error = (!matches!(result, "OK" | "NONE"))
        .then(|| ErrorCode::from_name(result).unwrap_or(ErrorCode::from_code(i32::MIN)));
    request.is_answered = result != "NONE";
    request
}

fn millis(time: Duration) -> Value {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX).into()
}
