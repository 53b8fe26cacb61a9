//! How the things of a server look in JSON.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use minikeeper_protocol::Stat;
use serde_json::{Map, Value, json};

use crate::control::schema;

/// Puts a znode's data into an answer: `"data"`, text or null, or `"data_base64"` if it is no
/// text.
pub(crate) fn put_data(answer: &mut Map<String, Value>, data: Option<Vec<u8>>) {
    let (name, value) = match data.map(String::from_utf8) {
        None => ("data", Value::Null),
        Some(Ok(text)) => ("data", Value::String(text)),
        Some(Err(error)) => (
            "data_base64",
            Value::String(STANDARD.encode(error.as_bytes())),
        ),
    };
    answer.insert(name.to_owned(), value);
}

pub(crate) fn stat(stat: &Stat) -> Value {
    json!({
        "czxid": stat.czxid.to_string(),
        "mzxid": stat.mzxid.to_string(),
        "pzxid": stat.pzxid.to_string(),
        "ctime_ms": stat.ctime_ms,
        "mtime_ms": stat.mtime_ms,
        "version": stat.version,
        "cversion": stat.cversion,
        "aversion": stat.aversion,
        "ephemeral_owner": stat.ephemeral_owner.to_string(),
        "data_length": stat.data_length,
        "num_children": stat.num_children,
    })
}

pub(crate) fn stat_schema() -> Value {
    let (hex, integer) = (schema::hex, schema::integer);
    schema::object(&[
        ("czxid", hex()),
        ("mzxid", hex()),
        ("pzxid", hex()),
        ("ctime_ms", integer()),
        ("mtime_ms", integer()),
        ("version", integer()),
        ("cversion", integer()),
        ("aversion", integer()),
        ("ephemeral_owner", hex()),
        ("data_length", integer()),
        ("num_children", integer()),
    ])
}
