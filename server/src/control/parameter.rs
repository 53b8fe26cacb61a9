//! What a verb takes: each parameter's name, kind and help.

use std::time::Duration;

use minikeeper_protocol::path;
use serde_json::{Map, Value, json};

use crate::control::{error::ControlError, json, routing};

/// The longest time that a request may name: a year. An advancing clock stops at every deadline,
/// perhaps every minute, and no client is served in that time. Unit: milliseconds.
const DURATION_MS_MAX: u64 = 31_536_000_000;

/// One parameter of a [`Verb`](super::Verb).
#[derive(Debug)]
#[non_exhaustive]
pub struct Parameter {
    /// Its name in JSON and in queries.
    pub name: &'static str,
    /// What may stand there.
    pub kind: ParameterKind,
    /// What it is for, in a line.
    pub help: &'static str,
    /// Whether it must be there.
    pub is_required: bool,
    /// What counts where it is not, written as in a query.
    pub default: Option<&'static str>,
}

impl Parameter {
    /// A parameter that must be there.
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

    /// A parameter that may be left out.
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

    /// A parameter that may be left out; this counts then.
    pub(crate) const fn with_default(mut self, default: &'static str) -> Self {
        self.is_required = false;
        self.default = Some(default);
        self
    }

    /// Selects sessions by one of four fields.
    pub(crate) const fn who() -> Self {
        Self::required(
            "who",
            ParameterKind::SessionSelector,
            "A session (0x... or decimal), an address (127.0.0.1:4711 or 127.0.0.1), an identity \
             (digest:alice) or a path that it owns (/locks/x)",
        )
    }

    /// Whether it is no error that no session matches.
    pub(crate) const fn allow_none() -> Self {
        let help = "Whether it is no error that no session matches";
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

/// What may stand in a [`Parameter`].
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum ParameterKind {
    /// Any text.
    Text,
    /// The path of a znode.
    Path,
    /// Yes or no.
    Flag,
    /// One part of a path.
    Name,
    /// A directory on the server's machine.
    Directory,
    /// The number of an injected fault.
    Fault,
    /// A time in milliseconds.
    DurationMs,
    /// The same, or null for never.
    DurationMsOrNull,
    /// A whole number up to this.
    Count(u64),
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// Which sessions are meant: one of the fields `session`, `address`, `identity`, `owner`.
    SessionSelector,
    /// A tree: one of the fields `tree`, in JSON, and `yaml`.
    Tree,
    /// Anything that fits a JSON schema; the handler checks whether it does.
    Json(fn() -> Value),
}

/// A field that may stand for a parameter.
pub(crate) struct Alternative {
    pub(crate) name: &'static str,
    /// What it is looked through as.
    pub(crate) kind: ParameterKind,
    schema: fn() -> Value,
}

impl Alternative {
    const fn text(name: &'static str, schema: fn() -> Value) -> Self {
        let kind = ParameterKind::Text;
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
        kind: ParameterKind::Json(json::tree),
        schema: json::tree,
    },
    Alternative::text(
        "yaml",
        || json!({"type": "string", "description": "The same in YAML"}),
    ),
];

impl ParameterKind {
    /// The fields one of which stands for it, if it is not a field of its own name.
    pub(crate) const fn alternatives(self) -> &'static [Alternative] {
        match self {
            Self::SessionSelector => &WHO,
            Self::Tree => &TREE,
            _ => &[],
        }
    }

    /// What JSON Schema says of it.
    pub(crate) fn schema(self) -> Value {
        match self {
            Self::Text | Self::Directory => json::text(),
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
            Self::SessionSelector | Self::Tree => json!({}),
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
            Self::DurationMs | Self::DurationMsOrNull | Self::Count(_) | Self::Fault => {
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
                serde_json::from_str(text).map_err(|error| format!("not JSON: {error}"))?
            }
            Self::Text
            | Self::Path
            | Self::Name
            | Self::Directory
            | Self::OneOf(_)
            | Self::SessionSelector
            | Self::Tree => {
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
            Self::Text | Self::Name | Self::Directory | Self::SessionSelector => {
                let is_text = value.is_string();
                is_text
                    .then_some(())
                    .ok_or_else(|| format!("{value} is no text"))
            }
            Self::Flag if value.is_boolean() => Ok(()),
            Self::Flag => Err(format!("{value} is neither true nor false")),
            Self::DurationMsOrNull if value.is_null() => Ok(()),
            Self::DurationMs | Self::DurationMsOrNull => at_most(DURATION_MS_MAX),
            Self::Count(max) => at_most(max),
            Self::Fault => at_most(u64::MAX),
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

/// What was given: nothing that the verb does not know, everything of the kind it should be,
/// defaults filled in. Null stands for nothing, save where it means something.
#[derive(Debug)]
pub(crate) struct Arguments(Map<String, Value>);

impl Arguments {
    /// Reads a query.
    pub(crate) fn from_query(text: &str, parameters: &[Parameter]) -> Result<Self, ControlError> {
        let mut given = Map::new();
        for (name, text) in routing::pairs(text)? {
            let kind = kind_of(parameters, &name)?;
            let value = kind.parse(&text).map_err(|what| wrong(&name, &what))?;
            if given.insert(name.clone(), value).is_some() {
                return Err(wrong(&name, "there twice"));
            }
        }
        Self::complete(given, parameters)
    }

    /// Reads a body; an empty one stands for `{}`.
    pub(crate) fn from_body(body: &[u8], parameters: &[Parameter]) -> Result<Self, ControlError> {
        let body = if body.is_empty() { b"{}" } else { body };
        let value = serde_json::from_slice(body)
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
                if names().filter(is_given).count() != 1 {
                    let names = names().collect::<Vec<_>>().join(", ");
                    return Err(ControlError::bad_input(format!(
                        "give exactly one of {names}"
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

    /// A text.
    pub(crate) fn text(&self, name: &str) -> Result<&str, ControlError> {
        let text = self.value(name)?.as_str();
        text.ok_or_else(|| wrong(name, "no text"))
    }

    /// A whole number.
    pub(crate) fn count(&self, name: &str) -> Result<u64, ControlError> {
        whole(self.value(name)?).ok_or_else(|| wrong(name, "no whole number"))
    }

    /// Yes or no; no if nothing was given.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.given(name).and_then(Value::as_bool).unwrap_or(false)
    }

    /// A time.
    pub(crate) fn duration(&self, name: &str) -> Result<Duration, ControlError> {
        self.count(name).map(Duration::from_millis)
    }

    /// Which field of those that stand for a kind was given, and what is there.
    pub(crate) fn alternative(
        &self,
        kind: ParameterKind,
    ) -> Result<(&'static str, &Value), ControlError> {
        let mut fields = kind.alternatives().iter();
        fields
            .find_map(|field| Some((field.name, self.0.get(field.name)?)))
            .ok_or_else(|| ControlError::bad_input("nothing was given"))
    }

    /// How sessions were named: which field, and what was there.
    pub(crate) fn who(&self) -> Result<(&'static str, &str), ControlError> {
        let (field, value) = self.alternative(ParameterKind::SessionSelector)?;
        let text = value.as_str().ok_or_else(|| wrong(field, "no text"))?;
        Ok((field, text))
    }

    /// What was given, if anything was.
    pub(crate) fn given(&self, name: &str) -> Option<&Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    /// Whatever was given; there is something where it is required.
    pub(crate) fn value(&self, name: &str) -> Result<&Value, ControlError> {
        self.0.get(name).ok_or_else(|| wrong(name, "missing"))
    }
}

/// What stands in the field of this name.
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
        let there_are = if names.is_empty() {
            "there is none".to_owned()
        } else {
            format!("there are {}", names.join(", "))
        };
        ControlError::bad_input(format!("no parameter {name:?}; {there_are}"))
    })
}

fn wrong(name: &str, what: &str) -> ControlError {
    ControlError::bad_input(format!("parameter {name}: {what}"))
}
