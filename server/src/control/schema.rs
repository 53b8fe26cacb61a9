//! JSON schemas, by hand: what parameters and answers look like.

use serde_json::{Map, Value, json};

/// An object in which each of these fields is there, and no other.
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

/// `{}`: there is nothing to say.
pub(crate) fn nothing() -> Value {
    object(&[])
}

pub(crate) fn integer() -> Value {
    json!({"type": "integer"})
}

/// How many of something there were.
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

/// A session id, a zxid: hexadecimal, as text, because not every language's numbers hold it.
pub(crate) fn hex() -> Value {
    json!({"type": "string", "pattern": "^0x[0-9a-f]{1,16}$"})
}

/// The same or null.
pub(crate) fn or_null(mut schema: Value) -> Value {
    if let Some(kind) = schema.get_mut("type") {
        *kind = json!([kind.take(), "null"]);
    }
    schema
}
