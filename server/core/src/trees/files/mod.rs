//! Reads and writes trees as JSON (`json`), or as YAML (`yaml`), which needs less punctuation.
//!
//! A tree is an object whose keys are paths. A znode is its data (text or null), or an object with
//! `data` or `data_base64`, `acl`, and `container` or `ttl_ms`.

pub mod json;
mod yaml;

use std::time::Duration;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Map, Value, json};

use crate::trees::{Lifetime, Tree, Znode};

/// The default access list, which is not written.
const OPEN: [&str; 1] = ["world:anyone:cdrwa"];

/// Why a text cannot be read as a [`Tree`].
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TreeFileError {
    /// It is not JSON.
    #[error("not JSON: {0}")]
    Json(String),
    /// It is not YAML, or uses a part of YAML that trees do not support.
    #[error("line {line}, column {column}: {what}")]
    Yaml {
        /// The line, counted from 1.
        line: usize,
        /// The column, counted from 1.
        column: usize,
        /// The fault.
        what: String,
    },
    /// It is not an object.
    #[error("not an object that maps paths to znodes, such as {{\"/a\": \"data\"}}")]
    NoObject,
    /// A znode is invalid.
    #[error("path {path:?}: {what}")]
    Znode {
        /// Its path.
        path: String,
        /// The fault.
        what: String,
    },
}

impl Tree {
    /// Reads JSON. No path and no field may come twice.
    ///
    /// # Errors
    /// The position of the fault.
    ///
    /// # Examples
    /// ```
    /// use minikeeper::{Tree, Znode, tree};
    /// let tree = Tree::from_json(
    ///     r#"{"/a": "x", "/b": null, "/c": {"data_base64": "/w==", "container": true}}"#,
    /// )?;
    /// assert_eq!(tree, tree! {
    ///     "/a" => "x",
    ///     "/b" => null,
    ///     "/c" => Znode::from(b"\xff").container(),
    /// });
    /// # Ok::<(), minikeeper::TreeFileError>(())
    /// ```
    pub fn from_json(text: &str) -> Result<Self, TreeFileError> {
        let value = json::parse(text.as_bytes());
        Self::from_value(&value.map_err(|error| TreeFileError::Json(error.to_string()))?)
    }

    /// Reads YAML: version 1.2, one document, no aliases. Data is taken literally: `no` and `0x10`
    /// are text. Only `null`, `~` and an empty value mean null.
    ///
    /// # Errors
    /// The position of the fault.
    ///
    /// # Examples
    /// ```
    /// use std::time::Duration;
    /// use minikeeper::{Tree, Znode, tree};
    /// let tree = Tree::from_yaml("
    /// /a: x
    /// /a/b:                       # null
    /// /port: 8080                 # text
    /// /secret:
    ///   data: x
    ///   acl: ['digest:alice:HASH:cdrwa']
    /// /cache: {ttl_ms: 5000}
    /// ")?;
    /// assert_eq!(tree, tree! {
    ///     "/a" => "x",
    ///     "/a/b" => null,
    ///     "/port" => "8080",
    ///     "/secret" => Znode::from("x").acl(["digest:alice:HASH:cdrwa"]),
    ///     "/cache" => Znode::any().time_to_live(Duration::from_secs(5)),
    /// });
    /// # Ok::<(), minikeeper::TreeFileError>(())
    /// ```
    pub fn from_yaml(text: &str) -> Result<Self, TreeFileError> {
        Self::from_value(&yaml::parse(text)?)
    }

    /// Writes JSON, one znode per line; [`Tree::from_json`] reads it. Omits defaults: persistent,
    /// and open to all clients.
    #[must_use]
    pub fn to_json(&self) -> String {
        let lines: Vec<_> = self
            .iter()
            .map(|(path, znode)| format!("  {}: {}", json!(path), to_value(znode)))
            .collect();
        if lines.is_empty() {
            return "{}\n".to_owned();
        }
        format!("{{\n{}\n}}\n", lines.join(",\n"))
    }

    /// Writes YAML, one znode per line; [`Tree::from_yaml`] reads it. Omits the same defaults as
    /// [`Tree::to_json`].
    #[must_use]
    pub fn to_yaml(&self) -> String {
        let lines = self
            .iter()
            .map(|(path, znode)| yaml::line(path, &to_value(znode)));
        let text: String = lines.collect();
        if text.is_empty() {
            return "{}\n".to_owned();
        }
        text
    }

    /// Returns an object with a member for each path.
    #[cfg(feature = "control")]
    pub fn to_json_value(&self) -> Value {
        let znodes = self.iter();
        let fields = znodes.map(|(path, znode)| (path.to_owned(), to_value(znode)));
        crate::order::collect::<Map<_, _>, _>(fields).into()
    }

    /// Reads what a file has in it.
    ///
    /// # Errors
    /// When it is no object, or a member is no znode.
    pub fn from_value(value: &Value) -> Result<Self, TreeFileError> {
        let Value::Object(znodes) = value else {
            return Err(TreeFileError::NoObject);
        };
        znodes
            .iter()
            .map(|(path, value)| {
                let wrong = |what| TreeFileError::Znode {
                    path: path.clone(),
                    what,
                };
                Ok((path, to_znode(value).map_err(wrong)?))
            })
            .collect()
    }
}

fn to_znode(value: &Value) -> Result<Znode, String> {
    let fields = match value {
        Value::Null => return Ok(Znode::null()),
        Value::String(data) => return Ok(data.as_str().into()),
        Value::Object(fields) => fields,
        _ => return Err(format!("{value} is not text, null or an object")),
    };
    let mut znode = Znode::any();
    for (name, value) in fields {
        let is_set = |is_set: bool| {
            is_set
                .then(|| format!("{name} conflicts with another field"))
                .map_or(Ok(()), Err)
        };
        match (name.as_str(), value) {
            ("data", Value::Null | Value::String(_)) => {
                is_set(znode.data.is_some())?;
                znode.data = Some(value.as_str().map(|data| data.as_bytes().to_vec()));
            }
            ("data_base64", Value::String(text)) => {
                is_set(znode.data.is_some())?;
                let data = STANDARD.decode(text);
                znode.data = Some(Some(data.map_err(|error| format!("{name}: {error}"))?));
            }
            ("acl", Value::Array(entries)) => {
                let texts: Option<Vec<_>> = entries.iter().map(Value::as_str).collect();
                znode = znode.acl(texts.ok_or_else(|| format!("{name} is not a list of texts"))?);
            }
            ("container", Value::Bool(is_container)) => {
                is_set(znode.lifetime.is_some())?;
                let lifetime = if *is_container {
                    Lifetime::Container
                } else {
                    Lifetime::Persistent
                };
                znode = znode.lives(lifetime);
            }
            ("ttl_ms", Value::Number(_)) => {
                is_set(znode.lifetime.is_some())?;
                let ttl_ms = value.as_u64();
                let ttl_ms = ttl_ms.ok_or_else(|| format!("{name} is not a whole number"))?;
                znode = znode.time_to_live(Duration::from_millis(ttl_ms));
            }
            ("data" | "data_base64" | "acl" | "container" | "ttl_ms", value) => {
                return Err(format!("{name} cannot be {value}"));
            }
            _ => {
                return Err(format!(
                    "unknown field {name:?}; one of data, data_base64, acl, container, ttl_ms"
                ));
            }
        }
    }
    Ok(znode)
}

/// Returns a znode as in a tree: its data alone, or an object.
pub fn to_value(znode: &Znode) -> Value {
    let mut fields = Map::new();
    let mut put = |name: &str, value: Value| fields.insert(name.to_owned(), value);
    match znode.data() {
        None => {}
        Some(None) => {
            put("data", Value::Null);
        }
        Some(Some(data)) => match std::str::from_utf8(data) {
            Ok(text) => {
                put("data", json!(text));
            }
            Err(_) => {
                put("data_base64", json!(STANDARD.encode(data)));
            }
        },
    }
    match znode.lifetime() {
        // Ephemerals cannot be seeded, so they are written as plain znodes.
        None | Some(Lifetime::Persistent | Lifetime::Ephemeral) => {}
        Some(Lifetime::Container) => {
            put("container", json!(true));
        }
        Some(Lifetime::TimeToLive(ttl)) => {
            let ttl_ms = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX);
            put("ttl_ms", json!(ttl_ms));
        }
    }
    if let Some(access) = znode.access()
        && access != OPEN
    {
        put("acl", json!(access));
    }
    if fields.len() == 1
        && let Some(data) = fields.get("data")
    {
        return data.clone();
    }
    fields.into()
}
