//! The fields of what is shown, and their JSON schemas.

use serde_json::{Value, json};

use crate::views::json;

/// A field of a verb's answer.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Field {
    /// Its name in JSON.
    pub name: &'static str,
    /// The kind of its value.
    pub kind: FieldKind,
    /// Its meaning, in a line; empty if the name says it.
    pub help: &'static str,
    /// Whether it may be null or absent.
    pub is_optional: bool,
}

/// An object in an answer, such as a lock. The packages have a type of its name.
#[derive(Debug)]
#[non_exhaustive]
pub struct Part {
    /// The name of its type in the packages.
    pub name: &'static str,
    /// What it is: a phrase without a full stop.
    pub help: &'static str,
    /// Its fields.
    pub fields: &'static [Field],
}

// There is one of each name.
impl PartialEq for Part {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Part {}

impl Part {
    pub(crate) const fn new(
        name: &'static str,
        help: &'static str,
        fields: &'static [Field],
    ) -> Self {
        Self { name, help, fields }
    }

    fn schema(&self) -> Value {
        let fields: Vec<_> = self
            .fields
            .iter()
            .map(|field| (field.name, field.schema()))
            .collect();
        let mut schema = json::object(&fields);
        if self
            .fields
            .iter()
            .any(|field| field.kind == FieldKind::Data)
        {
            schema["properties"]["data_base64"] = json::text();
        }
        let required = self.fields.iter().filter(|field| !field.is_optional);
        schema["required"] = required.map(|field| field.name).collect();
        schema["title"] = self.name.into();
        schema
    }
}

/// The kind of value in a [`Field`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum FieldKind {
    /// A whole number that is not negative.
    Count,
    /// A time span in milliseconds.
    DurationMs,
    /// A point in time, in milliseconds since 1970.
    UnixMs,
    /// The number of an injected fault.
    Fault,
    /// The connect string of a universe.
    ConnectString,
    /// True or false.
    Flag,
    /// Text.
    Text,
    /// A zxid: hexadecimal, as text.
    Hex,
    /// A session id: hexadecimal, as text.
    Session,
    /// A number, which may have a fraction.
    Number,
    /// A whole number that may be negative.
    Integer,
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// A znode of a tree: its data, an object, or null.
    TreeZnode,
    /// A list of texts.
    Texts,
    /// A list of whole numbers that are not negative.
    Counts,
    /// A list of session ids.
    SessionIds,
    /// An object.
    Part(&'static Part),
    /// A list of objects.
    Parts(&'static Part),
    /// Text or null; if the data is not UTF-8, the field is `data_base64` instead.
    Data,
    /// A tree as JSON, or its YAML as text.
    Tree,
}

impl Field {
    pub(crate) const fn new(name: &'static str, kind: FieldKind) -> Self {
        Self {
            name,
            kind,
            help: "",
            is_optional: false,
        }
    }

    /// A field that may be null or absent.
    pub(crate) const fn optional(name: &'static str, kind: FieldKind) -> Self {
        let mut field = Self::new(name, kind);
        field.is_optional = true;
        field
    }

    pub(crate) const fn help(mut self, help: &'static str) -> Self {
        self.help = help;
        self
    }

    pub(crate) fn schema(&self) -> Value {
        let mut schema = self.kind.schema();
        if self.is_optional {
            schema = json::or_null(schema);
        }
        if !self.help.is_empty() {
            schema["description"] = self.help.into();
        }
        schema
    }
}

impl FieldKind {
    fn schema(self) -> Value {
        match self {
            Self::UnixMs | Self::Integer => json::integer(),
            Self::Count | Self::DurationMs | Self::Fault => json::count(),
            Self::Flag => json::boolean(),
            Self::Text | Self::ConnectString => json::text(),
            Self::Hex | Self::Session => json::hex(),
            Self::Number => json!({"type": "number"}),
            Self::OneOf(words) => json!({"type": "string", "enum": words}),
            Self::TreeZnode => json::tree_znode(),
            Self::Texts => json::list(&json::text()),
            Self::Counts => json::list(&json::count()),
            Self::SessionIds => json::list(&json::hex()),
            Self::Part(part) => part.schema(),
            Self::Parts(part) => json::list(&part.schema()),
            Self::Data => json::or_null(json::text()),
            Self::Tree => json!({"anyOf": [json::tree(), json::text()]}),
        }
    }
}
