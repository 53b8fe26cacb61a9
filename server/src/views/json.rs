//! Renders values as JSON, and their schemas.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use minikeeper_engine::TTL_MS_MAX;
use minikeeper_protocol::Stat;
use serde_json::{Map, Value, json};

/// Puts a znode's data into an answer: `"data"`, text or null, or `"data_base64"` if it is not UTF-8.
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

/// The schema of an object with exactly these fields.
pub(crate) fn object(fields: &[(&str, Value)]) -> Value {
    let mut properties = Map::new();
    for (name, schema) in fields {
        properties.insert((*name).to_owned(), schema.clone());
    }
    let required: Vec<_> = fields.iter().map(|(name, _)| *name).collect();
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

pub(crate) fn integer() -> Value {
    json!({"type": "integer"})
}

/// The schema of a non-negative integer.
pub(crate) fn count() -> Value {
    json!({"type": "integer", "minimum": 0})
}

pub(crate) fn text() -> Value {
    json!({"type": "string"})
}

pub(crate) fn boolean() -> Value {
    json!({"type": "boolean"})
}

pub(crate) fn list(items: &Value) -> Value {
    json!({"type": "array", "items": items})
}

/// The schema of a session id or zxid: hexadecimal text, because numbers in some languages have fewer
/// than 64 bits.
pub(crate) fn hex() -> Value {
    json!({"type": "string", "pattern": "^0x[0-9a-f]{1,16}$"})
}

/// The schema of one component of a path.
pub(crate) fn name() -> Value {
    const NAME: &str = r"^(?!\.\.?$)[\u0020-\u002e\u0030-\u007e\u00a0-\ud7ff\uf900-\uffef]+$";
    json!({"type": "string", "pattern": NAME})
}

/// The schema of a znode's path, as servers accept it.
pub(crate) fn path() -> Value {
    const PATH: &str =
        r"^/$|^(/(?!\.\.?(/|$))[\u0020-\u002e\u0030-\u007e\u00a0-\ud7ff\uf900-\uffef]+)+$";
    json!({"type": "string", "pattern": PATH})
}

/// The schema of a tree: znodes by path.
pub(crate) fn tree() -> Value {
    /// Paths as servers accept them, except for /zookeeper, which belongs to the server.
    const PATH: &str = r"^/$|^(?!/zookeeper(/|$))(/(?!\.\.?(/|$))[\u0020-\u002e\u0030-\u007e\u00a0-\ud7ff\uf900-\uffef]+)+$";
    json!({
        "type": "object",
        "description": "Znodes by path: data, or an object",
        "propertyNames": {"pattern": PATH},
        "additionalProperties": tree_znode(),
    })
}

/// The schema of a znode in a tree.
pub(crate) fn tree_znode() -> Value {
    let data = json!({"type": ["string", "null"], "description": "Text, or null data"});
    let entry = json!({
        "type": "string",
        "pattern": "^[^:]+:.*:([cdrwa]+|[0-9]{1,9})$",
        "description": "SCHEME:ID:PERMISSIONS, as in world:anyone:cdrwa",
    });
    json!({"anyOf": [
        data,
        {
            "type": "object",
            "properties": {
                "data": data,
                "data_base64": {"type": "string", "contentEncoding": "base64"},
                "acl": {"type": "array", "minItems": 1, "items": entry},
                "container": {"type": "boolean"},
                "ttl_ms": {"type": "integer", "minimum": 1, "maximum": TTL_MS_MAX},
            },
            "additionalProperties": false,
            "not": {"anyOf": [
                {"required": ["data", "data_base64"]},
                {"required": ["container", "ttl_ms"]},
            ]},
        },
    ]})
}

/// Adds null to a schema, which may have it.
pub(crate) fn or_null(mut schema: Value) -> Value {
    if let Some(kind) = schema.get_mut("type").filter(|kind| kind.is_string()) {
        *kind = json!([kind.take(), "null"]);
        if let Some(Value::Array(words)) = schema.get_mut("enum") {
            words.push(Value::Null);
        }
    }
    schema
}
