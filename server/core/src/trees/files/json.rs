//! Reads JSON in which no object has a key twice.
//!
//! Readers of JSON commonly keep the last value of such a key, so a file would lose znodes in silence.

use std::fmt;

use serde_core::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value, map::Entry};

/// Reads a value.
///
/// # Errors
/// When the text is not JSON, or an object has a key twice. The error names line and column.
pub fn parse(text: &[u8]) -> Result<Value, serde_json::Error> {
    let mut reader = serde_json::Deserializer::from_slice(text);
    let value = UniqueKeys.deserialize(&mut reader)?;
    reader.end()?;
    Ok(value)
}

/// Makes a value, and refuses keys that come twice.
struct UniqueKeys;

impl<'de> DeserializeSeed<'de> for UniqueKeys {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for UniqueKeys {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(Self)? {
            list.push(item);
        }
        Ok(list.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(name) = fields.next_key::<String>()? {
            match map.entry(name) {
                Entry::Occupied(field) => {
                    return Err(A::Error::custom(format!("duplicate {:?}", field.key())));
                }
                Entry::Vacant(field) => {
                    field.insert(fields.next_value_seed(Self)?);
                }
            }
        }
        Ok(map.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_those_of_serde_json() {
        for text in [
            "null",
            "true",
            "-1",
            "18446744073709551615",
            "1.5",
            "\"\\u00e4\\n\"",
            "[]",
            "{}",
            "[1, [2], {\"a\": {\"a\": [null]}, \"b\": {}}]",
            "",
            "{",
            "[1,]",
            "1 2",
            "{\"a\" 1}",
            "nul",
        ] {
            let ours = parse(text.as_bytes()).map_err(|error| error.to_string());
            let theirs = serde_json::from_str::<Value>(text).map_err(|error| error.to_string());
            assert_eq!(ours, theirs, "{text}");
        }
        assert!(parse("[".repeat(100_000).as_bytes()).is_err());
        assert!(parse(b"\"\xff\"").is_err());
    }

    #[test]
    fn key_that_comes_twice_is_refused_at_any_depth() {
        for text in [
            "{\"/a\": 1, \"/a\": 1}",
            "[{\"/a\": {\"/a\": 1, \"b\": 2, \"/a\": 3}}]",
            // The same name in another spelling.
            "{\"/a\": 1,\n \"\\u002fa\": 2}",
        ] {
            let error = parse(text.as_bytes()).unwrap_err().to_string();
            assert!(error.starts_with("duplicate \"/a\" at line "), "{error}");
        }
    }
}
