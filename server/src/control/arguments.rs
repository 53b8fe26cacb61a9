//! What a request gave for the parameters of its verb, looked through.

use std::time::Duration;

use serde_json::{Map, Value};

use crate::control::{
    fault::Fault,
    parameter::{Kind, Parameter, whole},
    query,
};

/// What was given: nothing that the verb does not know, everything of the kind it should be,
/// defaults filled in. Null stands for nothing, save where it means something.
#[derive(Debug)]
pub(crate) struct Arguments(Map<String, Value>);

impl Arguments {
    /// Reads a query.
    pub(crate) fn from_query(text: &str, parameters: &[Parameter]) -> Result<Self, Fault> {
        let mut given = Map::new();
        for (name, text) in query::pairs(text)? {
            let kind = kind_of(parameters, &name)?;
            let value = kind.parse(&text).map_err(|what| wrong(&name, &what))?;
            if given.insert(name.clone(), value).is_some() {
                return Err(wrong(&name, "there twice"));
            }
        }
        Self::complete(given, parameters)
    }

    /// Reads a body; an empty one stands for `{}`.
    pub(crate) fn from_body(body: &[u8], parameters: &[Parameter]) -> Result<Self, Fault> {
        let body = if body.is_empty() { b"{}" } else { body };
        let value = serde_json::from_slice(body)
            .map_err(|error| Fault::bad_input(format!("the body is no JSON: {error}")))?;
        let Value::Object(mut given) = value else {
            return Err(Fault::bad_input("the body is no JSON object"));
        };
        let mut checked = Map::new();
        for (name, value) in std::mem::take(&mut given) {
            let kind = kind_of(parameters, &name)?;
            kind.check(&value).map_err(|what| wrong(&name, &what))?;
            checked.insert(name, value);
        }
        Self::complete(checked, parameters)
    }

    fn complete(mut given: Map<String, Value>, parameters: &[Parameter]) -> Result<Self, Fault> {
        for parameter in parameters {
            let fields = parameter.kind.alternatives();
            if !fields.is_empty() {
                let is_given = |name: &&str| given.contains_key(*name);
                let names = || fields.iter().map(|field| field.name);
                if names().filter(is_given).count() != 1 {
                    let names = names().collect::<Vec<_>>().join(", ");
                    return Err(Fault::bad_input(format!("give exactly one of {names}")));
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
    pub(crate) fn text(&self, name: &str) -> Result<&str, Fault> {
        let text = self.value(name)?.as_str();
        text.ok_or_else(|| wrong(name, "no text"))
    }

    /// A whole number.
    pub(crate) fn count(&self, name: &str) -> Result<u64, Fault> {
        whole(self.value(name)?).ok_or_else(|| wrong(name, "no whole number"))
    }

    /// Yes or no; no if nothing was given.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.given(name).and_then(Value::as_bool).unwrap_or(false)
    }

    /// A time.
    pub(crate) fn duration(&self, name: &str) -> Result<Duration, Fault> {
        self.count(name).map(Duration::from_millis)
    }

    /// Which field of those that stand for a kind was given, and what is there.
    pub(crate) fn alternative(&self, kind: Kind) -> Result<(&'static str, &Value), Fault> {
        let mut fields = kind.alternatives().iter();
        fields
            .find_map(|field| Some((field.name, self.0.get(field.name)?)))
            .ok_or_else(|| Fault::bad_input("nothing was given"))
    }

    /// How sessions were named: which field, and what was there.
    pub(crate) fn who(&self) -> Result<(&'static str, &str), Fault> {
        let (field, value) = self.alternative(Kind::Who)?;
        let text = value.as_str().ok_or_else(|| wrong(field, "no text"))?;
        Ok((field, text))
    }

    /// What was given, if anything was.
    pub(crate) fn given(&self, name: &str) -> Option<&Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    /// Whatever was given; there is something where it is required.
    pub(crate) fn value(&self, name: &str) -> Result<&Value, Fault> {
        self.0.get(name).ok_or_else(|| wrong(name, "missing"))
    }
}

/// What stands in the field of this name.
fn kind_of(parameters: &[Parameter], name: &str) -> Result<Kind, Fault> {
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
        Fault::bad_input(format!("no parameter {name:?}; {there_are}"))
    })
}

fn wrong(name: &str, what: &str) -> Fault {
    Fault::bad_input(format!("parameter {name}: {what}"))
}
