//! The parameters of verbs: name, kind and help of each, and the arguments of a request.

use std::time::Duration;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use minikeeper_protocol::path;
use serde_json::{Map, Value, json};

use crate::{
    control::{error::ControlError, routing},
    views::json,
};

/// The longest duration that a request may contain: a year. An advancing clock stops at every
/// deadline, perhaps every minute. Unit: milliseconds.
const DURATION_MS_MAX: u64 = 31_536_000_000;

/// One parameter of a [`Verb`](super::Verb).
#[derive(Debug)]
#[non_exhaustive]
pub struct Parameter {
    /// Its name in JSON and in queries.
    pub name: &'static str,
    /// The values it accepts.
    pub kind: ParameterKind,
    /// Its purpose, in one line.
    pub help: &'static str,
    /// Whether it must be given.
    pub is_required: bool,
    /// The default value, written as in a query.
    pub default: Option<&'static str>,
}

impl Parameter {
    /// Creates a required parameter.
    pub(crate) const fn required(
        name: &'static str,
        kind: ParameterKind,
        help: &'static str,
    ) -> Self {
        Self {
            name,
            kind,
            help,
            is_required: true,
            default: None,
        }
    }

    /// Creates an optional parameter.
    pub(crate) const fn optional(
        name: &'static str,
        kind: ParameterKind,
        help: &'static str,
    ) -> Self {
        Self {
            is_required: false,
            ..Self::required(name, kind, help)
        }
    }

    /// Makes the parameter optional, with this default.
    pub(crate) const fn with_default(mut self, default: &'static str) -> Self {
        self.is_required = false;
        self.default = Some(default);
        self
    }

    /// The parameter that selects sessions by one of four fields.
    pub(crate) const fn who() -> Self {
        Self::required(
            "who",
            ParameterKind::SessionSelector,
            "A session (0x... or decimal), an address (127.0.0.1:4711 or 127.0.0.1), an identity \
             (digest:alice) or a path that it owns (/locks/x)",
        )
    }

    /// The parameter that accepts a selection without a session.
    pub(crate) const fn allow_none() -> Self {
        let help = "Whether to succeed even if no session matches";
        Self::required("allow_none", ParameterKind::Flag, help).with_default("false")
    }

    pub(crate) fn schema(&self) -> Value {
        let mut schema = self.kind.schema();
        if let Value::Object(schema) = &mut schema {
            schema.insert("description".to_owned(), json!(self.help));
            let default = self.default.map(|text| self.kind.parse(text));
            if let Some(Ok(default)) = default {
                schema.insert("default".to_owned(), default);
            }
        }
        schema
    }
}

/// The values that a [`Parameter`] accepts.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum ParameterKind {
    /// Any text.
    Text,
    /// Words, separated by commas.
    Words,
    /// The path of a znode.
    Path,
    /// True or false.
    Flag,
    /// One component of a path.
    Name,
    /// A directory on the server's machine.
    Directory,
    /// The number of an injected fault.
    Fault,
    /// A duration in milliseconds.
    DurationMs,
    /// A duration in milliseconds, or null for never.
    DurationMsOrNull,
    /// A whole number from 0 to this.
    Count(u64),
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// A selection of sessions: one of the fields `session`, `address`, `identity`, `owner`.
    SessionSelector,
    /// A tree: one of the fields `tree`, in JSON, and `yaml`.
    Tree,
    /// The data of a znode: one of the fields `data`, text, and `data_base64`.
    Data,
    /// The version of a znode's data, or -1 for any.
    Version,
    /// A value with this JSON schema, which the handler checks.
    Json(fn() -> Value),
}

/// One of the fields that can express a parameter.
pub(crate) struct Alternative {
    pub(crate) name: &'static str,
    /// The kind that its value is checked against.
    pub(crate) kind: ParameterKind,
    schema: fn() -> Value,
}

impl Alternative {
    const fn text(name: &'static str, schema: fn() -> Value) -> Self {
        let kind = ParameterKind::Text;
        Self { name, kind, schema }
    }
}

/// The fields that can select sessions.
const WHO: [Alternative; 4] = [
    Alternative::text("session", || {
        json!({
            "type": "string",
            "description": "A session's id, hexadecimal or decimal",
            "pattern": "^(0x[0-9a-fA-F]{1,16}|[0-9]{1,18})$",
        })
    }),
    Alternative::text("address", || {
        let help = "The address of clients, with or without a port";
        json!({"type": "string", "description": help})
    }),
    Alternative::text(
        "identity",
        || json!({"type": "string", "description": "An identity of clients: scheme:id"}),
    ),
    Alternative::text(
        "owner",
        || json!({"type": "string", "description": "The path of an ephemeral; selects its owner"}),
    ),
];

/// The fields that can contain a tree.
const TREE: [Alternative; 2] = [
    Alternative {
        name: "tree",
        kind: ParameterKind::Json(json::tree),
        schema: json::tree,
    },
    Alternative::text(
        "yaml",
        || json!({"type": "string", "description": "The tree in YAML"}),
    ),
];

/// The fields that can contain data.
const DATA: [Alternative; 2] = [
    Alternative::text(
        "data",
        || json!({"type": "string", "description": "The data, as text"}),
    ),
    Alternative::text("data_base64", || {
        let help = "The data, in base64";
        json!({"type": "string", "contentEncoding": "base64", "description": help})
    }),
];

impl ParameterKind {
    /// Returns the alternative fields for this kind; empty if the parameter is a field of its own name.
    pub(crate) const fn alternatives(self) -> &'static [Alternative] {
        match self {
            Self::SessionSelector => &WHO,
            Self::Tree => &TREE,
            Self::Data => &DATA,
            _ => &[],
        }
    }

    /// Returns whether its values may contain data of znodes.
    pub(crate) const fn is_data(self) -> bool {
        matches!(self, Self::Tree | Self::Data | Self::Text | Self::Json(_))
    }

    /// Returns its JSON schema.
    pub(crate) fn schema(self) -> Value {
        match self {
            Self::Text | Self::Words | Self::Directory => json::text(),
            Self::Path => json::path(),
            Self::Flag => json::boolean(),
            Self::Name => json::name(),
            Self::DurationMs => {
                json!({"type": "integer", "minimum": 0, "maximum": DURATION_MS_MAX})
            }
            Self::DurationMsOrNull => json::or_null(Self::DurationMs.schema()),
            Self::Count(max) => json!({"type": "integer", "minimum": 0, "maximum": max}),
            Self::Fault => Self::Count(u64::MAX).schema(),
            Self::OneOf(words) => json!({"type": "string", "enum": words}),
            Self::Version => json!({"type": "integer", "minimum": -1, "maximum": i32::MAX}),
            Self::SessionSelector | Self::Tree | Self::Data => json!({}),
            Self::Json(schema) => schema(),
        }
    }

    /// Parses a value from the text in a query.
    ///
    /// # Errors
    /// When the text is not of this kind; says what is expected.
    pub(crate) fn parse(self, text: &str) -> Result<Value, String> {
        let value = match self {
            Self::DurationMsOrNull if text == "null" => Value::Null,
            Self::DurationMs | Self::DurationMsOrNull | Self::Count(_) | Self::Fault => {
                let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
                text.parse::<u64>()
                    .ok()
                    .filter(|_| is_plain)
                    .map_or_else(|| json!(text), |number| json!(number))
            }
            Self::Version => text
                .parse::<i32>()
                .map_or_else(|_| json!(text), |number| json!(number)),
            Self::Flag => match text {
                "true" => json!(true),
                "false" => json!(false),
                text => json!(text),
            },
            Self::Json(_) => {
                serde_json::from_str(text).map_err(|error| format!("not JSON: {error}"))?
            }
            Self::Text
            | Self::Words
            | Self::Path
            | Self::Name
            | Self::Directory
            | Self::OneOf(_)
            | Self::SessionSelector
            | Self::Data
            | Self::Tree => {
                json!(text)
            }
        };
        self.check(&value).map(|()| value)
    }

    /// Checks that a value is of this kind.
    ///
    /// # Errors
    /// When it is not; says what is expected.
    pub(crate) fn check(self, value: &Value) -> Result<(), String> {
        let at_most = |max: u64| match whole(value) {
            Some(number) if number <= max => Ok(()),
            _ => Err(format!("{value} is not a whole number from 0 to {max}")),
        };
        match self {
            Self::Path => {
                let path = value
                    .as_str()
                    .ok_or_else(|| format!("{value} is not text"))?;
                // An invalid path would never match a znode, and a wait for it would time out.
                path::validate(path.as_bytes()).map_err(|error| error.to_string())
            }
            Self::Text
            | Self::Words
            | Self::Name
            | Self::Directory
            | Self::SessionSelector
            | Self::Data => {
                let is_text = value.is_string();
                is_text
                    .then_some(())
                    .ok_or_else(|| format!("{value} is not text"))
            }
            Self::Flag if value.is_boolean() => Ok(()),
            Self::Flag => Err(format!("{value} is neither true nor false")),
            Self::DurationMsOrNull if value.is_null() => Ok(()),
            Self::DurationMs | Self::DurationMsOrNull => at_most(DURATION_MS_MAX),
            Self::Count(max) => at_most(max),
            Self::Fault => at_most(u64::MAX),
            Self::Version => {
                let is_version = version(value).is_some();
                let wrong = || format!("{value} is not a whole number from -1 to {}", i32::MAX);
                is_version.then_some(()).ok_or_else(wrong)
            }
            Self::OneOf(words) => match value.as_str() {
                Some(word) if words.contains(&word) => Ok(()),
                _ => Err(format!("{value} is not one of {}", words.join(", "))),
            },
            Self::Json(_) | Self::Tree => Ok(()),
        }
    }
}

/// Returns a whole number in any JSON notation: to JSON Schema, `1.0` is an integer.
pub(crate) fn whole(value: &Value) -> Option<u64> {
    /// The limit up to which floating-point numbers represent every integer.
    const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
    value.as_u64().or_else(|| {
        let number = value.as_f64()?;
        let is_whole = (0.0..=EXACT_MAX).contains(&number) && number.fract() == 0.0;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "whole, not negative and in range"
        )]
        is_whole.then_some(number as u64)
    })
}

/// Returns a version, or -1 for any.
fn version(value: &Value) -> Option<i32> {
    let number = value.as_i64().or_else(|| whole(value)?.try_into().ok())?;
    i32::try_from(number).ok().filter(|version| *version >= -1)
}

/// Returns the schema of an object with these parameters.
pub(crate) fn body_schema(parameters: &[Parameter]) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    let mut choices = Vec::new();
    for parameter in parameters {
        let alternatives = parameter.kind.alternatives();
        for Alternative { name, schema, .. } in alternatives {
            properties.insert((*name).to_owned(), schema());
        }
        if alternatives.is_empty() {
            properties.insert(parameter.name.to_owned(), parameter.schema());
            if parameter.is_required {
                required.push(parameter.name);
            }
        } else {
            let one = |field: &Alternative| json!({"required": [field.name]});
            let mut one_of: Vec<_> = alternatives.iter().map(one).collect();
            if !parameter.is_required {
                let any_of = one_of.clone();
                one_of.push(json!({"not": {"anyOf": any_of}}));
            }
            choices.push(json!({"oneOf": one_of}));
        }
    }
    let mut schema = json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    });
    if !choices.is_empty() {
        schema["allOf"] = choices.into();
    }
    schema
}

/// The arguments of a request, checked against the verb's parameters, with defaults filled in. Null is
/// refused, except for kinds that allow it.
#[derive(Debug)]
pub(crate) struct Arguments(Map<String, Value>);

impl Arguments {
    /// Parses a query.
    pub(crate) fn from_query(text: &str, parameters: &[Parameter]) -> Result<Self, ControlError> {
        let mut given = Map::new();
        for (name, text) in routing::pairs(text)? {
            let kind = kind_of(parameters, &name)?;
            let value = kind.parse(&text).map_err(|what| wrong(&name, &what))?;
            if given.insert(name.clone(), value).is_some() {
                return Err(wrong(&name, "given twice"));
            }
        }
        Self::complete(given, parameters)
    }

    /// Parses a body; an empty body means `{}`.
    pub(crate) fn from_body(body: &[u8], parameters: &[Parameter]) -> Result<Self, ControlError> {
        let body = if body.is_empty() { b"{}" } else { body };
        let value = minikeeper_core::trees::files::json::parse(body)
            .map_err(|error| ControlError::bad_input(format!("the body is not JSON: {error}")))?;
        let Value::Object(mut given) = value else {
            return Err(ControlError::bad_input("the body is not a JSON object"));
        };
        let mut checked = Map::new();
        for (name, value) in std::mem::take(&mut given) {
            let kind = kind_of(parameters, &name)?;
            kind.check(&value).map_err(|what| wrong(&name, &what))?;
            checked.insert(name, value);
        }
        Self::complete(checked, parameters)
    }

    fn complete(
        mut given: Map<String, Value>,
        parameters: &[Parameter],
    ) -> Result<Self, ControlError> {
        for parameter in parameters {
            let fields = parameter.kind.alternatives();
            if !fields.is_empty() {
                let is_given = |name: &&str| given.contains_key(*name);
                let names = || fields.iter().map(|field| field.name);
                let count = names().filter(is_given).count();
                if count > 1 || count == 0 && parameter.is_required {
                    let amount = if parameter.is_required {
                        "exactly"
                    } else {
                        "at most"
                    };
                    let names = names().collect::<Vec<_>>().join(", ");
                    return Err(ControlError::bad_input(format!(
                        "give {amount} one of {names}"
                    )));
                }
                continue;
            }
            if given.contains_key(parameter.name) {
                continue;
            }
            if parameter.is_required {
                return Err(wrong(parameter.name, "missing"));
            }
            if let Some(Ok(value)) = parameter.default.map(|text| parameter.kind.parse(text)) {
                given.insert(parameter.name.to_owned(), value);
            }
        }
        Ok(Self(given))
    }

    /// Returns a text.
    pub(crate) fn text(&self, name: &str) -> Result<&str, ControlError> {
        let text = self.value(name)?.as_str();
        text.ok_or_else(|| wrong(name, "not text"))
    }

    /// Returns a whole number.
    pub(crate) fn count(&self, name: &str) -> Result<u64, ControlError> {
        whole(self.value(name)?).ok_or_else(|| wrong(name, "not a whole number"))
    }

    /// Returns a flag; false if it was not given.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.given(name).and_then(Value::as_bool).unwrap_or(false)
    }

    /// Returns a duration.
    pub(crate) fn duration(&self, name: &str) -> Result<Duration, ControlError> {
        self.count(name).map(Duration::from_millis)
    }

    /// Returns which of a kind's alternative fields was given, and its value.
    pub(crate) fn alternative(
        &self,
        kind: ParameterKind,
    ) -> Result<(&'static str, &Value), ControlError> {
        let mut fields = kind.alternatives().iter();
        fields
            .find_map(|field| Some((field.name, self.0.get(field.name)?)))
            .ok_or_else(|| ControlError::bad_input("nothing was given"))
    }

    /// Returns the data of a znode; empty if none was given.
    pub(crate) fn data(&self) -> Result<Vec<u8>, ControlError> {
        match self.alternative(ParameterKind::Data) {
            Err(_) => Ok(Vec::new()),
            Ok(("data", value)) => Ok(value.as_str().unwrap_or_default().as_bytes().to_vec()),
            Ok((field, value)) => STANDARD
                .decode(value.as_str().unwrap_or_default())
                .map_err(|_| wrong(field, "not base64")),
        }
    }

    /// Returns a version; `None` for any.
    pub(crate) fn version(&self, name: &str) -> Result<Option<i32>, ControlError> {
        let version = version(self.value(name)?);
        let version = version.ok_or_else(|| wrong(name, "not a version"))?;
        Ok(Some(version).filter(|version| *version != -1))
    }

    /// Returns the field that selects sessions, and its text.
    pub(crate) fn who(&self) -> Result<(&'static str, &str), ControlError> {
        let (field, value) = self.alternative(ParameterKind::SessionSelector)?;
        let text = value.as_str().ok_or_else(|| wrong(field, "not text"))?;
        Ok((field, text))
    }

    /// Returns an argument; `None` if it is missing or null.
    pub(crate) fn given(&self, name: &str) -> Option<&Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    /// Returns an argument, which may be null. An error if it is missing.
    pub(crate) fn value(&self, name: &str) -> Result<&Value, ControlError> {
        self.0.get(name).ok_or_else(|| wrong(name, "missing"))
    }
}

/// Returns the kind of the field of this name.
fn kind_of(parameters: &[Parameter], name: &str) -> Result<ParameterKind, ControlError> {
    let fields = || {
        parameters.iter().flat_map(|parameter| {
            let alternatives = parameter.kind.alternatives();
            let own = (alternatives.is_empty()).then_some((parameter.name, parameter.kind));
            let fields = alternatives.iter().map(|field| (field.name, field.kind));
            own.into_iter().chain(fields)
        })
    };
    let known = fields().find(|(known, _)| *known == name);
    known.map(|(_, kind)| kind).ok_or_else(|| {
        let names: Vec<_> = fields().map(|(name, _)| name).collect();
        let expected = if names.is_empty() {
            "none is expected".to_owned()
        } else {
            format!("expected {}", names.join(", "))
        };
        ControlError::bad_input(format!("unknown parameter {name:?}; {expected}"))
    })
}

fn wrong(name: &str, what: &str) -> ControlError {
    ControlError::bad_input(format!("parameter {name}: {what}"))
}
