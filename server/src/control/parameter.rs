//! What a verb takes: each parameter's name, kind and help.

use minikeeper_protocol::path;
use serde_json::{Map, Value, json};

use crate::control::schema;

/// The longest time that a request may name: a year. A clock that is moved stops at everything
/// that is due, every minute perhaps, and nobody is served meanwhile. Unit: milliseconds.
const DURATION_MS_MAX: u64 = 31_536_000_000;

/// One parameter of a [`Verb`](super::Verb).
#[derive(Debug)]
#[non_exhaustive]
pub struct Parameter {
    /// Its name in JSON and in queries.
    pub name: &'static str,
    /// What may stand there.
    pub kind: Kind,
    /// What it is for, in a line.
    pub help: &'static str,
    /// Whether it must be there.
    pub is_required: bool,
    /// What counts where it is not, written as in a query.
    pub default: Option<&'static str>,
}

impl Parameter {
    /// A parameter that must be there.
    pub(crate) const fn required(name: &'static str, kind: Kind, help: &'static str) -> Self {
        Self {
            name,
            kind,
            help,
            is_required: true,
            default: None,
        }
    }

    /// A parameter that may be left out.
    pub(crate) const fn optional(name: &'static str, kind: Kind, help: &'static str) -> Self {
        Self {
            is_required: false,
            ..Self::required(name, kind, help)
        }
    }

    /// A parameter that may be left out; this counts then.
    pub(crate) const fn with_default(mut self, default: &'static str) -> Self {
        self.is_required = false;
        self.default = Some(default);
        self
    }

    /// Which sessions are meant: one of four fields.
    pub(crate) const fn who() -> Self {
        Self::required(
            "who",
            Kind::Who,
            "A session (0x... or decimal), an address (127.0.0.1:4711 or 127.0.0.1), an identity \
             (digest:alice) or a path that it owns (/locks/x)",
        )
    }

    /// Whether it is fine that a verb meets nobody.
    pub(crate) const fn allow_none() -> Self {
        let help = "Whether it is fine that no session is met; else that is an error";
        Self::required("allow_none", Kind::Flag, help).with_default("false")
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

/// What may stand in a [`Parameter`].
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Kind {
    /// Any text.
    Text,
    /// The path of a znode.
    Path,
    /// Yes or no.
    Flag,
    /// One part of a path.
    Name,
    /// A time in milliseconds.
    DurationMs,
    /// The same, or null for never.
    DurationMsOrNull,
    /// A whole number up to this.
    Count(u64),
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// Which sessions are meant: one of the fields `session`, `address`, `identity`, `owner`.
    Who,
    /// A tree: one of the fields `tree`, in JSON, and `yaml`.
    Tree,
    /// Anything that fits a JSON schema; whoever uses it looks for themselves whether it does.
    Json(fn() -> Value),
}

/// A field that may stand for a parameter.
pub(crate) struct Alternative {
    pub(crate) name: &'static str,
    /// What it is looked through as.
    pub(crate) kind: Kind,
    schema: fn() -> Value,
}

impl Alternative {
    const fn text(name: &'static str, schema: fn() -> Value) -> Self {
        let kind = Kind::Text;
        Self { name, kind, schema }
    }
}

/// How sessions can be named.
const WHO: [Alternative; 4] = [
    Alternative::text("session", || {
        json!({
            "type": "string",
            "description": "A session's id, hexadecimal or decimal",
            "pattern": "^(0x[0-9a-fA-F]{1,16}|[0-9]{1,18})$",
        })
    }),
    Alternative::text("address", || {
        let help = "Where clients connect from: an address, or address and port";
        json!({"type": "string", "description": help})
    }),
    Alternative::text(
        "identity",
        || json!({"type": "string", "description": "What clients have proved to be: scheme:id"}),
    ),
    Alternative::text(
        "owner",
        || json!({"type": "string", "description": "The path of an ephemeral: its owner is meant"}),
    ),
];

/// How a tree can be given.
const TREE: [Alternative; 2] = [
    Alternative {
        name: "tree",
        kind: Kind::Json(schema::tree),
        schema: schema::tree,
    },
    Alternative::text(
        "yaml",
        || json!({"type": "string", "description": "The same in YAML"}),
    ),
];

impl Kind {
    /// The fields one of which stands for it, if it is not a field of its own name.
    pub(crate) const fn alternatives(self) -> &'static [Alternative] {
        match self {
            Self::Who => &WHO,
            Self::Tree => &TREE,
            _ => &[],
        }
    }

    /// What JSON Schema says of it.
    pub(crate) fn schema(self) -> Value {
        match self {
            Self::Text => schema::text(),
            Self::Path => schema::path(),
            Self::Flag => schema::boolean(),
            Self::Name => schema::name(),
            Self::DurationMs => {
                json!({"type": "integer", "minimum": 0, "maximum": DURATION_MS_MAX})
            }
            Self::DurationMsOrNull => schema::or_null(Self::DurationMs.schema()),
            Self::Count(max) => json!({"type": "integer", "minimum": 0, "maximum": max}),
            Self::OneOf(words) => json!({"type": "string", "enum": words}),
            Self::Who | Self::Tree => json!({}),
            Self::Json(schema) => schema(),
        }
    }

    /// The value that a text in a query stands for.
    ///
    /// # Errors
    /// What it should be instead.
    pub(crate) fn parse(self, text: &str) -> Result<Value, String> {
        let value = match self {
            Self::DurationMsOrNull if text == "null" => Value::Null,
            Self::DurationMs | Self::DurationMsOrNull | Self::Count(_) => {
                let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
                text.parse::<u64>()
                    .ok()
                    .filter(|_| is_plain)
                    .map_or_else(|| json!(text), |number| json!(number))
            }
            Self::Flag => match text {
                "true" => json!(true),
                "false" => json!(false),
                text => json!(text),
            },
            Self::Json(_) => {
                serde_json::from_str(text).map_err(|error| format!("no JSON: {error}"))?
            }
            Self::Text | Self::Path | Self::Name | Self::OneOf(_) | Self::Who | Self::Tree => {
                json!(text)
            }
        };
        self.check(&value).map(|()| value)
    }

    /// Whether a value may stand there.
    ///
    /// # Errors
    /// What it should be instead.
    pub(crate) fn check(self, value: &Value) -> Result<(), String> {
        let at_most = |max: u64| match whole(value) {
            Some(number) if number <= max => Ok(()),
            _ => Err(format!("{value} is no whole number from 0 to {max}")),
        };
        match self {
            Self::Path => {
                let path = value
                    .as_str()
                    .ok_or_else(|| format!("{value} is no text"))?;
                // What is no path would name nothing, for ever.
                path::validate(path.as_bytes()).map_err(|error| error.to_string())
            }
            Self::Text | Self::Name | Self::Who if value.is_string() => Ok(()),
            Self::Text | Self::Name | Self::Who => Err(format!("{value} is no text")),
            Self::Flag if value.is_boolean() => Ok(()),
            Self::Flag => Err(format!("{value} is neither true nor false")),
            Self::DurationMsOrNull if value.is_null() => Ok(()),
            Self::DurationMs | Self::DurationMsOrNull => at_most(DURATION_MS_MAX),
            Self::Count(max) => at_most(max),
            Self::OneOf(words) => match value.as_str() {
                Some(word) if words.contains(&word) => Ok(()),
                _ => Err(format!("{value} is none of {}", words.join(", "))),
            },
            Self::Json(_) | Self::Tree => Ok(()),
        }
    }
}

/// A whole number, in whichever way JSON writes it: `1.0` is one to JSON Schema.
pub(crate) fn whole(value: &Value) -> Option<u64> {
    /// Up to here a floating-point number is exact.
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

/// The schema of an object with these parameters.
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
            let one_of: Vec<_> = alternatives.iter().map(one).collect();
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
